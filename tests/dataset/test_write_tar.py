"""Tar files: the bytes are those of tarfile, other readers have the samples, bad ones are refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import numbers
from tests.killing import KILLED, Killer
from tests.tar_readers import FOLDER, samples_by_energon
from tests.thrift import ALL

import seekable as sk
from seekable.formats.tar.tar_writer import archive, member_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.parallel.progress import Progress
    from seekable.writing.manifest import Written

Members = list[tuple[str, bytes]]

PLAIN = "".join(chr(code) for code in range(32, 127))
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=120)


def by_tarfile(members: Members) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w|") as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return made.getvalue()


def sample(number: int) -> dict[str, Any]:
    """Return a record with fields of each kind; every third has one field less."""
    record = {
        "__key__": f"{number % 3}/utt {number:04}",
        "bin": bytes([number % 256]) * (number % 1200),
        "json": {"n": number, "text": f"tëxt {number}", "none": None},
        "seg.txt": f"line {number}\n",
        "cls": number,
        "_hidden": number,
    }
    if number % 3 == 0:
        del record["cls"]
    return record


def members_of(record: dict[str, Any]) -> Members:
    """Return what is to be in the file, made without the writer."""
    key = record["__key__"]
    found = [(f"{key}.bin", record["bin"])]
    found.append((f"{key}.json", json.dumps(record["json"]).encode()))
    found.append((f"{key}.seg.txt", record["seg.txt"].encode()))
    if "cls" in record:
        found.append((f"{key}.cls", str(record["cls"]).encode()))
    return found


def as_bytes(number: int) -> dict[str, Any]:
    """Return a sample with its fields as they are in the file."""
    record = sample(number)
    fields = {name.partition(".")[2]: content for name, content in members_of(record)}
    return {"__key__": record["__key__"], **fields}


def visible(number: int) -> dict[str, Any]:
    """Return a sample as it is read back."""
    return {field: value for field, value in sample(number).items() if field != "_hidden"}


def wanted(rows: range) -> Members:
    return [member for number in rows for member in members_of(sample(number))]


def samples(count: int) -> sk.Dataset:
    return numbers(count).map(sample)


def entries(path: str | Path) -> Members:
    with tarfile.open(path) as file:
        found = []
        for info in file:
            content = file.extractfile(info)
            assert content is not None
            found.append((info.name, content.read()))
        return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@given(st.lists(st.tuples(NAMES, st.binary(max_size=1100)), max_size=6))
def test_any_members_have_the_bytes_of_tarfile(members: Members) -> None:
    assert b"".join(archive(members)) == by_tarfile(members)


@pytest.mark.parametrize("length", [1, 99, 100, 101, 155, 156, 255, 256, 400])
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 8703, 8704, 8705, 10_240])
def test_names_and_sizes_at_all_edges(length: int, size: int) -> None:
    members = [("d/" * (length // 2) + "x" * (length % 2), b"x" * size), ("ä" * length, b"")]
    assert b"".join(archive(members)) == by_tarfile(members)


@pytest.mark.parametrize("size", [(1 << 33) - 1, 1 << 33, 9 << 30])
def test_headers_of_large_members(size: int) -> None:
    info = tarfile.TarInfo("large.bin")
    info.size = size
    assert member_header("large.bin", size) == info.tobuf()


def test_the_header_as_bytes() -> None:
    header = member_header("a/1.txt", 8)
    assert header == (
        b"a/1.txt".ljust(100, b"\0")
        + b"0000644\0" + b"0000000\0" * 2 + b"00000000010\0" + b"00000000000\0" + b"007055\0 " + b"0"
        + bytes(100) + b"ustar\x0000" + bytes(247)
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 100, 101, 1000])
def test_none_one_and_many(count: int, tmp_path: Path) -> None:
    written = samples(count).write_tar(tmp_path / "out", rows_per_file=100, jobs=1)
    files = max(1, -(-count // 100))
    assert [os.path.basename(path) for path in written.paths] == [
        f"part-{number:05}-of-{files:05}.tar" for number in range(files)
    ]
    assert written.rows == count
    for number, path in enumerate(written.paths):
        rows = range(number * 100, min(count, number * 100 + 100))
        assert Path(path).read_bytes() == by_tarfile(wanted(rows))


@pytest.mark.parametrize("compression", [None, "gz", "zst"])
def test_what_is_written_comes_back(compression: str | None, tmp_path: Path) -> None:
    ds = samples(150).shuffle(seed=2)
    ds.write_tar(tmp_path / "out", rows_per_file=40, compression=compression)
    found = sk.open(tmp_path / "out")
    rows = [record["cls"] if "cls" in record else record["json"]["n"] for record in ds]
    assert list(found) == [visible(row) for row in rows]
    assert found[77] == visible(rows[77])
    assert found.key(visible(rows[99])["__key__"]) == visible(rows[99])
    assert sk.open(tmp_path / "out", columns=["cls"])[3].get("cls") == visible(rows[3]).get("cls")


@pytest.mark.parametrize("name", ["out", "one.tar"])
def test_what_was_written_is_indexed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.index.opening._RACY_NS", 0)  # files of a moment ago are looked at again
    samples(20).write_tar(tmp_path / name)
    said: list[Progress] = []
    assert len(sk.open(tmp_path / name, progress=said.append)) == 20
    assert "indexing" not in {progress.task for progress in said}


def test_keys_that_come_again_with_other_fields_are_an_error(tmp_path: Path) -> None:
    records = [{"__key__": "a", "txt": ""}, {"__key__": "b", "txt": ""}, {"__key__": "a", "bin": b""}]
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"part-00000-of-00001\.tar"):
        sk.from_sequence(records).write_tar(tmp_path / "out")


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_compressed_files_hold_the_same_archive(compression: str, tmp_path: Path) -> None:
    written = samples(150).write_tar(tmp_path, rows_per_file=100, compression=compression)
    assert {Path(path).suffixes[-2:] == [".tar", f".{compression}"] for path in written.paths} == {True}
    if compression == "gz":
        assert gzip.decompress(Path(written.paths[1]).read_bytes()) == by_tarfile(wanted(range(100, 150)))
    again = samples(150).write_tar(tmp_path, rows_per_file=100, compression=compression)
    assert again.kept == 2


@pytest.mark.parametrize("name", ["one.tar", "one.tar.gz", "one.tgz", "ONE.TAR"])
def test_one_file(name: str, tmp_path: Path) -> None:
    written = samples(250).write_tar(tmp_path / name)
    assert entries(written.paths[0]) == wanted(range(250))
    assert samples(250).write_tar(tmp_path / name).kept == 1


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("a.jsonl", {}, r"a tar file is named \*\.tar, \*\.tar\.gz or \*\.tar\.zst"),
        ("a.tar", {"compression": "gz"}, r"needs a file name that ends in \.tar\.gz"),
        ("a.tar", {"rows_per_file": 5}, "rows_per_file is for a folder"),
        ("out", {"compression": "xz"}, "compression must be 'gz', 'zst' or None"),
        ("out", {"rows_per_file": 0}, "rows_per_file must be at least 1"),
    ],
)
def test_arguments_are_checked(name: str, arguments: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=says):
        samples(9).write_tar(tmp_path / name, **arguments)
    assert not list(tmp_path.iterdir())


def test_the_same_bytes_whoever_does_it(tmp_path: Path) -> None:
    ds = samples(300).shuffle(seed=3)
    with ThreadPoolExecutor(3) as threads:
        ways: list[dict[str, Any]] = [{"jobs": 1}, {"executor": threads}, *([{"jobs": 2}] if ALL else [])]
        for number, way in enumerate(ways):
            ds.write_tar(tmp_path / str(number), rows_per_file=100, **way)
    assert all(contents(tmp_path / str(number)) == contents(tmp_path / "0") for number in range(len(ways)))


def keyless(number: int) -> Any:
    return sk.HOLE if number % 10 == 3 else {"txt": str(number)}


def test_records_without_keys_have_their_numbers(tmp_path: Path) -> None:
    written = numbers(60).map(keyless).write_tar(tmp_path, rows_per_file=25, jobs=1)
    assert (written.rows, written.holes) == (54, 6)
    names = [[name for name, _ in entries(path)] for path in written.paths]
    assert [each[0] for each in names] == ["000000000.txt", "000000025.txt", "000000050.txt"]
    assert all(each == sorted(set(each)) for each in names)
    assert [int(text) for path in written.paths for _, text in entries(path)] == [
        number for number in range(60) if number % 10 != 3
    ]


@pytest.mark.parametrize("noted", [True, False])
def test_what_is_missing_or_damaged_is_made_again(noted: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    written = samples(100).write_tar(tmp_path, rows_per_file=10)
    whole = [Path(path).read_bytes() for path in written.paths]
    if not noted:
        manifest = tmp_path / ".seekable-write.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": {}}))
        damaged = bytearray(whole[6])
        damaged[1] ^= 1
        Path(written.paths[6]).write_bytes(damaged)
    Path(written.paths[3]).unlink()
    os.truncate(written.paths[5], len(whole[5]) - 3)
    again = samples(100).write_tar(tmp_path, rows_per_file=10)
    assert again.kept == (8 if noted else 7)
    assert [Path(path).read_bytes() for path in again.paths] == whole


def test_a_damaged_header_is_seen_wherever_it_is(tmp_path: Path) -> None:
    """Also in the last member, where tarfile ends without an error."""
    from seekable.formats.tar.tar_writer import tar

    path = tmp_path / "a.tar"
    good = b"".join(archive([(f"{number}.{field}", b"x" * 600) for number in range(5) for field in "ab"]))
    path.write_bytes(good)
    assert tar().rows_in(str(path)) == 5
    for number in range(10):
        damaged = bytearray(good)
        damaged[number * 1536 + 1] ^= 1
        path.write_bytes(damaged)
        assert tar().rows_in(str(path)) is None
    for size in (0, 1000, 1536, len(good) - 10_240, len(good) - 1):
        path.write_bytes(good[:size])
        assert tar().rows_in(str(path)) is None


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"__key__": "a.b", "txt": ""}, r"the key 'a\.b' has a dot in its last step.*'a-b' for instance"),
        ({"__key__": "x.y/a.b", "txt": ""}, r"'x\.y/a-b' for instance"),
        ({"__key__": ".hidden", "txt": ""}, "has a dot"),
        ({"__key__": "", "txt": ""}, "no plain relative path"),
        ({"__key__": "/a", "txt": ""}, "no plain relative path"),
        ({"__key__": "a/", "txt": ""}, "no plain relative path"),
        ({"__key__": "a//b", "txt": ""}, "no plain relative path"),
        ({"__key__": "../b", "txt": ""}, "no plain relative path"),
        ({"__key__": "./b", "txt": ""}, "no plain relative path"),
        ({"__key__": "a\0b", "txt": ""}, "has a NUL"),
        ({"__key__": "__meta__/b", "txt": ""}, "readers leave out"),
        ({"__key__": 7, "txt": ""}, "is of type int, and a key is a str"),
        ({"__key__": "a"}, "no field that could be written"),
        ({"__key__": "a", "_x": 1, "txt": None}, "no field that could be written"),
        ({"__key__": "a", "": b""}, "the field '' is empty"),
        ({"__key__": "a", "x/y": b""}, "has a slash"),
        ({"__key__": "a", "JPG": b""}, "has capital letters, and readers would make it 'jpg'"),
        ({"__key__": "a", 3: b""}, "the field 3 of type int"),
        ({"__key__": "a", "jpg": {1, 2}}, "set"),
        ({"__key__": "a", "json": {1, 2}}, "set"),
        (["a"], "of type list"),
    ],
)
def test_what_is_no_sample_is_refused_by_name(record: Any, says: str, tmp_path: Path) -> None:
    ds = numbers(5).map(lambda number: record if number == 3 else sample(number), version=1)
    with pytest.raises(sk.errors.WrongType, match=says) as caught:
        ds.write_tar(tmp_path, jobs=1)
    assert "row 3" in str(caught.value)
    assert contents(tmp_path) == {}


def test_two_samples_in_a_row_with_one_key_are_refused(tmp_path: Path) -> None:
    ds = numbers(9).map(
        lambda number: {"__key__": f"k{number // 8 * 0 + min(number, 7)}", "txt": str(number)}
    )
    with pytest.raises(sk.errors.WrongType, match=r"row 8.*the record before has the same key 'k7'"):
        ds.write_tar(tmp_path / "a", jobs=1)
    apart = ds.take(8).repeat(2)
    assert apart.write_tar(tmp_path / "b", jobs=1).rows == 16


def test_keys_that_webdataset_keeps_are_kept(tmp_path: Path) -> None:
    keys = ["a", "a/b", "x.y/z", "__a", "__a__", "ü/é", "a b", "n" * 150, "a\\b", "new\nline"]
    ds = sk.from_sequence(keys).map(lambda key: {"__key__": key, "txt": key})
    (path,) = ds.write_tar(tmp_path).paths
    assert entries(path) == [(f"{key}.txt", key.encode()) for key in keys]


TOOLS = {
    "GNU tar": ("tar", ["tar", "-xf"]),
    "bsdtar": ("bsdtar", ["bsdtar", "-xf"]),
    "busybox": ("busybox", ["busybox", "tar", "-xf"]),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_other_tools_unpack_the_files(tool: str, tmp_path: Path) -> None:
    program, command = TOOLS[tool]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    keys = ["short", "n" * 120, "é/ü", "a/b/c"]
    ds = sk.from_sequence(keys).map(lambda key: {"__key__": key, "txt": key * 9, "bin": bytes(700)})
    (path,) = ds.write_tar(tmp_path / "out").paths
    (tmp_path / "in").mkdir()
    subprocess.run([*command, path], cwd=tmp_path / "in", check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    for key in keys:
        assert (tmp_path / "in" / f"{key}.txt").read_text() == key * 9
        assert (tmp_path / "in" / f"{key}.bin").read_bytes() == bytes(700)


@pytest.mark.frameworks(name="webdataset")
def test_webdataset_has_the_samples(tmp_path: Path) -> None:
    from webdataset import autodecode
    from webdataset.tariterators import group_by_keys, tar_file_iterator

    written = samples(120).write_tar(tmp_path / "out", rows_per_file=50)
    found = []
    for path in written.paths:
        with open(path, "rb") as file:
            found += list(group_by_keys({**each, "__url__": path} for each in tar_file_iterator(file)))
    raw = [{name: value for name, value in record.items() if name != "__url__"} for record in found]
    assert raw == [as_bytes(number) for number in range(120)]
    for number, record in enumerate(map(autodecode.Decoder([autodecode.basichandlers]), found)):
        assert record["json"] == sample(number)["json"]
        assert record["seg.txt"] == sample(number)["seg.txt"]
        assert record.get("cls") == sample(number).get("cls")


@pytest.mark.frameworks(name="webdataset")
def test_wids_has_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    import wids

    written = samples(70).write_tar(tmp_path / "out", rows_per_file=50)
    shards = [{"url": path, "nsamples": count} for path, count in zip(written.paths, (50, 20), strict=True)]
    dataset = wids.ShardListDataset(shards, keep=True, transformations=[], cache_dir=str(tmp_path / "cache"))
    for row in range(70):
        found = dataset[row]
        fields = {name[1:]: value.read() for name, value in found.items() if name.startswith(".")}
        assert {"__key__": found["__key__"], **fields} == as_bytes(row)


@pytest.mark.frameworks(name="webdataset")
def test_energon_prepares_the_folder_and_has_the_samples(tmp_path: Path) -> None:
    written = samples(120).write_tar(tmp_path / "out", rows_per_file=50)
    assert samples_by_energon(tmp_path / "out", tmp_path / "result") == [as_bytes(row) for row in range(120)]
    assert all(os.path.getsize(f"{path}.idx") == 8 * (len(sk.open(path)) + 1) for path in written.paths)
    assert list(sk.open(tmp_path / "out" / "*.tar")) == [visible(row) for row in range(120)]


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def overwrite(folder: Path) -> Written:
    return samples(60).shuffle(seed=5).write_tar(folder, rows_per_file=20, jobs=1, overwrite=True)


def check_after_a_kill(folder: Path) -> None:
    """The next call writes what is missing, and leaves nothing of the killed one."""
    overwrite(folder)
    assert contents(folder) == contents(folder.parent / "wanted")
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("before", [False, True], ids=["new", "over"])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    before: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    killer: Killer,
) -> None:
    overwrite(tmp_path / "wanted")
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if before:
            samples(45).write_tar(folder, rows_per_file=20, jobs=1)
        codes.append(killer.kill_at(len(codes) + 1, folder, overwrite, folder))
        check_after_a_kill(folder)
    assert codes.count(KILLED) >= 15
