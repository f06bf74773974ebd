"""Runs over Shar: pipelines in files, exact resume, resume by rows, streams and workers."""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from tests.formats.shar.shar_folders import cut, pairs, recording, write_lines, write_shar, write_tar

import seekable as sk
from seekable.errors import CorruptRecord, StateMismatch

if TYPE_CHECKING:
    from pathlib import Path


def wave(frames: int, rate: int = 8000) -> bytes:
    """A WAV file of one channel, whose samples are 0, 1, 2, ... of 32,768."""
    samples = struct.pack(f"<{frames}h", *range(frames))
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


def name_of(record: dict[str, Any]) -> str:
    return str(record["id"])


@pytest.fixture
def shar(tmp_path: Path) -> Path:
    write_shar(tmp_path / "shar", [7, 5])
    return tmp_path / "shar"


@pytest.fixture
def audible(tmp_path: Path) -> Path:
    (tmp_path / "audible").mkdir()
    write_lines(tmp_path / "audible" / "cuts.jsonl", [cut(0), cut(1)])
    values = [
        ("utt-0", "wav", wave(100), recording(0, frames=100)),
        ("utt-1", "wav", wave(60), recording(1, frames=100)),
    ]
    write_tar(tmp_path / "audible" / "recording.tar", pairs(values))
    return tmp_path / "audible"


def test_audio_is_decoded_whole_or_in_part(audible: Path) -> None:
    samples, rate = sk.open(audible, decode="audio")[0]["recording"]["data"]
    assert (rate, len(samples), samples[99]) == (8000, 100, 99 / 32768)
    for decode in (
        sk.audio(offset=0.005, duration=0.005),
        {"recording": sk.audio(offset=0.005, duration=0.005)},
    ):
        for asked in (0, [0]):
            record = sk.open(audible, decode=decode)[asked]
            samples, _ = (record[0] if asked == [0] else record)["recording"]["data"]
            assert (samples * 32768).tolist() == [*range(40, 80)]


def test_audio_with_fewer_frames_than_its_manifest_promises_is_an_error(audible: Path) -> None:
    for decode in ("audio", sk.audio(duration=0.001)):
        ds = sk.open(audible, decode=decode)
        ds[0]
        with pytest.raises(CorruptRecord, match=r"recording.tar.*100 frames are promised.*60"):
            ds[1]
    assert sk.open(audible)[1]["recording"]["data"] == wave(60)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["id", "lang"]},
        {"decode": {"recording": "bytes"}},
        {"decode": sk.audio(offset=1, duration=2, short="keep")},
        {"decode": "audio"},
        {"errors": None, "storage": sk.Storage(max_open_files=3)},
    ],
)
def test_a_pipeline_is_saved_and_loaded(shar: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    ds = sk.open(shar, **options).select([3, 1, 11])
    ds.save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json")
    assert again.fingerprint == ds.fingerprint
    assert again.locate([0, 1, 2]) == ds.locate([0, 1, 2])
    assert again._node.plan(0 * ds._node.blocks[:1]).paths == ds._node.plan(0 * ds._node.blocks[:1]).paths
    if isinstance(options.get("decode", {}), dict):
        assert list(again) == list(ds)
        assert again.key("utt-1") == ds[1]


def test_a_saved_pipeline_finds_the_data_where_it_was_moved(shar: Path, tmp_path: Path) -> None:
    ds = sk.open(shar).shuffle(seed=1)
    before = list(ds)
    ds.save(tmp_path / "pipeline.json")
    shar.rename(tmp_path / "moved")
    assert list(sk.load_pipeline(tmp_path / "pipeline.json", root=tmp_path / "moved")) == before


def loader_of(dataset: Any, **arguments: Any) -> sk.Loader:
    return sk.Loader(dataset, **{"batch_size": 2, "collate": list, "prefetch": 0, **arguments})


def test_a_run_goes_on_by_rows_when_shards_were_added(shar: Path) -> None:
    loader = loader_of(sk.open(shar).map(name_of).shuffle(seed=1))
    run = iter(loader)
    begun = [name for _ in range(2) for name in next(run)]
    state = loader.state_dict()
    names = [f"utt-{100 + number}" for number in range(3)]
    write_lines(shar / "cuts.000007.jsonl", [cut(100 + number) for number in range(3)])
    write_lines(shar / "lang.000007.jsonl", [{"cut_id": name} for name in names])
    write_tar(shar / "recording.000007.tar", pairs((name, "wav", b"x", recording(0)) for name in names))
    again = loader_of(sk.open(shar).map(name_of).shuffle(seed=2))
    again.load_state_dict(state, resume="rows")
    rest = [name for batch in again for name in batch]
    assert sorted([*begun, *rest][:12]) == sorted(f"utt-{number}" for number in range(12))
    (shar / "cuts.000001.jsonl").unlink()
    for name in ("recording.000001.tar", "lang.000001.jsonl"):
        (shar / name).unlink()
    with pytest.raises(StateMismatch, match=r"cuts.000001.jsonl' is gone"):
        loader_of(sk.open(shar).map(name_of)).load_state_dict(state, resume="rows")


def test_a_stream_goes_on_where_it_was(shar: Path) -> None:
    stream = sk.open(shar).stream(lanes=2).map(name_of).shuffle(seed=1, buffer=4)
    whole = [name for batch in islice(loader_of(stream), 6) for name in batch]
    loader = loader_of(stream)
    begun = [name for batch in islice(loader, 3) for name in batch]
    again = loader_of(stream)
    again.load_state_dict(loader.state_dict())
    assert begun + [name for batch in islice(again, 3) for name in batch] == whole


@pytest.mark.exhaustive
def test_workers_read_the_same(shar: Path) -> None:
    ds = sk.open(shar).shuffle(seed=1)
    here = [record for batch in loader_of(ds) for record in batch]
    with loader_of(ds, workers=2) as loader:
        assert [record for batch in loader for record in batch] == here
