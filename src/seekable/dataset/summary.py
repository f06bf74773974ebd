"""The summary of a dataset, for people: files, rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadValue, InvalidArgument, MissingDependency
from seekable.nodes.bases import leaves_of
from seekable.nodes.columns.names import LOOKED_AT, schema_of
from seekable.nodes.display import data_size, preformatted
from seekable.nodes.graph import HOLE, known_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.node import Node

__all__ = ["ColumnInfo", "FileInfo", "Info", "info_of"]

_AT_ONCE = 1 << 16
_MOST_FILES = 20
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_UNIT = 1000


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of the sources, as ``Dataset.info`` reports it."""

    name: str
    """The path of the file, relative to the folder that was opened."""

    rows: int
    """The number of records of the file."""

    visible: int
    """The number of rows of the dataset that are records of the file."""

    bytes: int
    """The number of bytes of the file; 0 where the size is not known."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of the records, as ``Dataset.info`` reports it."""

    name: str
    type: str
    """The Arrow type; ``"?"`` if the values have no common type, or pyarrow is not installed."""

    present: int
    """The number of records, of the first ``looked_at``, that have the column, and not None in it."""


@dataclass(frozen=True, slots=True)
class Info:
    """The result of ``Dataset.info``: rows, files and columns; ``str`` makes a table of it.

    Example:
        >>> import seekable as sk
        >>> print(sk.from_sequence([{"n": 1}, {"n": None}]).info())
        from_sequence(<builtins.list of 2>)
        rows: 2, of 2 in 1 files (0 bytes)
        <BLANKLINE>
        file             visible  rows
        <builtins.list>  2        2
        <BLANKLINE>
        column  type   present (of the first 2)
        n       int64  1
    """

    expression: str
    """The expression that makes the dataset, as ``repr`` shows it."""

    rows: int
    """The number of rows of an epoch."""

    files: tuple[FileInfo, ...]
    """The files of the sources; empty if a record is made of several (batch, zip)."""

    columns: tuple[ColumnInfo, ...]
    """The columns of the records; empty if records are not dicts."""

    looked_at: int
    """The number of records, from the first on, that were read to find the columns."""

    def __str__(self) -> str:
        """Return a table of files and one of columns."""
        whole, size = sum(file.rows for file in self.files), sum(file.bytes for file in self.files)
        of_files = f", of {whole:,} in {len(self.files):,} files ({_size(size)})" if self.files else ""
        lines = [self.expression, f"rows: {self.rows:,}{of_files}"]
        if self.files:
            rows = [(file.name, f"{file.visible:,}", f"{file.rows:,}") for file in self.files[:_MOST_FILES]]
            lines += ["", *_table(("file", "visible", "rows"), rows)]
            if len(self.files) > _MOST_FILES:
                lines.append(f"and {len(self.files) - _MOST_FILES:,} more files")
        if self.columns:
            present = f"present (of the first {self.looked_at:,})"
            told = [(column.name, column.type, f"{column.present:,}") for column in self.columns]
            lines += ["", *_table(("column", "type", present), told)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tables of ``str``."""
        return preformatted(lambda: str(self), self)


def info_of(dataset: Node) -> Info:
    """Return the summary of a dataset; see ``Dataset.info``."""
    rows = known_size(dataset, "info()")
    records = dataset.fetch(np.arange(min(rows, LOOKED_AT), dtype=np.int64))
    return Info(
        dataset.expression(),
        rows,
        tuple(_files(dataset, rows)),
        tuple(_columns(dataset, records)),
        len(records),
    )


def _files(dataset: Node, size: int) -> Iterator[FileInfo]:
    visible: dict[str, int] = {}
    try:
        for start in range(0, size, _AT_ONCE):
            positions = np.arange(start, min(start + _AT_ONCE, size), dtype=np.int64)
            origins = dataset.plan(positions).origins()
            counts: NDArray[np.intp] = np.bincount(origins.files, minlength=len(origins.names))
            for name, count in zip(origins.names, counts.tolist(), strict=True):
                visible[name] = visible.get(name, 0) + count
    except InvalidArgument:
        return
    for leaf in leaves_of(dataset):
        for number, file in enumerate(leaf.arguments(None).get("files", ())):
            size_of_file = data_size(leaf, number) or 0
            yield FileInfo(file["name"], file["records"], visible.pop(file["name"], 0), size_of_file)
        if "files" not in leaf.arguments(None):
            place = dataset_place(leaf)
            yield FileInfo(place, leaf.size, visible.pop(place, 0), 0)


def dataset_place(leaf: Any) -> str:
    """Return a text in angle brackets for the file of a source that has no file."""
    return str(getattr(leaf, "place", f"<{leaf.kind}>"))


def _columns(dataset: Node, records: list[Any]) -> Iterator[ColumnInfo]:
    there = [record for record in records if record is not HOLE]
    if not all(isinstance(record, dict) for record in there):
        return
    present: dict[str, int] = {}
    for record in there:
        for name, value in record.items():
            present[name] = present.get(name, 0) + (value is not None)
    try:
        types = {field.name: str(field.type) for field in schema_of(dataset)}
    except (BadValue, MissingDependency):
        types = {}
    for name in dict.fromkeys([*types, *present]):
        yield ColumnInfo(name, types.get(name, "?"), present.get(name, 0))


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < _UNIT or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == _UNITS[0] else f"{count:.1f} {unit}"
        count /= _UNIT
    raise AssertionError


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
