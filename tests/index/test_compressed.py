"""Compressed files are datasets like any other: built once, read anywhere, and never silently wrong."""

from __future__ import annotations

import functools
import gzip
import json
import pickle
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import warm
from tests.formats.splitter import split
from tests.index.corpus import age, write
from tests.storage.compressing import bgzf, compressed, zst_frame

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.table import format_named
from seekable.index.build import content
from seekable.index.build.scan import ScanJob, scan_part
from seekable.storage import seek_points
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from seekable.index.build.scan import PartScan
    from seekable.parallel.progress import Progress
    from seekable.storage.compression import Compression

pytestmark = pytest.mark.usefixtures("forked_programs")

kinds = st.sampled_from(["gz", "zst"])


def rows(count: int, seed: int = 0) -> list[bytes]:
    """Return lines that do not compress too well."""
    rng = random.Random(seed)
    return [
        json.dumps({"id": number, "text": rng.randbytes(rng.randrange(300)).hex()}).encode() + b"\n"
        for number in range(count)
    ]


@functools.cache
def all_rows() -> list[bytes]:
    """Return the lines of the files that most tests read."""
    return rows(9_000)


@functools.cache
def records() -> list[Any]:
    """Return the records in these lines."""
    return [json.loads(row) for row in all_rows()]


def frames(lines: list[bytes], size: int = 1000) -> bytes:
    return compressed([b"".join(lines[at : at + size]) for at in range(0, len(lines), size)], "zst")


NAMES = ("one-member.jsonl.gz", "two-members.jsonl.gz", "bgzf.jsonl.gz", "frames.jsonl.zst")


@functools.cache
def packed(name: str) -> bytes:
    """Return a file of all lines."""
    lines = all_rows()
    if name == "one-member.jsonl.gz":
        return gzip.compress(b"".join(lines), mtime=0)
    if name == "two-members.jsonl.gz":
        return gzip.compress(b"".join(lines[:100])) + gzip.compress(b"".join(lines[100:])) + bytes(9)
    return bgzf(b"".join(lines)) if name == "bgzf.jsonl.gz" else frames(lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_file_is_a_dataset(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path, packed(name))
    ds = sk.open(path)
    assert len(ds) == len(all_rows())
    assert list(ds) == records()
    some = [random.Random(1).randrange(len(all_rows())) for _ in range(50)]
    assert [ds[row] for row in some] == ds[some] == [records()[row] for row in some]
    start = sum(map(len, all_rows()[:7777]))
    assert ds.locate(7777) == sk.Location(str(path), 7777, start, len(all_rows()[7777]) - 1)
    assert ds.find(str(path), 7777) == [7777]
    assert pickle.loads(pickle.dumps(ds))[7777] == records()[7777]
    assert sorted(record["id"] for record in ds.shuffle(seed=1, window=4)) == list(range(len(all_rows())))
    assert verify(path, deep=True).problems == ()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_or_written_when_it_is_opened_again(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, packed(name))
    first = sk.open(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / ".seekable").iterdir()}
    told: list[object] = []
    again = sk.open(tmp_path, progress=told.append)
    assert not told
    assert again.fingerprint == first.fingerprint
    assert before == {path.name: path.stat().st_mtime_ns for path in (tmp_path / ".seekable").iterdir()}


contents = st.lists(
    st.lists(st.sampled_from([b"", b"a", b" ", b"\r", b"bc\xc3\xa9"]), max_size=6).map(b"\n".join),
    min_size=1,
    max_size=4,
)


@given(contents, kinds, st.booleans())
def test_lines_are_those_of_the_content(parts: list[bytes], kind: Compression, keep_blank: bool) -> None:  # noqa: FBT001
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a.txt.{kind}")
        path.write_bytes(compressed(parts, kind))
        scan = scanned(path, "text" if keep_blank else "jsonl")
    whole = b"".join(parts)
    assert scan.starts.tolist() == split(whole, keep_blank=keep_blank)
    assert scan.content_size == len(whole)


def scanned(path: Path, form: str) -> PartScan:
    status = path.stat()
    job = ScanJob(str(path), status.st_size, status.st_mtime_ns, 0, status.st_size)
    scan = scan_part(job, format_named(form).finder, on_bytes=None)
    assert scan is not None
    return scan


def test_many_files_of_all_kinds_are_one_dataset(tmp_path: Path) -> None:
    for number in range(30):
        part = b"".join(all_rows()[number * 10 : number * 10 + 10])
        suffix, data = [("", part), (".gz", gzip.compress(part)), (".zst", zst_frame(part))][number % 3]
        write(tmp_path / f"part-{number}.jsonl{suffix}", data)
    ds = sk.open(tmp_path)
    assert list(ds) == records()[:300]
    assert ds[137] == records()[137]
    loader = sk.Loader(ds.shuffle(seed=3), batch_size=32, collate=list, workers=2)
    assert sorted(record["id"] for batch in loader for record in batch) == list(range(300))
    assert_resumes_exactly(
        lambda: sk.Loader(ds.shuffle(seed=3), batch_size=70, collate=list), runs=2, new_process=True
    )


@pytest.mark.parametrize("name", ["one-member.jsonl.gz", "frames.jsonl.zst"])
def test_an_executor_builds_the_same(name: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder / name, packed(name))
    with ThreadPoolExecutor(2) as executor:
        one = sk.open(tmp_path / "a", index=sk.Index(executor=executor))
    assert sk.open(tmp_path / "b").fingerprint == one.fingerprint
    tables = [{path.name for path in (tmp_path / folder / ".seekable").glob("points-*")} for folder in "ab"]
    assert tables[0] == tables[1]
    assert len(tables[0]) == 1


def test_lost_points_are_made_again(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.gz", packed("one-member.jsonl.gz"))
    ds = sk.open(tmp_path)
    (points,) = (tmp_path / ".seekable").glob("points-*")
    before = points.read_bytes()
    points.unlink()
    report = verify(tmp_path)
    assert [problem.kind for problem in report.problems] == ["offsets"]
    assert points.name in report.problems[0].message
    with pytest.raises(sk.IndexStale, match=points.name):
        pickle.loads(pickle.dumps(ds))[5]
    assert sk.open(tmp_path)[5] == records()[5]
    assert points.read_bytes() == before


def test_damaged_points_are_found(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.gz", packed("one-member.jsonl.gz"))
    sk.open(tmp_path)
    (points,) = (tmp_path / ".seekable").glob("points-*")
    data = bytearray(points.read_bytes())
    data[-100] ^= 1
    points.write_bytes(data)
    assert [problem.kind for problem in verify(tmp_path).problems] == ["offsets"]


def test_a_changed_file_is_indexed_again_and_old_points_go(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    write(path, gzip.compress(b"".join(all_rows()[:10])))
    old = sk.open(tmp_path)
    assert old[3] == records()[3]
    (points,) = (tmp_path / ".seekable").glob("points-*")
    write(path, gzip.compress(b"".join(all_rows()[10:30])), seconds=60)
    new = sk.open(tmp_path)
    assert list(new) == records()[10:30]
    with pytest.raises(sk.IndexStale):
        old[3]
    assert points.exists(), "whoever opened it before may still need it"
    age(points)
    write(tmp_path / "b.jsonl.gz", gzip.compress(b"".join(all_rows()[:5])))
    assert len(sk.open(tmp_path)) == 25
    assert not points.exists()
    assert len(list((tmp_path / ".seekable").glob("points-*"))) == 2


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_what_is_cut_off_or_damaged_is_refused(kind: Compression, tmp_path: Path) -> None:
    data = compressed([b"".join(all_rows()[:5000])], kind)
    path = tmp_path / f"a.jsonl.{kind}"
    damaged = bytearray(data)
    damaged[len(data) // 2 : len(data) // 2 + 9] = bytes(9)
    for bad in (data[:-1], data[: len(data) // 2], bytes(damaged)):
        path.write_bytes(bad)
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"cannot be decompressed .*at about byte"):
            sk.open(path)
    path.write_bytes(b"{}\n" * 200_000)
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"is not compressed by \w+, as its name says"):
        sk.open(path)
    assert not list((tmp_path / ".seekable").glob("points-*"))


def test_other_content_of_the_same_size_and_time_is_found_by_a_deep_look(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    write(path, packed("one-member.jsonl.gz"))
    sk.open(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    write(path, bytes(data))
    report = verify(tmp_path, deep=True)
    assert [problem.kind for problem in report.problems] == ["content"]
    assert "cannot be decompressed" in report.problems[0].message


def test_one_large_frame_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_BLOCK_BYTES", 1 << 20)
    path = tmp_path / "a b.jsonl.zst"
    write(path, zst_frame(b"".join(all_rows())))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"in 1 place\(s\).*recompress '.*a b\.jsonl\.zst'.*open_stream"
    ):
        sk.open(path)


def test_little_that_holds_a_lot_is_entered_in_its_middle_too(tmp_path: Path) -> None:
    line = b'{"text": "' + b"x" * 1000 + b'"}\n'
    data = gzip.compress(line * 40_000, mtime=0)
    assert not content.needs_points(len(data), data)
    write(tmp_path / "a.jsonl.gz", data)
    ds = sk.open(tmp_path)
    assert (len(ds), ds[39_999], ds.locate(20_000).offset) == (40_000, json.loads(line), 20_000 * len(line))


@pytest.mark.parametrize("most", [0, 16 << 20])
def test_damaged_seek_points_are_an_error(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek_points, "_MOST_HASHED_BYTES", most)
    noise = random.Random(1).randbytes(300_000).hex().encode()
    frames = [zst_frame(noise[at : at + 99_999] + b"\n") for at in range(0, 600_000, 99_999)]
    write(tmp_path / "a.txt.zst", b"".join(frames))
    expected = list(sk.open(tmp_path))
    (table,) = (tmp_path / ".seekable").glob("points-*.bin")
    whole = table.read_bytes()
    for at in range(16, len(whole), 7):
        table.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        # A process compares a table once: it may have the inode of one that was removed.
        seek_points._compared.clear()
        try:
            found = list(sk.open(tmp_path))
        except sk.IndexStale:
            continue
        assert not most
        assert len(found) == len(expected)


def test_a_copy_beside_its_compressed_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", all_rows()[0])
    write(tmp_path / "a.jsonl.gz", gzip.compress(all_rows()[0]))
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"'a\.jsonl' and 'a\.jsonl\.gz'.*same data twice"):
        sk.open(tmp_path)
    assert len(sk.open(tmp_path / "*.gz")) == 1
    write(tmp_path / "a.jsonl.zst", zst_frame(all_rows()[0]))
    with pytest.raises(sk.errors.UnsupportedFormat, match="same data twice"):
        sk.open(tmp_path / "*.*z*")


def test_a_compressed_file_of_another_name_is_told_how_to_be_called(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", gzip.compress(all_rows()[0]))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"rename it to .*a\.jsonl\.gz', or decompress it once: gunzip -c"
    ):
        sk.open(tmp_path)
    write(tmp_path / "b.jsonl.gz", gzip.compress(gzip.compress(all_rows()[0])))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"b\.jsonl\.gz' begins as .* by gzip inside of the compression"
    ):
        sk.open(tmp_path / "b.jsonl.gz")


@pytest.mark.parametrize("data", [gzip.compress(b"", mtime=0), gzip.compress(b"\n \n", mtime=0)])
def test_nothing_is_no_record(data: bytes, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.gz", data)
    assert len(sk.open(tmp_path)) == 0
    assert verify(tmp_path, deep=True).problems == ()


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.zst", "a.tar.gz"])
def test_a_file_that_was_cut_to_nothing_is_refused_by_name(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, b"")
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=rf"{name}' cannot be decompressed .* it has no byte"
    ):
        sk.open(tmp_path / name)


def test_a_corrupt_record_says_how_to_look_at_it(tmp_path: Path) -> None:
    lines = [b"{}\n", b'{"a": }\n', b"{}\n"]
    path = tmp_path / "a.jsonl.gz"
    write(path, gzip.compress(b"".join(lines)))
    with pytest.raises(sk.CorruptRecord, match=r"gzip -dc FILE \| tail -c \+4 \| head -c 7") as caught:
        sk.open(path)[1]
    looked = subprocess.run(
        f"gzip -dc {path} | tail -c +{caught.value.offset + 1} | head -c {caught.value.length}",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert looked.stdout == b'{"a": }'


def test_a_killed_build_leaves_no_index_that_lacks_points(tmp_path: Path) -> None:
    """Kill the process between the points and the catalog: the next opening begins anew."""
    write(tmp_path / "a.jsonl.gz", packed("one-member.jsonl.gz"))
    code = (
        "import os, sys\n"
        "from seekable.index.build import commit\n"
        "commit._publish = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        "import seekable as sk\n"
        "sk.open(sys.argv[1])\n"
    )
    assert warm.run([str(tmp_path)], program=code).returncode == -9
    assert not (tmp_path / ".seekable" / "catalog.json").exists()
    assert sk.open(tmp_path)[11] == records()[11]


def test_a_scan_travels_with_its_points(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    write(path, gzip.compress(b"one\ntwo\n"))
    scan = scanned(path, "text")
    again = pickle.loads(pickle.dumps(scan))
    assert (again.content_size, again.points, again.starts.tolist()) == (8, scan.points, [0, 4])


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [("one-member.jsonl.gz", "indexed_gzip", "gzip"), ("frames.jsonl.zst", "zstandard", "zstd")],
)
def test_a_library_that_is_missing_is_named(
    name: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / name, packed(name))
    with monkeypatch.context() as without:
        without.setitem(sys.modules, library, None)
        with pytest.raises(sk.MissingDependency, match=rf"pip install 'seekable\[{extra}\]'"):
            sk.open(tmp_path)
    ds = sk.open(tmp_path)
    monkeypatch.setitem(sys.modules, "indexed_gzip", None)
    if name.endswith(".gz"):
        assert sk.open(tmp_path)[9] == ds[9] == records()[9], "what is indexed is read without it"


def test_small_gzip_files_and_bgzf_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "indexed_gzip", None)
    write(tmp_path / "a.jsonl.gz", gzip.compress(b"".join(all_rows()[:500])))
    write(tmp_path / "b.jsonl.gz", packed("bgzf.jsonl.gz"))
    assert list(sk.open(tmp_path)) == records()[:500] + records()


def test_progress_reaches_the_end_and_not_more(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl.gz", packed("one-member.jsonl.gz"))
    told: list[Progress] = []
    sk.open(tmp_path, progress=told.append)
    done = [each.bytes_done for each in told]
    assert done == sorted(done)
    assert done[-1] == len(packed("one-member.jsonl.gz")) == told[-1].bytes
    assert told[-1].records == len(all_rows())
