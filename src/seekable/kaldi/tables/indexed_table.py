"""Tables of which seekable has an index: an entry is found without reading the table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, final

from seekable.errors import CorruptTable, IndexStale
from seekable.kaldi.files.filenames import check_rxfilename
from seekable.kaldi.objects.tokens import decoded
from seekable.kaldi.tables.archive import KEY_AFTER_SPACES
from seekable.kaldi.tables.local_data import open_plain
from seekable.kaldi.tables.script import key_and_xfilename, line_problem
from seekable.kaldi.tables.table_index import find_table_index

if TYPE_CHECKING:
    import io

    from seekable.kaldi.files.specifiers import Rspecifier
    from seekable.kaldi.holders.holder import Holder
    from seekable.kaldi.tables.table_index import TableIndex

__all__ = ["IndexedTable", "find_indexed_table"]

_HEAD_BYTES: Final = 8 << 10
"""The bytes of an entry that are read to find the end of its key, beside the key."""


_SHOWN_BYTES: Final = 80


@final
class IndexedTable:
    """The entries of an archive or a script by their keys. Safe from threads, and after a fork."""

    def __init__(self, index: TableIndex, file: io.FileIO, path: str, *, is_script: bool) -> None:
        """Take an index, and a table that it describes.

        Args:
            index: the index of the table.
            file: the table. Its descriptor is duplicated.
            path: its path.
            is_script: True for a script, False for an archive.
        """
        self._index = index
        self._path = path
        self._is_script = is_script
        self._descriptor = os.dup(file.fileno())

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._index)

    def find(self, key: str) -> str | None:
        """Return the extended filename of the object of a key, maybe with a range; None without such a key.

        Raises:
            CorruptTable: several entries have the key, or a line has no filename.
            IndexStale: the table was changed after the reader was made.
        """
        ranges = self._index.ranges(key)
        if not ranges:
            return None
        if len(ranges) > 1:
            raise CorruptTable(
                f"{self._path!r}: the key {key!r} is there twice, at byte {ranges[0][0]:,} and at byte "
                f"{ranges[1][0]:,}, so it cannot be looked up: make the keys unique, or read the table "
                f"in its order"
            )
        start, stop = ranges[0]
        if self._is_script:
            line = os.pread(self._descriptor, stop - start, start)
            fields = key_and_xfilename(line)
            if fields is None:
                problem, shown = line_problem(line), line[:_SHOWN_BYTES]
                raise CorruptTable(f"{self._path!r}: the line at byte {start:,} {problem}: {shown!r}")
            return decoded(fields[1])
        head = os.pread(self._descriptor, min(stop - start, len(key) * 4 + _HEAD_BYTES), start)
        found = KEY_AFTER_SPACES.match(head)
        if found is None:
            raise IndexStale(f"{self._path!r} was changed after it was opened: make a new reader")
        return f"{self._path}:{start + found.end()}"

    def __del__(self) -> None:
        """Close the descriptor of the table."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


def find_indexed_table(specifier: Rspecifier, holder: Holder) -> IndexedTable | None:
    """Return a table of which seekable has an index that is valid; None for others.

    Options ``o`` and ``s`` promise what only a reader of all entries can check, so no index is used then.

    Args:
        specifier: the table.
        holder: reads its objects.
    """
    path = specifier.rxfilename
    if specifier.once or specifier.sorted or check_rxfilename(path) != "file":
        return None
    is_script = specifier.kind == "scp"
    file = open_plain(path)
    if file is None:
        return None
    with file:
        index = find_table_index(path, "scp" if is_script else f"ark-{holder.name}")
        return None if index is None else IndexedTable(index, file, path, is_script=is_script)
