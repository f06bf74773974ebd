"""Published indexes: another machine fetches them and no data, and nothing of them is believed unchecked."""

from __future__ import annotations

import gzip
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.remote.index.builds import entries_in, file_set, index_store, same

from seekable.errors import InvalidArgument
from seekable.index.file_table import table_name
from seekable.remote.index import publishing
from seekable.remote.index.publishing import PublishedFolder, publish, unread_tables

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.index.counting_store import CountingStore
    from typing_extensions import Buffer

    from seekable.parallel.progress import Progress
    from seekable.remote.stores.object_store import Stat


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


def forge_size(store: CountingStore, kind: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let a file of the published index seem to be of many bytes; return its key."""
    (key,) = (key for key in store.objects if key.startswith(f".seekable/{kind}"))
    stat_now = store.stat_now

    def forged(asked: str) -> Stat:
        found = stat_now(asked)
        return found._replace(size=1 << 40) if asked == key else found

    monkeypatch.setattr(store, "stat_now", forged)
    return key


@pytest.mark.parametrize("kind", ["files-", "points-"])
def test_what_is_too_large_for_its_files_is_not_read(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whoever may write beside the data could fill the memory of its readers."""
    store.objects["a.jsonl.gz"] = gzip.compress(b'{"a": 1}\n' * 100)
    built = index_store(store, tmp_path / "one", keys=["a.jsonl.gz"])
    publish(file_set(store, tmp_path / "one", keys=["a.jsonl.gz"]))
    key = forge_size(store, kind, monkeypatch)
    store.forget()
    assert same(index_store(store, tmp_path / "two", keys=["a.jsonl.gz"]), built)
    assert key not in {read for read, _, _ in store.reads}
    assert data_reads(store) == {"a.jsonl.gz"}


def test_most_bytes_bounds_the_table_and_the_companions(store: CountingStore, tmp_path: Path) -> None:
    for name in "ab":
        store.objects[f"{name}.jsonl.gz"] = gzip.compress(f'{{"{name}": 1}}\n'.encode() * 100)
    keys = list(store.objects)
    built = index_store(store, tmp_path / "one", keys=keys)
    publish(file_set(store, tmp_path / "one", keys=keys))
    (table,) = (data for key, data in store.objects.items() if key.startswith(".seekable/files-"))
    offsets = sum(entry.numbers * 8 for entry, _ in built.values())
    with pytest.raises(InvalidArgument, match="none of its offsets was transferred"):
        index_store(store, tmp_path / "none", keys=keys, most_bytes=len(table) - 1)
    store.forget()
    assert same(index_store(store, tmp_path / "two", keys=keys, most_bytes=offsets + 9), built)
    assert not any("points-" in key for key, _, _ in store.reads)
    assert data_reads(store) == set(keys)


class Tables:
    """Publishers of a folder in a model: each table with the times at which it was written and replaced."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.replaced: dict[str, int] = {}
        self.named, self.named_at = "", 0

    def publish(self, name: str, now: int) -> None:
        """Let a catalog name a table that was written before, and remove what may be removed."""
        old, old_at = self.named, self.named_at
        self.named, self.named_at = name, now
        if not old:
            return
        self.replaced[old] = now
        for gone in unread_tables(self.written, named={name, old}, replaced_ns=old_at, now_ns=now):
            # A reader may have read the catalog of each table up to the time when it was replaced.
            assert gone not in (name, old)
            assert now - self.replaced.get(gone, self.written[gone]) > HOUR
            del self.written[gone]


HOUR = 3600 * 10**9


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 60, 1800, 3599, 3601, 9000]), st.integers(1, 4), st.integers(0, 3)),
        max_size=40,
    )
)
def test_no_table_is_removed_that_a_reader_may_be_about_to_read(
    rounds: list[tuple[int, int, int]],
) -> None:
    """In each round some publishers write tables, and one of them, or none, has its catalog taken."""
    model, now = Tables(), 10**15
    waiting: list[str] = []
    for number, (seconds, publishers, winner) in enumerate(rounds):
        now += seconds * 10**9
        waiting = [f"files-{number:08x}{each:08x}.bin" for each in range(publishers)]
        model.written |= dict.fromkeys(waiting, now)
        if winner < publishers:
            model.publish(waiting[winner], now + 1)
            assert model.named in model.written
    # After some quiet hours one publisher leaves two tables: its own and the one before.
    for number in range(3):
        now += 2 * HOUR
        name = f"files-{number:016x}.bin"
        model.written[name] = now
        model.publish(name, now + 1)
    assert len(model.written) == 2


def test_a_publisher_removes_old_tables(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = fill(store)
    times: dict[str, int] = {}
    stat_now, put, clock = store.stat_now, store.put, [10**18]

    async def put_now(key: str, data: Buffer, *, replacing: Any) -> Stat:
        found = await put(key, data, replacing=replacing)
        times[key] = clock[0]
        return found

    monkeypatch.setattr(store, "put", put_now)
    monkeypatch.setattr(store, "stat_now", lambda key: stat_now(key)._replace(modified_ns=times.get(key, 1)))
    for number in range(4):
        clock[0] += 2 * HOUR
        store.objects["000.jsonl"] = b'{"a": %d}\n' % number
        index_store(store, tmp_path / "one", keys=keys)
        publish(file_set(store, tmp_path / "one", keys=keys))
        tables = [key for key in store.objects if key.startswith(".seekable/files-")]
        assert len(tables) == min(number + 1, 2)
    store.forget()
    index_store(store, tmp_path / "two", keys=keys)
    assert not data_reads(store)


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
