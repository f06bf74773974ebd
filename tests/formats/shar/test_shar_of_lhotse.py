"""What Lhotse writes as Shar, compared with what its own reader makes of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

soundfile = pytest.importorskip("soundfile")

pytestmark = [
    pytest.mark.frameworks(name="lhotse"),
    pytest.mark.filterwarnings("ignore"),
]


def lhotse() -> Any:
    return pytest.importorskip("lhotse")


IDS = ["a", "sp0.9_utt-1", "dir/utt.x", "é-ü", "x" * 120, "d/" * 60 + "long.name", "日本" * 40, "last"]
RATE, FRAMES = 16000, 8000
ADDED_WHEN_READ = {"shard_origin", "shar_epoch", "dataloading_info"}
FIELDS = {
    "recording": "wav",
    "features": "lilcom",
    "array": "numpy",
    "alignment": "numpy",
    "target_recording": "flac",
    "lang": "jsonl",
    "tags": "jsonl",
}


def audio(number: int, channels: int) -> Any:
    rng = np.random.default_rng(number)
    buffer = io.BytesIO()
    samples = 0.1 * rng.standard_normal((FRAMES, channels))
    soundfile.write(buffer, samples, RATE, format="WAV", subtype="PCM_16")
    return lhotse().Recording.from_bytes(buffer.getvalue(), recording_id=f"rec-{number}")


def array_in_memory(values: Any) -> Any:
    from lhotse.array import Array
    from lhotse.features.io import MemoryRawWriter

    return Array("memory_raw", "", MemoryRawWriter().write("key", values), list(values.shape))


def made_cut(number: int, name: str, *, full: bool) -> Any:
    """A cut of one channel, or of two; a full one has features too, and two in three have custom fields."""
    from lhotse.array import TemporalArray

    channels = 2 if number == 3 else 1
    kind = lhotse().MonoCut if channels == 1 else lhotse().MultiCut
    found = kind(name, 0, 0.5, 0 if channels == 1 else [0, 1], recording=audio(number, channels))
    found.supervisions = [lhotse().SupervisionSegment(f"s{number}", found.recording.id, 0, 0.1, text="hé")]
    if not full:
        return found
    frames = array_in_memory(np.random.default_rng(number).standard_normal((50, 4)).astype("f4"))
    found.features = lhotse().Features(
        *("fbank", 50, 4, 0.01, RATE, 0.0, 0.5, frames.storage_type, "", frames.storage_key),
        *(found.recording.id, 0),
    )
    if number % 3 != 2:
        found.array = array_in_memory(np.arange(6.0).reshape(2, 3))
        found.alignment = TemporalArray(array_in_memory(np.arange(50)), 0, 0.01, 0.0)
        found.target_recording = audio(100 + number, 1)
        found.lang = ["de", "en"][number % 3]
        found.tags = {"number": [number, 0.5]}
    return found


def written(folder: Path, fields: dict[str, str], **options: Any) -> list[Any]:
    """Write Shar; return the cuts as Lhotse reads them."""
    from lhotse.shar import SharWriter

    folder.mkdir()
    with SharWriter(folder, fields, shard_size=3, warn_unused_fields=False, **options) as writer:
        for number, name in enumerate(IDS):
            writer.write(made_cut(number, name, full="features" in fields))
    return list(lhotse().CutSet.from_shar(in_dir=folder, indexed=False))


def without_source(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in {"data", "sources"}}


def as_channels(decoded: tuple[np.ndarray[Any, Any], int]) -> np.ndarray[Any, Any]:
    """The samples as Lhotse has them, of shape (channels, frames)."""
    return np.atleast_2d(decoded[0].T)


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "opus", "original"])
def test_recordings_of_all_kinds(tmp_path: Path, kind: str) -> None:
    theirs = written(tmp_path / "shar", {"recording": kind}, compress_jsonl=False)
    ours, decoded = sk.open(tmp_path / "shar"), sk.open(tmp_path / "shar", decode="audio")
    assert [each["id"] for each in ours] == IDS
    for cut, record, audible in zip(theirs, ours, decoded, strict=True):
        manifest = cut.recording.to_dict()
        assert record["recording"]["data"] == cut.recording.sources[0].source
        assert without_source(record["recording"]).items() <= manifest.items()
        samples = as_channels(audible["recording"]["data"])
        assert np.array_equal(samples, cut.load_audio())
        assert record["supervisions"] == [each.to_dict() for each in cut.supervisions]
        assert record["duration"] == cut.duration


@pytest.mark.parametrize("compressed", [True, False])
def test_fields_of_all_kinds(tmp_path: Path, *, compressed: bool) -> None:
    pytest.importorskip("lilcom")
    theirs = written(tmp_path / "shar", FIELDS, compress_jsonl=compressed)
    ours = sk.open(tmp_path / "shar")
    for cut, record in zip(theirs, ours, strict=True):
        assert np.array_equal(record["features"]["data"], cut.load_features())
        custom = record.get("custom") or {}
        assert custom.keys() == (cut.custom or {}).keys() - ADDED_WHEN_READ
        if not custom:
            continue
        assert np.array_equal(custom["array"]["data"], cut.load_array())
        assert np.array_equal(custom["alignment"]["data"], cut.load_alignment())
        assert custom["target_recording"]["data"] == cut.target_recording.sources[0].source
        assert (custom["lang"], custom["tags"]) == (cut.lang, cut.tags)


def test_lhotse_reads_a_shar_that_was_opened(tmp_path: Path) -> None:
    theirs = written(tmp_path / "shar", {"recording": "wav"})
    sk.open(tmp_path / "shar")
    again = list(lhotse().CutSet.from_shar(in_dir=tmp_path / "shar", indexed=False))
    assert [each.id for each in again] == [each.id for each in theirs] == IDS


def test_any_subset_of_fields(tmp_path: Path) -> None:
    pytest.importorskip("lilcom")
    written(tmp_path / "shar", FIELDS)
    folder = tmp_path / "shar"
    fields = {
        "cuts": f"{folder}/cuts.*.jsonl.gz",
        "target_recording": f"{folder}/target_recording.*.tar",
        "tags": f"{folder}/tags.*.jsonl.gz",
    }
    theirs = lhotse().CutSet.from_shar(
        fields={name: sorted(map(str, folder.glob(f"{name}.*[!x]"))) for name in fields}, indexed=False
    )
    for cut, record in zip(theirs, sk.open(fields), strict=True):
        custom = record.get("custom") or {}
        if "target_recording" in custom:
            assert custom["target_recording"]["data"] == cut.target_recording.sources[0].source
            assert custom["tags"] == cut.tags
        assert record["recording"]["sources"] == [{"type": "shar", "channels": [0], "source": ""}] or (
            record["id"] == IDS[3]
        )
        assert "data" not in record["recording"]


def test_records_may_be_cut_objects(tmp_path: Path) -> None:
    pytest.importorskip("lilcom")
    theirs = written(tmp_path / "shar", FIELDS)
    ours = sk.open(tmp_path / "shar", decode="lhotse")
    for cut, made in zip(theirs, ours, strict=True):
        assert type(made) is type(cut)
        assert (made.id, made.supervisions) == (cut.id, cut.supervisions)
        assert np.array_equal(made.load_audio(), cut.load_audio())
        assert np.array_equal(made.load_features(), cut.load_features())
        if made.has_custom("array"):
            assert np.array_equal(made.load_array(), cut.load_array())
            assert np.array_equal(made.load_target_recording(), cut.load_target_recording())
            assert made.lang == cut.lang
    assert ours.key(IDS[2]).id == ours[2].id == IDS[2]
    assert list(ours.keys()) == IDS
    assert ours.fingerprint != sk.open(tmp_path / "shar").fingerprint
    ours.save(tmp_path / "pipeline.json")
    assert sk.load_pipeline(tmp_path / "pipeline.json")[3].id == IDS[3]
    with pytest.raises(sk.errors.InvalidArgument, match="leave columns= out"):
        sk.open(tmp_path / "shar", decode="lhotse", columns=["id"])


def test_a_cut_that_lhotse_does_not_take_is_named(tmp_path: Path) -> None:
    written(tmp_path / "shar", {"recording": "wav"}, compress_jsonl=False)
    path = tmp_path / "shar" / "cuts.000001.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace('"recording_id"', '"recording"')
    path.write_text("".join(lines))
    ds = sk.open(tmp_path / "shar", decode="lhotse", errors=str)
    assert "cuts.000001.jsonl: record 1 at byte" in ds[4]
    assert "recording" in ds[4]
    assert ds[3].id == IDS[3]
