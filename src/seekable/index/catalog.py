"""Reading an index folder, and writing its catalog.

``catalog.json`` is the index: what it does not name is not part of it. Its first line, up to
``"files": [``, names the table, which is all that a reader needs; the files follow for people and
for other programs, one a line. All other files are named by their own digest and never change.

An index that is damaged in any way counts as one that is not there, wholly or for the files whose
offsets are gone: it is built again, not trusted.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from seekable._lazy import lazy
from seekable.index.digest import digest_text
from seekable.index.file_table import FileTable, is_table_name, table_name
from seekable.index.offsets import open_if_whole
from seekable.storage.files import regular_only

if TYPE_CHECKING:
    import json
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from seekable.index.file_table import Entry
    from seekable.index.offsets import Offsets
else:
    json = lazy("json")

CATALOG = "catalog.json"
_SCHEMA_VERSION = 3

_HEAD_BYTES = 256
_HEAD_END = b', "files": [\n'
_END = b"\n]}\n"
_READ_ATTEMPTS = 2

_READ_BYTES = 64 << 10
"""A table up to this size is read: a map of it would cost a descriptor."""

_tables: weakref.WeakValueDictionary[str, FileTable] = weakref.WeakValueDictionary()


class _CatalogHead(msgspec.Struct):
    seekable_index: int
    table: str


def read_table(folder: str) -> FileTable | None:
    """Return the table of an index folder, None if it has none that is whole."""
    # Between the two reads another process may replace the table: then the catalog names another one.
    for _ in range(_READ_ATTEMPTS):
        name = _table_in_catalog(os.path.join(folder, CATALOG))
        if name is None:
            return None
        if table := open_table(folder, name):
            return table
    return None


def open_table(folder: str, file_name: str) -> FileTable | None:
    """Return a table by its name, None if there is no such file or it is damaged."""
    path = os.path.join(folder, file_name)
    if (table := _tables.get(path)) and os.path.exists(path):
        return table
    try:
        data = _read_or_map(path)
        # Before it is looked into: of a damaged one nothing can be relied on, not even that it ends.
        table = FileTable(data, file_name) if table_name(data) == file_name else None
    except (FileNotFoundError, IsADirectoryError, PermissionError, ValueError):
        return None
    if table is not None:
        _tables[path] = table
    return table


def _read_or_map(path: str) -> bytes | mmap.mmap:
    """Return the bytes of a table, in a form that finds a name among a million within a millisecond.

    A table that is mapped keeps a descriptor, one for each index.

    Raises:
        FileNotFoundError: the table does not exist.
    """
    with open(path, "rb", opener=regular_only) as file:
        size = os.fstat(file.fileno()).st_size
        return file.read() if size <= _READ_BYTES else mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)


def whole_segments(folder: str, table: FileTable) -> tuple[NDArray[np.bool_], list[Offsets | bool]]:
    """Check the segments of a table in constant time; return True for each that is whole.

    The list has what was opened for that: who keeps it, until the offsets are used, opens them once.
    """
    opened = [open_if_whole(folder, segment) for segment in table.segments]
    return np.array([some is not False for some in opened], bool), opened


def _table_in_catalog(path: str) -> str | None:
    try:
        with open(path, "rb", opener=regular_only) as file:
            size = os.fstat(file.fileno()).st_size
            return table_in_catalog(lambda start, stop: os.pread(file.fileno(), stop - start, start), size)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError):
        return None


def table_in_catalog(read: Callable[[int, int], bytes], size: int) -> str | None:
    """Return the file name of the table that a catalog names; None if the catalog is damaged.

    Args:
        read: returns the bytes of the catalog from one offset up to another.
        size: the number of its bytes.
    """
    head, end = read(0, min(_HEAD_BYTES, size)), read(max(size - len(_END), 0), size)
    try:
        found = msgspec.json.decode(head[: head.index(_HEAD_END)] + b"}", type=_CatalogHead)
    except ValueError:
        return None
    whole = found.seekable_index == _SCHEMA_VERSION and end == _END and is_table_name(found.table)
    return found.table if whole else None


def encode_catalog(entries: Iterable[Entry], *, table: bytes) -> Iterator[bytes]:
    """Yield the bytes of ``catalog.json``; one line a file, all of it ASCII."""
    head = json.dumps({"seekable_index": _SCHEMA_VERSION, "table": table_name(table)})
    yield head.removesuffix("}").encode() + _HEAD_END
    between = ""
    for entry in entries:
        yield f"{between}{_line(entry)}".encode()
        between = ",\n"
    yield _END


def _table_part(entry: Entry) -> str:
    return f', "groups": {entry.groups}, "schema": "{digest_text(entry.schema)}"' if entry.schema else ""


def _line(entry: Entry) -> str:
    # Written out: to encode a dict takes three times as long, and there may be a million files.
    return (
        f'{{"name": {json.dumps(entry.name)}, "format": {json.dumps(entry.format)}, '
        f'"records": {entry.records}, "size": {entry.size}, "mtime_ns": {entry.mtime_ns}, '
        f'"indexed_ns": {entry.indexed_ns}, "head_tail": "{digest_text(entry.head_tail)}", '
        f'"content": "{digest_text(entry.content)}", "offsets": "{digest_text(entry.offsets)}", '
        f'"segment": "{entry.segment.file_name}", "start": {entry.start}, "generation": {entry.generation}'
        f"{_table_part(entry)}}}"
    )
