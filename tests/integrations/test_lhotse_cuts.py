"""Records of Shar become cuts with sources in memory, and cuts become records."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import lilcom
import numpy as np
import pytest
import soundfile
from lhotse import CutSet, Features, MonoCut, MultiCut, Recording, SupervisionSegment
from lhotse.array import Array, TemporalArray
from lhotse.audio import AudioSource
from lhotse.shar import SharWriter
from lhotse.testing.dummies import dummy_cut

import seekable as sk
from seekable.formats.shar.lhotse_cuts import cut_from_record, cut_to_record

RATE = 16_000
SAMPLES = np.sin(np.arange(800) / 9).astype(np.float32)


def audio_file(samples: Any = SAMPLES, kind: str = "WAV") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=kind, subtype="FLOAT" if kind == "WAV" else None)
    return file.getvalue()


def numpy_file(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def recording(channels: int = 1) -> dict[str, Any]:
    made = Recording(
        "a",
        [AudioSource("shar", [*range(channels)], "")],
        RATE,
        800,
        800 / RATE,
        channel_ids=[*range(channels)],
    )
    record: dict[str, Any] = made.to_dict()
    return record


def record(**given: Any) -> dict[str, Any]:
    return {
        "type": "MonoCut",
        "id": "a",
        "start": 0,
        "duration": 0.05,
        "channel": 0,
        "supervisions": [],
        **given,
    }


@pytest.mark.parametrize("data", [audio_file(), (SAMPLES, RATE), (SAMPLES[:, None], RATE)])
def test_audio_becomes_a_source_in_memory(data: Any) -> None:
    given = record(recording={**recording(), "data": data})
    cut = cut_from_record(given)
    assert isinstance(cut, MonoCut)
    assert cut.is_in_memory
    np.testing.assert_array_equal(cut.load_audio(), SAMPLES[None])
    assert given["recording"]["data"] is data
    assert cut.truncate(duration=0.01).load_audio().shape == (1, 160)


def test_channels_of_audio() -> None:
    both = np.stack([SAMPLES, -SAMPLES], axis=1)
    given = record(type="MultiCut", channel=[0, 1], recording={**recording(2), "data": (both, RATE)})
    cut = cut_from_record(given)
    assert isinstance(cut, MultiCut)
    np.testing.assert_array_equal(cut.load_audio(), both.T)


FEATURES = Features("fbank", 5, 8, 0.01, RATE, 0, 0.05, "shar", "", "", "a", 0).to_dict()
MATRIX = np.arange(40, dtype=np.float32).reshape(5, 8)


@pytest.mark.parametrize("data", [MATRIX, numpy_file(MATRIX), lilcom.compress(MATRIX, tick_power=-12)])
def test_features_and_arrays(data: Any) -> None:
    array = Array("shar", "", "", [5, 8])
    temporal = TemporalArray(array, temporal_dim=0, frame_shift=0.01, start=0)
    given = record(
        features={**FEATURES, "data": data},
        custom={"plain": {**array.to_dict(), "data": data}, "kept": {"data": 3}},
        over_time={**temporal.to_dict(), "data": data},
    )
    cut = cut_from_record(given)
    for loaded in (cut.load_features(), cut.load_plain(), cut.load_over_time()):
        np.testing.assert_allclose(loaded, MATRIX, atol=1e-3)
    assert cut.kept == {"data": 3}
    again = cut_from_record(cut_to_record(cut))
    assert again == cut
    np.testing.assert_array_equal(again.load_over_time(), cut.load_over_time())


def test_names_that_a_cut_lacks_are_custom() -> None:
    cut = cut_from_record(record(language="en", custom={"snr": 3}))
    assert (cut.language, cut.snr) == ("en", 3)
    assert cut.custom == {"language": "en", "snr": 3}


def test_a_record_without_payload_keeps_its_placeholder() -> None:
    cut = cut_from_record(record(recording={**recording(), "data": None}))
    assert cut.recording.sources[0].type == "shar"
    assert cut_from_record(cut_to_record(cut)) == cut


def test_a_cut_becomes_the_record_that_it_came_from() -> None:
    said = SupervisionSegment("s", "a", 0, 0.05, text="x").to_dict()
    given = record(recording={**recording(), "data": audio_file()}, supervisions=[said], custom={"n": 1})
    assert cut_to_record(cut_from_record(given)) == given


def test_an_array_that_is_a_pickle_becomes_a_file() -> None:
    moved = Array("memory_npy", "", numpy_file(MATRIX), [5, 8]).move_to_memory()
    assert moved.storage_type == "memory_raw"
    cut = cut_from_record(record(custom={"array": moved.to_dict()}))
    assert cut_to_record(cut)["custom"]["array"]["data"] == numpy_file(MATRIX)


def test_cuts_that_lhotse_wrote(tmp_path: Path) -> None:
    cut = cut_from_record(record(recording={**recording(), "data": audio_file()}))
    shar = str(tmp_path / "shar")
    Path(shar).mkdir()
    with SharWriter(shar, {"recording": "wav"}, compress_jsonl=False, shard_size=9) as writer:
        writer.write(cut)
    [line] = sk.open(f"{shar}/cuts.000000.jsonl")
    [read] = CutSet.from_shar(in_dir=shar)
    payload = read.recording.sources[0].source
    ours = cut_from_record({**line, "recording": {**line["recording"], "data": payload}})
    np.testing.assert_array_equal(ours.load_audio(), read.load_audio())
    assert cut_from_record(line) == next(iter(CutSet.from_file(f"{shar}/cuts.000000.jsonl")))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "a"}, r"'MultiCut', 'PaddingCut'\] \(got keys \['id'\]\)"),
        ("text", "got a str"),
        (record(recording={**recording(), "data": 5}), "payload of a must be the bytes of an audio file"),
        (record(features={**FEATURES, "data": "x"}), r"payload of fbank must be .* or an array \(got str\)"),
    ],
)
def test_what_is_no_cut_is_refused(given: Any, message: str) -> None:
    with pytest.raises(sk.errors.WrongType, match=message):
        cut_from_record(given)


def test_what_is_no_object_of_lhotse_is_refused() -> None:
    with pytest.raises(sk.errors.WrongType, match="takes a cut of Lhotse"):
        cut_to_record(5)


@pytest.fixture
def shar(tmp_path: Path) -> str:
    """A Shar that Lhotse has written: audio, features as numpy, and a field of JSON lines."""
    folder = tmp_path / "shar"
    folder.mkdir()
    fields = {"recording": "wav", "features": "numpy", "lang": "jsonl"}
    with SharWriter(str(folder), fields, compress_jsonl=False, shard_size=2) as writer:
        for number in range(5):
            cut = cut_from_record(
                record(
                    id=f"cut-{number}.x",
                    recording={**recording(), "data": audio_file(SAMPLES / (number + 1))},
                    features={**FEATURES, "data": MATRIX + number},
                    custom={"lang": f"l{number}"},
                )
            )
            writer.write(cut)
    return str(folder)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_shar_is_opened_as_cuts(shar: str) -> None:
    ours = sk.open(f"shar:{shar}", decode="lhotse")
    theirs = list(CutSet.from_shar(in_dir=shar))
    assert len(ours) == len(theirs) == 5
    for mine, other in zip(ours, theirs, strict=True):
        del other.custom["shard_origin"], other.custom["shar_epoch"]
        assert mine == other
        np.testing.assert_array_equal(mine.load_audio(), other.load_audio())
        np.testing.assert_array_equal(mine.load_features(), other.load_features())
    assert list(ours.shuffle(seed=1).epoch(3)) == [theirs[row] for row in _order(ours)]


def _order(ds: sk.Dataset) -> list[int]:
    return list(sk.from_sequence(range(len(ds))).shuffle(seed=1).epoch(3))


def test_a_manifest_becomes_cuts(tmp_path: Path) -> None:
    cuts = CutSet.from_cuts(dummy_cut(number) for number in range(9))
    cuts.to_file(tmp_path / "cuts.jsonl.gz")
    ours = sk.open(tmp_path / "cuts.jsonl.gz", key="id").map(cut_from_record)
    assert list(ours) == list(cuts)
    assert ours.key("dummy-mono-cut-0007") == dummy_cut(7)
