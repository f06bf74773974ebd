"""Builds of the index of objects in a store of the tests, compared with those of the same files on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.formats.table import format_named
from seekable.index.build.build_index import build
from seekable.index.build.file_parts import FileToIndex
from seekable.index.catalog import read_table
from seekable.index.fileset import FileSet
from seekable.index.indexed_files import indexed_files
from seekable.index.offsets import open_offsets

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from tests.remote.index.counting_store import CountingStore

    from seekable.index.file_table import Entry
    from seekable.index.finder import Finder
    from seekable.parallel.progress import ProgressHook


def tasks_of(store: CountingStore, folder: Path, keys: list[str] | None = None) -> list[FileToIndex]:
    """Return the objects of a store as files to index."""
    found = []
    for key in store.objects if keys is None else keys:
        stat = store.stat_now(key)
        path = store.shown(key)
        found.append(FileToIndex(str(folder), store.mount, key, path, stat.size, stat.identity))
    return found


def index_store(
    store: CountingStore,
    folder: Path,
    *,
    form: str | Finder = "jsonl",
    keys: list[str] | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    most_bytes: int | None = None,
) -> dict[str, tuple[Entry, bytes]]:
    """Index the objects of a store, and return the entries of the index with their offsets, by name."""
    build(
        tasks_of(store, folder, keys),
        format_named(form).finder if isinstance(form, str) else form,
        notices=(),
        jobs=None,
        executor=executor,
        progress=progress,
        most_bytes=most_bytes,
    )
    return entries_in(folder)


def index_copies(
    store: CountingStore, folder: Path, *, form: str = "jsonl"
) -> dict[str, tuple[Entry, bytes]]:
    """Index files of this machine with the content of the objects."""
    tasks = []
    for key, data in store.objects.items():
        path = folder / "data" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        status = path.stat()
        index = str(folder / "index")
        tasks.append(
            FileToIndex(index, str(folder / "data"), key, str(path), status.st_size, status.st_mtime_ns)
        )
    scanner = format_named(form).finder
    build(tasks, scanner, notices=(), jobs=1, executor=None, progress=None)
    return entries_in(folder / "index")


def entries_in(folder: Path | str) -> dict[str, tuple[Entry, bytes]]:
    """Return the entries of an index with their offsets, by name."""
    table = read_table(os.fspath(folder))
    found: dict[str, tuple[Entry, bytes]] = {}
    for entry in table.entries() if table else ():
        view = open_offsets(os.fspath(folder), entry.segment).view
        found[entry.name] = entry, bytes(view[entry.start : entry.start + entry.numbers].cast("B"))
    return found


def same(one: dict[str, tuple[Entry, bytes]], other: dict[str, tuple[Entry, bytes]]) -> bool:
    """Return True if two indexes agree in all that does not depend on where the files lie."""

    def bare(found: dict[str, tuple[Entry, bytes]]) -> object:
        return {
            name: (
                entry.format,
                entry.size,
                entry.records,
                entry.head_tail,
                entry.content,
                entry.schema,
                data,
            )
            for name, (entry, data) in found.items()
        }

    return bare(one) == bare(other)


def file_set(
    store: CountingStore, folder: Path, *, form: str = "jsonl", keys: list[str] | None = None
) -> FileSet:
    """Return the files of a store as their index has them."""
    table = read_table(str(folder))
    assert table is not None
    rows = table.rows(list(store.objects) if keys is None else keys, format_name=form)
    assert (rows >= 0).all()
    return FileSet((indexed_files(store.mount, str(folder), table, rows),))
