"""sk.SharWriter: the files are those of Lhotse's writer, byte for byte; each shard is whole or not there."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tests.dataset.test_write_tar import by_tarfile, entries
from tests.killing import KILLED, Killer, one_of_each_kind

import seekable as sk
from seekable._optional import optional
from seekable.formats.shar.shar_cuts import audio_form, encoded_audio, num_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

RATE = 8000


def noise(number: int, frames: int = 800, channels: int = 1) -> NDArray[np.float32]:
    made = np.random.default_rng(number).normal(0, 0.1, (frames, channels)).astype(np.float32)
    return made[:, 0] if channels == 1 else made


def encoded(samples: NDArray[np.float32], form: str = "wav") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format=form)
    return file.getvalue()


def recording(number: int, **changed: Any) -> dict[str, Any]:
    """Return the manifest of a recording as Lhotse has it."""
    return {
        "id": f"rec-{number}",
        "sources": [{"type": "file", "channels": [0], "source": f"{number}.wav"}],
        "sampling_rate": RATE,
        "num_samples": 800,
        "duration": 0.1,
        "channel_ids": [0],
        **changed,
    }


def cut(number: int, **changed: Any) -> dict[str, Any]:
    """Return a cut as `to_dict` of Lhotse makes it, with its payloads."""
    return {
        "id": f"utt-{number}",
        "start": 0.0,
        "duration": 0.1,
        "channel": 0,
        "supervisions": [{"id": f"s{number}", "text": "hällo", "start": 0.0, "duration": 0.1}],
        "recording": recording(number, data=(noise(number), RATE)),
        "custom": {
            "lang": {"code": "dé", "n": None},
            "vector": {
                "storage_type": "numpy_files",
                "storage_path": "d",
                "storage_key": "k",
                "shape": [3],
                "data": np.arange(3) + number,
            },
        },
        "type": "MonoCut",
        **changed,
    }


FIELDS = {"recording": "wav", "vector": "numpy", "lang": "jsonl"}


def placeholder(number: int) -> dict[str, Any]:
    return recording(number, sources=[{"type": "shar", "channels": [0], "source": ""}])


STORED = {"storage_type": "shar", "storage_path": "", "storage_key": "", "shape": [3]}


def files_of(numbers: range, *, suffix: str) -> dict[str, bytes]:
    """Return the files of a shard, made without the writer."""
    lines, languages, audio, vectors = b"", b"", [], []
    for number in numbers:
        given = cut(number)
        custom = {"lang": given["custom"]["lang"], "vector": STORED}
        changed = {**given, "start": 0, "recording": placeholder(number), "custom": custom}
        lines += json.dumps(changed, ensure_ascii=False).encode() + b"\n"
        language = {"cut_id": given["id"], "lang": custom["lang"]}
        languages += json.dumps(language, ensure_ascii=False).encode() + b"\n"
        audio.append((f"utt-{number}.wav", encoded(noise(number))))
        audio.append((f"utt-{number}.json", json.dumps(placeholder(number)).encode() + b"\n"))
        file = io.BytesIO()
        np.save(file, given["custom"]["vector"]["data"])
        vectors.append((f"utt-{number}.npy", file.getvalue()))
        vectors.append((f"utt-{number}.json", json.dumps(STORED).encode() + b"\n"))
    return {
        f"cuts{suffix}.jsonl": lines,
        f"lang{suffix}.jsonl": languages,
        f"recording{suffix}.tar": by_tarfile(audio),
        f"vector{suffix}.tar": by_tarfile(vectors),
    }


def index_of(name: str, content: bytes) -> bytes:
    """Return Lhotse's index: of a tar file it ends with the number of bytes that tarfile read."""
    if name.endswith(".tar"):
        source = io.BytesIO(content)
        with tarfile.open(fileobj=source, mode="r|") as file:
            starts = [info.offset for info in file][::2]
        return np.array([*starts, source.tell()], "<u8").tobytes()
    lines = content.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    return np.array([*starts, len(content)], "<u8").tobytes()


def with_indexes(files: dict[str, bytes]) -> dict[str, bytes]:
    return files | {f"{name}.idx": index_of(name, content) for name, content in files.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write(folder: Path, cuts: Any, fields: dict[str, str] | None = None, **arguments: Any) -> sk.SharWriter:
    arguments = {"compress_jsonl": False, **arguments}
    with sk.SharWriter(folder, FIELDS if fields is None else fields, **arguments) as writer:
        for each in cuts:
            writer.write(each)
    return writer


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_all_files_of_all_shards(count: int, tmp_path: Path) -> None:
    write(tmp_path, map(cut, range(count)), shard_size=3)
    wanted: dict[str, bytes] = {}
    for number, first in enumerate(range(0, count, 3)):
        wanted |= files_of(range(first, min(first + 3, count)), suffix=f".{number:06}")
    assert contents(tmp_path) == with_indexes(wanted)


@pytest.mark.parametrize("frames", [3800, 3839, 3840, 3841, 4000, 4095, 4096, 4097, 8962])
def test_an_index_ends_where_lhotse_ends_reading(frames: int, tmp_path: Path) -> None:
    """The end mark may begin in the last block of a record of 10,240 bytes."""
    write(
        tmp_path, [{"id": "a", "recording": {"data": (noise(0, frames=frames), RATE)}}], {"recording": "wav"}
    )
    name = "recording.000000.tar"
    content = (tmp_path / name).read_bytes()
    assert (tmp_path / f"{name}.idx").read_bytes() == index_of(name, content)


def test_one_shard_without_a_number_and_an_offset(tmp_path: Path) -> None:
    write(tmp_path / "one", map(cut, range(5)), shard_size=None)
    assert contents(tmp_path / "one") == with_indexes(files_of(range(5), suffix=""))
    writer = write(tmp_path / "two", map(cut, range(5)), shard_size=3, shard_offset=7)
    assert writer.output_paths["recording"] == [
        str(tmp_path / "two" / f"recording.{number:06}.tar") for number in (7, 8)
    ]
    assert list(writer.output_paths) == ["cuts", *FIELDS]


def test_compressed_lines_and_no_index_and_no_cuts(tmp_path: Path) -> None:
    write(tmp_path / "gz", map(cut, range(3)), compress_jsonl=True)
    found = contents(tmp_path / "gz")
    wanted = files_of(range(3), suffix=".000000")
    assert set(found) == {
        *(f"{name}{end}" for name in wanted if name.endswith(".tar") for end in ("", ".idx")),
        *(f"{name}.gz" for name in wanted if name.endswith(".jsonl")),
    }
    for name in ("cuts.000000.jsonl", "lang.000000.jsonl"):
        assert gzip.decompress(found[f"{name}.gz"]) == wanted[name]
    write(tmp_path / "plain", map(cut, range(3)), create_index=False)
    assert contents(tmp_path / "plain") == wanted
    fields = {"recording": "wav"}
    without = {**cut(0), "custom": {}}
    write(tmp_path / "fields", [without], fields, create_index=False, include_cuts=False)
    assert set(contents(tmp_path / "fields")) == {"recording.000000.tar"}


def test_missing_values(tmp_path: Path) -> None:
    bare = {"id": "a", "start": 0, "duration": 1.0, "channel": 0, "type": "MonoCut"}
    write(tmp_path, [bare, {**bare, "custom": None}])
    assert entries(tmp_path / "recording.000000.tar") == [("a.nodata", b""), ("a.nometa", b"")] * 2
    assert (tmp_path / "lang.000000.jsonl").read_text() == '{"cut_id": "a"}\n' * 2


def test_decoded_audio_alone_is_enough(tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            {"id": "mono", "recording": {"data": (noise(1), RATE)}, "text": 3},
            {"id": "stereo", "recording": {"data": (noise(2, channels=2), RATE)}, "supervisions": [{}]},
        ],
        {"recording": "flac"},
    )
    mono, stereo = map(json.loads, (tmp_path / "cuts.000000.jsonl").read_text().splitlines())
    assert list(mono) == ["id", "start", "duration", "channel", "supervisions", "recording", "text", "type"]
    assert (mono["type"], mono["channel"], mono["duration"]) == ("MonoCut", 0, 0.1)
    assert (stereo["type"], stereo["channel"], stereo["supervisions"]) == ("MultiCut", [0, 1], [{}])
    assert stereo["recording"] == {
        "id": "stereo",
        "sources": [{"type": "shar", "channels": [0, 1], "source": ""}],
        "sampling_rate": RATE,
        "num_samples": 800,
        "duration": 0.1,
        "channel_ids": [0, 1],
    }
    audio = dict(entries(tmp_path / "recording.000000.tar"))
    assert audio["stereo.flac"] == encoded(noise(2, channels=2), "flac")


def test_features_alone_are_enough_beside_audio(tmp_path: Path) -> None:
    values = np.arange(40.0).reshape(10, 4)
    given = {"id": "a", "recording": {"data": (noise(1), RATE)}, "features": {"data": values}}
    write(tmp_path, [given], {"recording": "wav", "features": "numpy"})
    (features,) = [json.loads(held) for name, held in entries(tmp_path / "features.000000.tar")[1:]]
    wanted = {
        "num_frames": 10,
        "num_features": 4,
        "frame_shift": 0.01,
        "sampling_rate": RATE,
        "duration": 0.1,
    }
    assert features == {**features, **wanted}
    assert json.loads((tmp_path / "cuts.000000.jsonl").read_text())["features"] == features
    with pytest.raises(sk.errors.WrongType, match="need a manifest, with 'num_frames'"):
        write(
            tmp_path / "other", [{**given, "features": values[0]}], {"recording": "wav", "features": "numpy"}
        )


@pytest.mark.parametrize("form", ["wav", "flac", "mp3"])
@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "original"])
def test_encoded_audio_of_the_kind_of_the_field_stays(form: str, kind: str, tmp_path: Path) -> None:
    payload = encoded(noise(0), form)
    write(tmp_path, [{**cut(0), "recording": recording(0, data=payload), "custom": {}}], {"recording": kind})
    name, found = entries(tmp_path / "recording.000000.tar")[0]
    assert name == f"utt-0.{kind}"
    assert (found == payload) == (kind in (form, "original"))
    assert audio_form(found) == (form if kind == "original" else kind)


def test_a_cut_of_a_recording_has_its_part_alone(tmp_path: Path) -> None:
    stereo = noise(5, frames=1600, channels=2)
    whole = {"num_samples": 1600, "duration": 0.2, "channel_ids": [0, 1]}
    for number, data in enumerate([(stereo, RATE), encoded(stereo)]):
        part = cut(
            0, start=0.05, duration=0.1, channel=1, recording=recording(0, **whole, data=data), custom={}
        )
        write(tmp_path / str(number), [part], {"recording": "wav"})
        (_, payload), (_, manifest) = entries(tmp_path / str(number) / "recording.000000.tar")
        found, _ = soundfile.read(io.BytesIO(payload), dtype="float32")
        whole_wav, _ = soundfile.read(io.BytesIO(encoded(stereo)), dtype="float32")
        assert np.array_equal(found, whole_wav[400:1200, 1])
        said = json.loads(manifest)
        assert (said["num_samples"], said["channel_ids"], said["sources"][0]["channels"]) == (800, [1], [1])
        assert json.loads((tmp_path / str(number) / "cuts.000000.jsonl").read_text())["start"] == 0


@given(
    samples=arrays(np.float32, array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=9),
                   elements=st.floats(-1.5, 1.5, width=32)),
    rate=st.sampled_from([8000, 44_100]),
)  # fmt: skip
@example(samples=np.array([1, -1, 32767 / 32768, -1e-12, 2**-31, -(2**-31), 1.5], np.float32), rate=8000)
@example(samples=(np.arange(-32768, 32768) / 32768).astype(np.float32), rate=8000)
@example(samples=np.arange(-32768, 32768, dtype=np.int16), rate=8000)
def test_wav_has_the_bytes_of_soundfile(samples: NDArray[Any], rate: int) -> None:
    assume(samples.ndim == 1 or samples.shape[1])
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="wav")
    assert encoded_audio(samples, rate, "wav") == file.getvalue()


@pytest.mark.parametrize("kind", ["flac", "lilcom"])
def test_a_package_that_is_missing_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("soundfile", "lilcom"):
        monkeypatch.setitem(sys.modules, package, None)
        proxy = optional(package, extra="audio")
        monkeypatch.setattr(f"seekable.formats.shar.shar_cuts.{package}", proxy)
    field = "vector" if kind == "lilcom" else "recording"
    given = cut(0, custom={"vector": {**VECTOR, "data": np.arange(3.0)}})
    writer = sk.SharWriter(tmp_path, {field: kind}, include_cuts=False, compress_jsonl=False)
    with pytest.raises(sk.MissingDependency, match=r"pip install 'seekable\[audio\]'"):
        writer.write(given)


def test_opus_has_the_same_bytes_again() -> None:
    """The package soundfile gives each stream a number by chance."""
    first = encoded_audio(noise(1, frames=40_000), 16_000, "opus")
    assert first == encoded_audio(noise(1, frames=40_000), 16_000, "opus")
    samples, rate = soundfile.read(io.BytesIO(first))
    assert (len(samples), rate) == (40_000, 16_000)
    assert audio_form(first) == "opus"


@pytest.mark.parametrize(
    ("seconds", "rate", "wanted"), [(0.5, 3, 2), (2.5, 1, 3), (1 / 3, 16_000, 5333), (0.1, 44_100, 4410)]
)
def test_samples_are_rounded_as_lhotse_rounds_them(seconds: float, rate: int, wanted: int) -> None:
    assert num_samples(seconds, rate) == wanted


def spoiled(**changed: Any) -> dict[str, Any]:
    return {**cut(0), "recording": recording(0, **{"data": (noise(0), RATE), **changed})}


VECTOR = {"storage_type": "x", "storage_path": "", "storage_key": "", "shape": [3]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3, "a cut is a dict or a Cut of Lhotse"),
        ({"start": 0}, "a cut has an id"),
        (cut(0, id=""), "a cut has an id"),
        (cut(0, id="a//b"), "no step is empty"),
        (cut(0, id="../b"), "no step is empty"),
        (cut(0, id="a\0"), "has no NUL"),
        (cut(0, type="MixedCut"), "cut 'utt-0' is a MixedCut"),
        ({"id": "x"}, "cut 'x' lacks 'duration' and 'channel'"),
        ({"id": "x", "recording": {"data": (noise(0), "8000")}}, "recording of cut 'x': decoded audio is"),
        ({"id": "x", "recording": {"data": (noise(0), 0)}}, "its sampling rate, a whole number of 1 or more"),
        ({"id": "x", "recording": {"data": (noise(0), 0.5)}}, "its sampling rate, a whole number"),
        ({"id": "x", "recording": {"data": (noise(0)[None, None], RATE)}}, r"of shape \(frames,\)"),
        (spoiled(data=b"nothing"), "field 'recording' of cut 'utt-0': the payload begins with b'nothing'"),
        (spoiled(data=b""), "no audio that is known"),
        (spoiled(data=noise(0)), "encoded bytes, or a tuple of samples and their rate"),
        (spoiled(data=(noise(0), 16_000)), "16000 samples a second, and its manifest says 8000"),
        (spoiled(data=(noise(0, frames=799), RATE)), "has 799 samples, its manifest says 800"),
        (spoiled(data=encoded(noise(0, frames=10), "flac")), "has 10 samples, its manifest says 800"),
        (spoiled(transforms=[{"name": "Speed"}]), "transforms"),
        ({"id": "x", "recording": {"data": ([0.5], RATE)}}, "decoded audio is a tuple of an array"),
        (cut(0, recording={"data": b""}), "'data', and that of a recording has"),
        (cut(0, custom={"vector": {**VECTOR, "data": np.arange(4)}}), r"shape \(4,\).* says \[3\]"),
        (cut(0, custom={"vector": {**VECTOR, "data": b"PK"}}), "neither npy nor lilcom"),
        (cut(0, custom={"vector": {**VECTOR, "data": [1]}}), "an array of numpy, or its bytes"),
        (cut(0, custom={"vector": {"data": b"\x93NUMPY"}}), "that of an array has 'shape'"),
        (cut(0, custom={"vector": None, "lang": {1}}), "field 'lang' of cut 'utt-0'.*set"),
        (cut(0, custom={"vector": None, "other": {1}}), "cut 'utt-0' cannot be JSON.*set"),
        (cut(0, custom={"more": {"data": b""}}), "payload of 'more', which fields= does not name"),
    ],
)
def test_what_cannot_be_written_is_named_and_left_out(given: Any, says: str, tmp_path: Path) -> None:
    with sk.SharWriter(tmp_path, FIELDS, compress_jsonl=False) as writer:
        writer.write(cut(0))
        with pytest.raises(sk.errors.WrongType, match=says):
            writer.write(given)
        writer.write(cut(1))
    assert contents(tmp_path) == with_indexes(files_of(range(2), suffix=".000000"))


def test_a_rate_is_written_as_an_integer(tmp_path: Path) -> None:
    write(tmp_path, [{"id": "x", "recording": {"data": (noise(0), float(RATE))}}], {"recording": "wav"})
    assert b'"sampling_rate": 8000, "num_samples"' in contents(tmp_path)["cuts.000000.jsonl"]


def test_the_manifest_of_an_array_is_none_of_features(tmp_path: Path) -> None:
    given = cut(0, features={"shape": [3, 2], "data": np.zeros((3, 2))}, custom={})
    with (
        sk.SharWriter(tmp_path, {"recording": "wav", "features": "numpy"}, compress_jsonl=False) as writer,
        pytest.raises(
            sk.errors.WrongType, match=r"field 'features' of cut 'utt-0'.*that of features has 'type'"
        ),
    ):
        writer.write(given)


def test_manifests_have_the_order_of_lhotse(tmp_path: Path) -> None:
    array = {"shape": [3], "storage_type": "memory", "data": np.arange(3)}
    write(tmp_path, [cut(0, custom={"vector": array})], {"recording": "wav", "vector": "numpy"})
    placeholder = b'{"storage_type": "shar", "storage_path": "", "storage_key": "", "shape": [3]}'
    found = contents(tmp_path)
    assert placeholder in found["cuts.000000.jsonl"]
    assert placeholder in found["vector.000000.tar"]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"fields": ["recording"]}, sk.errors.WrongType, "fields must be a dict"),
        (
            {"fields": {"recording": "aac"}},
            sk.errors.InvalidArgument,
            "has the kind 'aac'; known are 'flac', 'mp3'",
        ),
        ({"fields": {"a.b": "wav"}}, sk.errors.InvalidArgument, "no field can be named 'a.b'"),
        ({"fields": {"a%06d": "wav"}}, sk.errors.InvalidArgument, "no field can be named"),
        ({"fields": {"cuts": "jsonl"}}, sk.errors.InvalidArgument, "no field can be named 'cuts'"),
        ({"fields": {3: "wav"}}, sk.errors.WrongType, "the names of fields are str"),
        ({"fields": {}, "include_cuts": False}, sk.errors.InvalidArgument, "nothing to write"),
        ({"shard_size": 0}, sk.errors.InvalidArgument, "shard_size must be at least 1"),
        ({"shard_offset": -1}, sk.errors.InvalidArgument, "shard_offset must be at least 0"),
        ({"shard_suffix": ".a"}, sk.errors.InvalidArgument, "shard_suffix= is for one shard"),
        ({"shard_suffix": "/a", "shard_size": None}, sk.errors.InvalidArgument, "a part of a file name"),
        ({"compress_jsonl": 1}, sk.errors.WrongType, "compress_jsonl must be True or False"),
        ({"folder": 3}, sk.errors.WrongType, "folder must be the path"),
    ],
)
def test_arguments_are_checked(
    arguments: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=says):
        sk.SharWriter(**{"folder": tmp_path / "out", "fields": FIELDS, **arguments})
    assert not (tmp_path / "out").exists()


def test_lines_are_compressed_by_default_as_by_lhotse(tmp_path: Path) -> None:
    for _ in range(2):
        with sk.SharWriter(tmp_path, FIELDS, overwrite=True) as writer:
            writer.write(cut(0))
        names = {"cuts.000000.jsonl.gz", "lang.000000.jsonl.gz"}
        tars = {f"{field}.000000.tar{end}" for field in ("recording", "vector") for end in ("", ".idx")}
        assert names | tars <= set(contents(tmp_path))
        assert not [name for name in contents(tmp_path) if name.endswith((".jsonl", ".jsonl.idx"))]
        (tmp_path / "cuts.000000.jsonl").write_bytes(b"")  # Shards of the other kind are in the way too.


def test_several_writers_of_one_shard_each_fill_a_folder(tmp_path: Path) -> None:
    for suffix in (".a", ".b"):
        write(tmp_path, [cut(0)], shard_size=None, shard_suffix=suffix, create_index=False)
    names = set(contents(tmp_path))
    assert {"cuts.a.jsonl", "cuts.b.jsonl", "recording.a.tar", "recording.b.tar"} <= names
    assert all(".a." in name or ".b." in name for name in names)
    with pytest.raises(sk.errors.InvalidArgument, match=r"holds 'cuts\.b\.jsonl' already"):
        write(tmp_path, [], shard_size=None, shard_suffix=".b")


def test_data_of_a_cut_that_is_not_written_is_warned_of_once(tmp_path: Path) -> None:
    other = {"id": "other", "sources": [], "sampling_rate": 8000}
    cuts = [cut(number) for number in range(2)]
    cuts = [{**each, "custom": {**each["custom"], "other": other, "note": {"a": 1}}} for each in cuts]
    with pytest.warns(UserWarning, match=r"cut 'utt-0' has 'other', which fields= does not name") as warned:
        write(tmp_path / "a", cuts)
    assert len(warned) == 1
    write(tmp_path / "b", cuts, warn_unused_fields=False)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_shards_that_are_there_are_refused_unless_they_may_go(tmp_path: Path) -> None:
    write(tmp_path, map(cut, range(9)), shard_size=3)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(sk.errors.InvalidArgument, match=r"holds 'cuts\.000000\.jsonl' already"):
        sk.SharWriter(tmp_path, FIELDS)
    write(tmp_path, map(cut, range(9, 10)), shard_size=3, shard_offset=3)
    write(tmp_path, map(cut, range(3)), shard_size=3, overwrite=True)
    found = contents(tmp_path)
    assert found.pop("notes.txt") == b"mine"
    assert found == with_indexes(files_of(range(3), suffix=".000000"))


def test_an_error_drops_the_unfinished_shard_alone(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write(tmp_path, (cut(number // (4 - number) * 0 + number) for number in range(5)), shard_size=3)
    assert contents(tmp_path) == with_indexes(files_of(range(3), suffix=".000000"))


def test_a_closed_writer_stays_closed(tmp_path: Path) -> None:
    writer = write(tmp_path, map(cut, range(3)))
    writer.close()
    with pytest.raises(sk.errors.InvalidArgument, match="is closed"):
        writer.write(cut(0))
    assert contents(tmp_path) == with_indexes(files_of(range(3), suffix=".000000"))


def fill(folder: Path) -> None:
    write(folder, map(cut, range(5)), shard_size=2, overwrite=True)


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def check_after_a_kill(folder: Path) -> None:
    """Each shard whose cuts are there is whole; a new writer fills the folder."""
    wanted = contents(folder.parent / "wanted")
    found = {name: content for name, content in contents(folder).items() if not name.startswith(".")}
    for name in found:
        if name.startswith("cuts.") and name.endswith(".jsonl"):
            number = name.split(".")[1]
            assert {each for each in wanted if number in each} <= set(found)
    assert all(wanted[name] == content for name, content in found.items())
    fill(folder)
    now = contents(folder)
    assert {name: content for name, content in now.items() if not name.startswith(".")} == wanted


def test_killed_at_an_operation_of_each_kind_shards_are_whole(tmp_path: Path, killer: Killer) -> None:
    fill(tmp_path / "wanted")
    kinds = killer.operations(tmp_path / "all", fill, tmp_path / "all")
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        assert killer.kill_at(number, folder, fill, folder, kind=kind) == KILLED
        if folder.exists():
            check_after_a_kill(folder)


@pytest.mark.exhaustive
def test_killed_at_any_file_operation_shards_are_whole(tmp_path: Path, killer: Killer) -> None:
    fill(tmp_path / "wanted")
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        codes.append(killer.kill_at(len(codes) + 1, folder, fill, folder))
        if folder.exists():
            check_after_a_kill(folder)
    assert codes.count(KILLED) >= 50


def lhotse_cuts(folder: Path) -> list[Any]:
    """Return cuts of each kind: parts, channels, missing values, custom fields of all types, long names."""
    from lhotse import Recording, SupervisionSegment
    from lhotse.cut import MonoCut, MultiCut
    from lhotse.features.io import NumpyFilesWriter

    folder.mkdir()
    arrays = NumpyFilesWriter(folder / "arrays")

    def of_file(name: str, channels: int = 1) -> Any:
        path = folder / f"{name}.wav"
        soundfile.write(path, noise(len(name), frames=4000, channels=channels), RATE)
        return Recording.from_file(path)

    made: list[Any] = []
    for number in range(7):
        name = "ünï/sp0.9_" + "x" * 110 if number == 3 else f"utt-{number}"
        held: dict[str, Any] = {"recording": of_file(f"r{number}", 2 if number > 4 else 1)}
        where = {"start": 0.1003, "duration": 0.2} if number == 1 else {"start": 0.0, "duration": 0.5}
        if number == 2:
            held = {}
        if number == 6:
            each = MultiCut(name, channel=[1], **where, **held)
        else:
            kind = MultiCut if number == 5 else MonoCut
            each = kind(name, channel=[0, 1] if number == 5 else 0, **where, **held)
        each.supervisions = [SupervisionSegment(name, "r", 0, 0.2, text="hällo")]
        if number % 2 == 0:
            each.vector = arrays.store_array(f"v{number}", np.arange(4.0) + number)
        if number % 3 == 0:
            each.ali = arrays.store_array(
                f"a{number}", np.arange(50), frame_shift=0.01, temporal_dim=0, start=0
            )
        if number % 3 == 1:
            each.lang = {"code": "dé", "n": None}
        if number == 4:
            each.target = of_file("target")
        made.append(each)
    return made


def as_dict(each: Any) -> Any:
    return json.loads(json.dumps(each.to_dict()))


def itself(each: Any) -> Any:
    return each


@pytest.mark.frameworks(name="lhotse")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("given", [itself, as_dict])
@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "original"])
def test_lhotse_writes_the_same_bytes(kind: str, given: Callable[[Any], Any], tmp_path: Path) -> None:
    from lhotse import CutSet
    from lhotse.shar import SharWriter

    cuts = lhotse_cuts(tmp_path / "in")
    fields = {"recording": kind, "vector": "numpy", "ali": "numpy", "lang": "jsonl", "target": "wav"}
    (tmp_path / "theirs").mkdir()
    with SharWriter(tmp_path / "theirs", fields, shard_size=3, compress_jsonl=False) as writer:
        for each in cuts:
            writer.write(each)
    write(tmp_path / "ours", map(given, cuts), fields, shard_size=3)
    theirs, ours = contents(tmp_path / "theirs"), contents(tmp_path / "ours")
    assert set(theirs) == set(ours)
    assert [name for name in theirs if theirs[name] != ours[name]] == []
    found = list(CutSet.from_shar(in_dir=tmp_path / "ours", indexed=False))
    assert [each.id for each in found] == [each.id for each in cuts]
    assert np.array_equal(found[1].load_audio().shape, cuts[1].load_audio().shape)


@pytest.mark.frameworks(name="lhotse")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lhotse_reads_cuts_of_arrays_alone(tmp_path: Path) -> None:
    from lhotse import CutSet

    values = np.arange(40.0, dtype=np.float32).reshape(10, 4)
    given = [
        {
            "id": f"a{n}",
            "recording": {"data": (noise(n), RATE)},
            "features": values + n,
            "custom": {"v": values[n]},
        }
        for n in range(3)
    ]
    write(tmp_path, given, {"recording": "flac", "features": "numpy", "v": "numpy"})
    for indexed in (True, False):
        for n, found in enumerate(CutSet.from_shar(in_dir=tmp_path, indexed=indexed)):
            assert np.array_equal(found.load_features(), values + n)
            assert np.array_equal(found.load_v(), values[n])
            assert found.load_audio().shape == (1, 800)


@pytest.mark.frameworks(name="lhotse")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lhotse_reads_opus(tmp_path: Path) -> None:
    """Lhotse's own bytes differ from run to run in the number of the stream."""
    from lhotse import CutSet
    from lhotse.shar import SharWriter

    cuts = [each for each in lhotse_cuts(tmp_path / "in") if each.has_recording]
    (tmp_path / "theirs").mkdir()
    with SharWriter(tmp_path / "theirs", {"recording": "opus"}, compress_jsonl=False) as writer:
        for each in cuts:
            writer.write(each)
    write(tmp_path / "ours", cuts, {"recording": "opus"})
    theirs, ours = contents(tmp_path / "theirs"), contents(tmp_path / "ours")
    assert [name for name in theirs if theirs[name] != ours[name]] == ["recording.000000.tar"]
    for found, wanted in zip(
        CutSet.from_shar(in_dir=tmp_path / "ours", indexed=False),
        CutSet.from_shar(in_dir=tmp_path / "theirs", indexed=False),
        strict=True,
    ):
        assert np.array_equal(found.load_audio(), wanted.load_audio())


@pytest.mark.frameworks(name="lhotse")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lhotse_reads_lilcom_and_features_and_compressed_lines(tmp_path: Path) -> None:
    from lhotse import CutSet, Features
    from lhotse.features.io import NumpyFilesWriter
    from lhotse.shar import SharWriter
    from lhotse.shar.readers.indexed import LazyIndexedSharIterator

    cuts = [each for each in lhotse_cuts(tmp_path / "in") if each.id in ("utt-0", "utt-4")]
    storage = NumpyFilesWriter(tmp_path / "features")
    for number, each in enumerate(cuts):
        values = np.random.default_rng(number).normal(size=(50, 8)).astype(np.float32)
        key = storage.write(each.id, values)
        each.features = Features(
            *("fbank", 50, 8, 0.01, RATE, 0.0, each.duration),
            *(storage.name, str(storage.storage_path), key, each.recording.id, 0),
        )
    fields = {"recording": "flac", "features": "lilcom", "vector": "lilcom"}
    (tmp_path / "theirs").mkdir()
    with SharWriter(tmp_path / "theirs", fields) as writer:
        for each in cuts:
            writer.write(each)
    write(tmp_path / "ours", cuts, fields, compress_jsonl=True)
    theirs, ours = contents(tmp_path / "theirs"), contents(tmp_path / "ours")
    lines = "cuts.000000.jsonl.gz"
    assert gzip.decompress(ours.pop(lines)) == gzip.decompress(theirs.pop(lines))
    assert [name for name in theirs if theirs[name] != ours[name]] == []
    write(tmp_path / "indexed", cuts, fields)
    readers = [
        CutSet.from_shar(in_dir=tmp_path / "ours", indexed=False),
        CutSet.from_shar(in_dir=tmp_path / "indexed", indexed=False),
        CutSet.from_shar(in_dir=tmp_path / "indexed", indexed=True),
        CutSet(LazyIndexedSharIterator(in_dir=tmp_path / "indexed", lazy=True)),
    ]
    for found in readers:
        for each, wanted in zip(found, cuts, strict=True):
            assert each.load_features().shape == wanted.load_features().shape
            assert np.abs(each.load_audio() - wanted.load_audio()).max() < 1e-4
