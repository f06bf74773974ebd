"""The index of objects: equal to that of local copies, with no request too many."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.remote.index.builds import entries_in, index_copies, index_store, same, tasks_of
from tests.remote.index.counting_store import CountingStore, KilledBuild

from seekable.errors import InvalidArgument
from seekable.formats.table import format_named
from seekable.index.build import build_index
from seekable.index.build.kept_parts import KeptParts
from seekable.index.digest import END_BYTES
from seekable.remote import mounts
from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.index import object_scan
from seekable.remote.index.object_scan import PinnedObject

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.parallel.progress import Progress


_REQUEST = 256 << 10
_PART = 512 << 10


def lines(count: int, *, width: int = 40, seed: int = 0) -> bytes:
    """Return lines of JSON of several lengths, blank ones among them."""
    lengths = np.random.default_rng(seed).integers(0, width, count).tolist()
    return b"".join(
        b" \n" * (number % 97 == 0) + json.dumps({"id": number, "text": "x" * length}).encode() + b"\n"
        for number, length in enumerate(lengths)
    )


def parquet(rows: int) -> bytes:
    """Return a Parquet file of random numbers."""
    written = io.BytesIO()
    pq.write_table(pa.table({"a": np.random.default_rng(0).random(rows)}), written, row_group_size=50_000)
    return written.getvalue()


def end_threads() -> None:
    """Wait for the threads of a build that failed."""
    for thread in threading.enumerate():
        if thread.name.startswith("seekable-scan"):
            thread.join()


def archive(sizes: list[int]) -> bytes:
    """Return a tar file of members of these sizes."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for number, size in enumerate(sizes):
            member = tarfile.TarInfo(f"{number:04}.bin")
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return written.getvalue()


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make requests and parts small, so that small objects have many."""
    monkeypatch.setattr(object_scan, "STREAMED_BYTES", _REQUEST)


SMALL = {
    "empty.jsonl": b"",
    "one.jsonl": b'{"a": 1}\n',
    "open.jsonl": b'{"a": 1}\n{"a": 2}',
    "mark.jsonl": b'\xef\xbb\xbf{"a": 1}\n',
    "blank.jsonl": b"\n\n \n",
}


def test_small_objects_are_one_request_each(store: CountingStore, tmp_path: Path) -> None:
    store.objects |= SMALL | {f"deep/{number}.jsonl": lines(100, seed=number) for number in range(40)}
    found = index_store(store, tmp_path / "index")
    assert same(found, index_copies(store, tmp_path / "local"))
    assert sorted(store.reads) == sorted((key, 0, len(data)) for key, data in store.objects.items() if data)
    assert store.stats == [".seekable/catalog.json"]
    assert not store.lists


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_many_objects_are_read_at_once(store: CountingStore, tmp_path: Path, form: str) -> None:
    for number in range(32):
        if form == "jsonl":
            store.objects[f"{number}.jsonl"] = lines(3)
        else:
            store.objects[f"{number}.parquet"] = parquet(rows=5)
    store.together = 4  # The fetcher permits at least so many, however fast a store is.
    index_store(store, tmp_path / "index", form=form)
    assert len(store.reads) == 32


@pytest.mark.usefixtures("small_requests")
@pytest.mark.parametrize("threads", [None, 3])
def test_parts_of_large_objects_are_read_once(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    store.objects |= {"a.jsonl": lines(30_000), "b.jsonl": lines(20_000, seed=1), "c.jsonl": lines(10)}
    expected = index_copies(store, tmp_path / "local")
    monkeypatch.setattr(build_index, "_PART_BYTES", _PART)
    told: list[Progress] = []
    executor = ThreadPoolExecutor(threads) if threads else None
    found = index_store(store, tmp_path / "index", progress=told.append, executor=executor)
    # Pieces of the content digest are as long as parts, which are shorter here.
    assert {name: data for name, (_, data) in found.items()} == {
        name: data for name, (_, data) in expected.items()
    }
    size = sum(map(len, store.objects.values()))
    parts = sum(-(-len(data) // _PART) for data in store.objects.values())
    assert store.bytes_read <= size + 2 * 2 * END_BYTES + parts
    assert max(stop - start for _, start, stop in store.reads) <= _REQUEST + END_BYTES
    assert told[-1].bytes_done == told[-1].bytes == size
    assert told[-1].files_done == 3


@pytest.mark.usefixtures("small_requests")
@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_objects_are_fetched_once(store: CountingStore, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("indexed_gzip")
    numbers = np.random.default_rng(0).integers(0, 1 << 62, 50_000).tolist()
    data = b"".join(b'{"a": %d}\n' % number for number in numbers)
    frames = zstandard.ZstdCompressor()
    if suffix == "gz":
        store.objects["a.jsonl.gz"] = gzip.compress(data, 1)
    else:
        store.objects["a.jsonl.zst"] = b"".join(
            frames.compress(data[at : at + (1 << 18)]) for at in range(0, len(data), 1 << 18)
        )
    packed = next(iter(store.objects.values()))
    found = index_store(store, tmp_path / "index")
    assert same(found, index_copies(store, tmp_path / "local"))
    assert len(packed) > 2 * _REQUEST
    assert store.bytes_read <= len(packed) + 2 * END_BYTES


@pytest.mark.usefixtures("small_requests")
def test_archives_are_walked_or_streamed(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_scan, "_FAR_BYTES", 1 << 19)
    store.objects |= {"large.tar": archive([3 << 20] * 3), "small.tar": archive([1000] * 1500)}
    found = index_store(store, tmp_path / "index", form="tar")
    assert same(found, index_copies(store, tmp_path / "local", form="tar"))
    read = {
        key: sum(stop - start for name, start, stop in store.reads if name == key) for key in store.objects
    }
    assert read["large.tar"] < len(store.objects["large.tar"]) / 5
    assert (
        len(store.objects["small.tar"])
        <= read["small.tar"]
        <= len(store.objects["small.tar"]) + 3 * END_BYTES
    )


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_of_tables_the_ends_are_read(store: CountingStore, tmp_path: Path, form: str) -> None:
    table = pa.table({"a": np.random.default_rng(0).random(200_000)})
    for number in range(3):
        if form == "parquet":
            store.objects[f"{number}.parquet"] = parquet(rows=200_000)
            continue
        written = io.BytesIO()
        with pa.ipc.new_file(written, table.schema) as writer:
            writer.write_table(table, max_chunksize=50_000)
        store.objects[f"{number}.arrow"] = written.getvalue()
    found = index_store(store, tmp_path / "index", form=form)
    assert same(found, index_copies(store, tmp_path / "local", form=form))
    if form == "parquet":
        assert len(store.reads) == 2 * len(store.objects)
    assert store.bytes_read < sum(map(len, store.objects.values())) / 4


@pytest.mark.usefixtures("small_requests")
def test_a_killed_build_reads_no_kept_part_again(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "_PART_BYTES", _PART)
    store.objects |= {"a.jsonl": lines(40_000), "b.jsonl": lines(30_000, seed=1)}
    whole = index_store(store, tmp_path / "whole")
    requests = len(store.reads)
    parts = sum(-(-len(data) // _PART) for data in store.objects.values())
    # The ends of both objects are remembered in this process: four requests fewer.
    for killed in (*range(1, requests - 4, 4), requests - 5):
        folder = tmp_path / f"killed-{killed}"
        store.forget()
        store.most_reads = killed
        with pytest.raises(KilledBuild):
            index_store(store, folder)
        end_threads()
        store.most_reads = None
        kept = len(list(folder.glob("part-*.bin")))
        done = sum(-(-entry.size // _PART) for entry, _ in entries_in(folder).values())
        store.forget()
        assert same(
            index_store(store, folder, keys=[key for key in store.objects if key not in entries_in(folder)]),
            whole,
        )
        streamed = sum(stop - start for _, start, stop in store.reads if stop - start > END_BYTES)
        assert streamed <= (parts - kept - done) * (_PART + 1)
        assert not list(folder.glob("part-*.bin"))


def keep_all_parts(store: CountingStore, folder: Path) -> list[Path]:
    """Have all parts of the objects kept in an index folder, as if the build was killed before its commit."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KeptParts, "discard", lambda *_: None)
        index_store(store, folder)
    (folder / "catalog.json").unlink()
    store.forget()
    return sorted(folder.glob("part-*.bin"))


@pytest.mark.usefixtures("small_requests")
def test_kept_parts_are_not_read_and_damaged_ones_are(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "_PART_BYTES", _PART)
    store.objects["a.jsonl"] = lines(40_000)
    whole = index_store(store, tmp_path / "whole")
    assert len(keep_all_parts(store, tmp_path / "index")) == 4
    assert same(index_store(store, tmp_path / "index"), whole)
    assert not store.reads
    damaged = keep_all_parts(store, tmp_path / "index")
    data = bytearray(damaged[0].read_bytes())
    data[len(data) // 2] ^= 1
    damaged[0].write_bytes(data)
    damaged[1].write_bytes(data[:20])
    damaged[2].unlink()
    assert same(index_store(store, tmp_path / "index"), whole)
    assert 2 * _PART < store.bytes_read <= 3 * (_PART + 1)
    assert not list((tmp_path / "index").glob("part-*.bin"))


@pytest.mark.usefixtures("small_requests")
def test_kept_parts_of_another_version_are_not_used(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_index, "_PART_BYTES", _PART)
    store.objects["a.jsonl"] = lines(40_000)
    keep_all_parts(store, tmp_path / "index")
    store.objects["a.jsonl"] = lines(40_000, seed=5)
    assert same(index_store(store, tmp_path / "index"), index_store(store, tmp_path / "other"))


def test_an_object_that_was_replaced_is_scanned_as_it_is_now(store: CountingStore, tmp_path: Path) -> None:
    store.objects["a.jsonl"] = lines(100)
    tasks = tasks_of(store, tmp_path / "index")
    store.objects["a.jsonl"] = lines(200, seed=3)
    build_index.build(
        tasks, format_named("jsonl").finder, notices=(), jobs=None, executor=None, progress=None
    )
    found = entries_in(tmp_path / "index")
    assert found["a.jsonl"][0].records == 200
    assert found["a.jsonl"][0].mtime_ns == store.stat_now("a.jsonl").identity


def test_what_is_transferred_is_said_and_refused(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seekable.remote.index.object_scan._WORTH_SAYING", 1000)
    store.objects["a.jsonl"] = lines(100)
    size = len(store.objects["a.jsonl"])
    with pytest.raises(
        InvalidArgument, match=f"1 objects in 1 requests.*most_bytes is {size - 1:,}; nothing was"
    ):
        index_store(store, tmp_path / "index", most_bytes=size - 1)
    assert not store.reads
    told: list[Progress] = []
    index_store(store, tmp_path / "index", most_bytes=size, progress=told.append)
    assert any("transfers up to" in progress.notice for progress in told)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_waits_for_no_request_of_its_parent(store: CountingStore) -> None:
    store.objects["a"] = lines(5000)
    stat = store.stat_now("a")
    pinned = PinnedObject(store.shown("a"), size=stat.size, identity=stat.identity)
    expected = store.objects["a"][:END_BYTES], store.objects["a"][-END_BYTES:]
    store.together = 3
    with ThreadPoolExecutor(1) as threads:
        ends = threads.submit(pinned.ends)
        while len(store.reads) < 2:
            threading.Event().wait(0.001)
        child = os.fork()
        if not child:
            signal.alarm(20)
            mounts._stores[store.mount, os.getpid()] = CountingStore(store.mount, store.objects)
            try:
                assert pinned.ends() == expected
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        fetcher().post(store._have_begun.set)
        assert ends.result() == expected


def test_indexes_of_other_tools_are_looked_for_beside_a_few_objects(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a request of its own, and most stores have none."""
    monkeypatch.setattr(build_index, "_is_worth", lambda _: True)
    line = b'{"text": "which is longer than a short line"}\n'
    store.objects |= {f"{number:02}.jsonl": line * (20 + number) for number in range(50)}
    built = index_store(store, tmp_path / "without")
    looked_for = {key for key in store.stats if key.endswith(".jsonl.idx")}
    assert 2 <= len(looked_for) <= 8
    assert set(store.stats) == {".seekable/catalog.json", "index/sample_locations.bin", *looked_for}
    keys = list(store.objects)
    for key in keys:
        ends = np.cumsum([len(line) for line in store.objects[key].splitlines(keepends=True)])
        store.objects[f"{key}.idx"] = np.concatenate([[0], ends]).astype("<u8").tobytes()
    store.forget()
    found = index_store(store, tmp_path / "with", keys=keys)
    assert {key for key in store.stats if key.endswith(".idx")} == {f"{key}.idx" for key in keys}
    assert all(entry.unread for entry, _ in found.values())
    assert [data for _, data in found.values()] == [data for _, data in built.values()]
