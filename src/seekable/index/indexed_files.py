"""Some files of one index: the parts that a `FileSet` is made of, and all that is pickled of it.

An index can be replaced while a `FileSet` is pickled. `RowIdentity` finds its files again in a later table of
the same index.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from seekable._typing import Value
from seekable.errors import IndexStale
from seekable.index.catalog import open_table, read_table
from seekable.index.offsets import Offsets, open_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.file_table import FileTable
    from seekable.storage.access import CacheChoice

_MOST_NAMED = 256


class RowIdentity(msgspec.Struct, frozen=True):
    """The identity of rows in a table, by which a later table of the index has them.

    Up to 256 files are named. More are not, because a pickle is to be small: they are identified by the
    generation of the table and one digest. A later table has the rows of that generation in the same order,
    among newer ones, unless one of them was changed or removed, and then the digest differs.
    """

    generation: int
    """The highest generation in the table."""

    digest: int
    """The digest of names, formats and contents of the files, in their order."""

    files: tuple[tuple[str, str], ...]
    """The name and the format of each file; empty for more than 256 files."""

    @classmethod
    def of(cls, table: FileTable, rows: NDArray[np.int64]) -> RowIdentity:
        """Return the identity of some rows of a table."""
        named = rows.tolist() if len(rows) <= _MOST_NAMED else []
        files = tuple([(table.name(row), table.format(row)) for row in named])
        return cls(int(table.column("generation").max(initial=0)), table.digest_of(rows), files)

    def rows_in(self, table: FileTable, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the rows of the files in a later table, None if it does not have all of them as they were.

        Args:
            table: the later table.
            rows: the rows of the files in the table of this identity.
        """
        if self.files:
            found = [int(table.rows([name], format_name=form)[0]) for name, form in self.files]
            later = np.array(found, np.int64)
            return later if (later >= 0).all() and table.digest_of(later) == self.digest else None
        # Either the table has grown since, or the index was lost and built again, its generations too.
        for there in (table.column("generation") <= self.generation, np.ones(table.files, bool)):
            present = np.flatnonzero(there)
            if int(rows.max(initial=-1)) < len(present) and table.digest_of(present[rows]) == self.digest:
                return present[rows]
        return None


class IndexedFiles(Value, frozen=True, eq=False):
    """Some rows of one table, each of them a file."""

    root: str
    """The absolute folder that the names of the files are relative to."""

    folder: str
    """The folder of the index."""

    table: str
    """The name of the table file in the index folder."""

    rows: range | NDArray[np.int32]
    """The rows, in the order of the records of their files."""

    identity: RowIdentity
    """The identity of the rows, for a later table."""

    by_version: bool = False
    """True if the files are objects that are read by their versions, which the index folder has."""

    cache: CacheChoice | None = None
    """The cache on disk that the dataset of objects has chosen; None for the one that all others share."""


class OpenIndexedFiles(Value, frozen=True, eq=False):
    """Some rows of one table, with the table and the segments of their offsets open."""

    part: IndexedFiles
    """The rows that are open."""

    table: FileTable
    """The table of the rows."""

    offsets: dict[int, Offsets]
    """The open segments, by their numbers in the table."""


def indexed_files(
    root: str, folder: str, table: FileTable, rows: NDArray[np.int64], *, cache: CacheChoice | None = None
) -> IndexedFiles:
    """Return rows of a table, with the identity by which a later table has them."""
    identity = RowIdentity.of(table, rows)
    return IndexedFiles(root, folder, table.file_name, _compact(rows), identity, cache=cache)


def each_file(opened: OpenIndexedFiles) -> list[IndexedFiles]:
    """Return a part for each file of an open part."""
    part, rows = opened.part, row_numbers(opened.part)
    return [_with_rows(part, opened.table, rows[at : at + 1]) for at in range(len(rows))]


def open_indexed(part: IndexedFiles) -> OpenIndexedFiles:
    """Open the table of some files; or a later table of the index, if that table was replaced.

    Raises:
        IndexStale: the index is gone, or no longer has the files as they were.
    """
    table = open_table(part.folder, part.table)
    opened = _opened(part, table) if table else None
    return opened or _open_again(part)


def refreshed(opened: OpenIndexedFiles) -> IndexedFiles:
    """Return some files as rows of the present table, so that another process can open them.

    Raises:
        IndexStale: the index is gone, or no longer has the files as they were.
    """
    part = opened.part
    if os.path.exists(os.path.join(part.folder, part.table)):
        return part
    return _open_again(part).part


def row_numbers(part: IndexedFiles) -> NDArray[np.int64]:
    """Return the rows as an int64 array."""
    return np.asarray(part.rows, np.int64)


def _opened(part: IndexedFiles, table: FileTable) -> OpenIndexedFiles | None:
    # With counts, np.unique does not import numpy.ma, which takes longer than all else here.
    distinct, _ = np.unique(table.column("segment", row_numbers(part)), return_counts=True)
    numbers = distinct.tolist()
    try:
        offsets = {number: open_offsets(part.folder, table.segments[number]) for number in numbers}
    except FileNotFoundError:
        return None
    return OpenIndexedFiles(part, table, offsets)


def _open_again(part: IndexedFiles) -> OpenIndexedFiles:
    table = read_table(part.folder)
    rows = part.identity.rows_in(table, row_numbers(part)) if table else None
    if table is None or rows is None:
        raise IndexStale(
            f"the index in {part.folder!r} that this dataset was opened with ({part.table}) is gone, and "
            f"the present one does not have its {len(part.rows)} files as they were; open the dataset again"
        )
    opened = _opened(_with_rows(part, table, rows), table)
    if opened is None:
        raise IndexStale(f"the index in {part.folder!r} is damaged; open the dataset again to rebuild it")
    return opened


def _with_rows(part: IndexedFiles, table: FileTable, rows: NDArray[np.int64]) -> IndexedFiles:
    """Return a part with other rows, of the same table or of a later one."""
    identity = RowIdentity.of(table, rows)
    return structs.replace(part, table=table.file_name, rows=_compact(rows), identity=identity)


def _compact(rows: NDArray[np.int64]) -> range | NDArray[np.int32]:
    """Return rows in a form that is small when it is pickled: a range if they are consecutive."""
    first = int(rows[0]) if len(rows) else 0
    if (rows == np.arange(first, first + len(rows))).all():
        return range(first, first + len(rows))
    return rows.astype(np.int32)
