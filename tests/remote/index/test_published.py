"""Published indexes: another machine fetches them and no data, and nothing of them is believed unchecked."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.remote.index.builds import entries_in, file_set, index_store, same

from seekable.errors import InvalidArgument
from seekable.index.build import publishing
from seekable.index.build.publishing import publish
from seekable.index.file_table import table_name
from seekable.remote.published import PublishedFolder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.index.counting_store import CountingStore

    from seekable.parallel.progress import Progress


def fill(store: CountingStore, files: int = 20) -> list[str]:
    """Put some files of JSON lines into a store, and return their keys."""
    for number in range(files):
        rows = (json.dumps({"file": number, "row": row}).encode() + b"\n" for row in range(50 + number))
        store.objects[f"{number:03}.jsonl"] = b"".join(rows)
    return list(store.objects)


def data_reads(store: CountingStore) -> set[str]:
    """Return the keys of data files that were read."""
    return {key for key, _, _ in store.reads if ".seekable/" not in key}


def test_another_machine_reads_the_index_and_no_data(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    built = index_store(store, tmp_path / "one", keys=keys)
    (published,) = publish(file_set(store, tmp_path / "one", keys=keys))
    assert (published.address, published.files) == (f"{store.mount}/.seekable", 20)
    assert store.puts[-1] == ".seekable/catalog.json"
    assert published.written == len(store.puts) == 3
    store.forget()
    told: list[Progress] = []
    assert same(index_store(store, tmp_path / "two", keys=keys, progress=told.append), built)
    assert not data_reads(store)
    assert any("20 of 20 files is published" in progress.notice for progress in told)


def test_what_differs_alone_is_indexed(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    store.objects["003.jsonl"] = b'{"new": 1}\n'
    store.objects["100.jsonl"] = b'{"new": 2}\n'
    store.forget()
    found = index_store(store, tmp_path / "two", keys=[*keys, "100.jsonl"])
    assert data_reads(store) == {"003.jsonl", "100.jsonl"}
    assert found["003.jsonl"][0].records == 1
    # The second machine publishes too: a third one reads no data.
    publish(file_set(store, tmp_path / "two", keys=[*keys, "100.jsonl"]))
    store.forget()
    assert same(index_store(store, tmp_path / "three", keys=[*keys, "100.jsonl"]), found)
    assert not data_reads(store)


def test_few_files_of_many_fetch_their_own_offsets(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    built = index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    store.forget()
    some = ["002.jsonl", "017.jsonl"]
    found = index_store(store, tmp_path / "two", keys=some)
    assert same(found, {key: built[key] for key in some})
    assert not data_reads(store)
    offsets = sum(stop - start for key, start, stop in store.reads if "offsets-" in key)
    assert offsets < sum(len(data) for _, data in built.values())


def test_publishing_again_writes_nothing(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    store.forget()
    (again,) = publish(file_set(store, tmp_path / "one", keys=keys))
    assert (again.written, store.puts) == (0, [])


def test_publishers_at_once_lose_nothing(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    count = 5
    meeting = threading.Barrier(count)
    read = publishing.published_table
    waited = threading.local()

    def read_together(folder: PublishedFolder) -> object:
        found = read(folder)
        if not getattr(waited, "once", False):
            waited.once = True
            meeting.wait(30)
        return found

    shares = [keys[number::count] for number in range(count)]
    sets = []
    for number, share in enumerate(shares):
        index_store(store, tmp_path / str(number), keys=share)
        sets.append(file_set(store, tmp_path / str(number), keys=share))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(publishing, "published_table", read_together)
        threads = [threading.Thread(target=publish, args=(files,)) for files in sets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert store.puts.count(".seekable/catalog.json") > count
    store.forget()
    found = index_store(store, tmp_path / "reader", keys=keys)
    assert set(found) == set(keys)
    assert not data_reads(store)


@pytest.mark.parametrize("kind", ["catalog.json", "files-", "offsets-", "points-"])
@pytest.mark.parametrize("damage", ["gone", "flipped", "cut", "empty"])
def test_a_damaged_published_index_is_not_believed(
    store: CountingStore, tmp_path: Path, kind: str, damage: str
) -> None:
    store.objects["a.jsonl.gz"] = gzip.compress(b'{"a": 1}\n' * 100)
    built = index_store(store, tmp_path / "one", keys=["a.jsonl.gz"])
    publish(file_set(store, tmp_path / "one", keys=["a.jsonl.gz"]))
    (key,) = (key for key in store.objects if key.startswith(f".seekable/{kind}"))
    data = store.objects.pop(key)
    if damage == "flipped":
        # Of the catalog the digest of the table.
        at = data.index(b"files-") + 8 if kind == "catalog.json" else len(data) // 2
        store.objects[key] = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    elif damage != "gone":
        store.objects[key] = data[: len(data) // 2] if damage == "cut" else b""
    store.forget()
    assert same(index_store(store, tmp_path / "two", keys=["a.jsonl.gz"]), built)
    assert data_reads(store) == {"a.jsonl.gz"}
    # Publishing again heals it.
    publish(file_set(store, tmp_path / "two", keys=["a.jsonl.gz"]))
    store.forget()
    assert same(index_store(store, tmp_path / "three", keys=["a.jsonl.gz"]), built)
    if kind in ("catalog.json", "files-"):
        assert not data_reads(store)


def test_a_published_table_that_refers_to_nothing_is_not_believed(
    store: CountingStore, tmp_path: Path
) -> None:
    keys = fill(store, 2)
    built = index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    (table,) = (key for key in store.objects if key.startswith(".seekable/files-"))
    data, catalog = store.objects[table], store.objects[".seekable/catalog.json"]
    files = 2
    for column in (7, 8):  # The format and the segment.
        at = (6 + column * files) * 8
        forged = data[:at] + (99).to_bytes(8, "little") + data[at + 8 :]
        name = table_name(forged)
        store.objects[f".seekable/{name}"] = forged
        old = table.removeprefix(".seekable/").encode()
        store.objects[".seekable/catalog.json"] = catalog.replace(old, name.encode())
        store.forget()
        assert same(index_store(store, tmp_path / f"with-{column}", keys=keys), built)
        assert data_reads(store) == set(keys)


def test_most_bytes_counts_the_published_index(store: CountingStore, tmp_path: Path) -> None:
    keys = fill(store)
    index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    with pytest.raises(InvalidArgument, match="most_bytes is 1,000; none of its offsets was transferred"):
        index_store(store, tmp_path / "two", keys=keys, most_bytes=1000)


def test_offsets_that_lie_outside_of_a_file_are_not_believed(store: CountingStore, tmp_path: Path) -> None:
    """A published index can be consistent in itself, and wrong."""
    store.objects["a.jsonl"] = b'{"a": 1}\n' * 10
    index_store(store, tmp_path / "long", keys=["a.jsonl"])
    entries = entries_in(tmp_path / "long")
    store.objects["a.jsonl"] = b'{"a": 1}\n' * 3
    built = index_store(store, tmp_path / "short", keys=["a.jsonl"])
    forged = [
        replace(entries["a.jsonl"][0], size=entry.size, mtime_ns=entry.mtime_ns)
        for entry, _ in built.values()
    ]
    target = PublishedFolder(store.mount)
    publishing._write_parts(str(tmp_path / "long"), target, forged)
    assert publishing._replace(target, forged, None)
    store.forget()
    assert same(index_store(store, tmp_path / "two", keys=["a.jsonl"]), built)
    assert data_reads(store) == {"a.jsonl"}
