"""Tables of which seekable has an index: an entry is found without reading the table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, final

from seekable.errors import IndexStale
from seekable.formats.kaldi.files.filenames import check_rxfilename
from seekable.formats.kaldi.objects.tokens import decoded
from seekable.formats.kaldi.tables.archive import KEY_AFTER_SPACES
from seekable.formats.kaldi.tables.local_data import open_plain
from seekable.formats.kaldi.tables.script import key_and_xfilename
from seekable.formats.kaldi.tables.table_index import find_table_index

if TYPE_CHECKING:
    import io

    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.table_index import TableIndex

__all__ = ["IndexedTable", "find_indexed_table"]

_HEAD_BYTES: Final = 8 << 10
"""The bytes of an entry that are read to find the end of its key, beside the key."""


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
            IndexStale: the table was changed after the reader was made.
        """
        ranges = self._index.ranges(key)
        if not ranges:
            return None
        ((start, stop),) = ranges
        if self._is_script:
            fields = key_and_xfilename(os.pread(self._descriptor, stop - start, start))
            if fields is not None:
                return decoded(fields[1])
        else:
            head = os.pread(self._descriptor, min(stop - start, len(key) * 4 + _HEAD_BYTES), start)
            if found := KEY_AFTER_SPACES.match(head):
                return f"{self._path}:{start + found.end()}"
        raise IndexStale(f"{self._path!r} was changed after it was opened: make a new reader")

    def __del__(self) -> None:
        """Close the descriptor of the table."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


def find_indexed_table(specifier: Rspecifier, holder: Holder) -> IndexedTable | None:
    """Return a table of which seekable has an index that is valid; None for others.

    An index answers only what a reader of all entries would answer too. So none is used where such a reader
    finds a damaged entry, or a key twice; with options ``o`` and ``s``, which promise what only it can check;
    and for archives with option ``p``, of which it takes all for missing that follows an entry that cannot
    be read.

    Args:
        specifier: the table.
        holder: reads its objects.
    """
    path = specifier.rxfilename
    is_script = specifier.kind == "scp"
    reads_all = specifier.once or specifier.sorted or (specifier.permissive and not is_script)
    if reads_all or check_rxfilename(path) != "file":
        return None
    file = open_plain(path)
    if file is None:
        return None
    with file:
        index = find_table_index(path, "scp" if is_script else f"ark-{holder.name}")
        if index is None or not index.is_whole:
            return None
        return IndexedTable(index, file, path, is_script=is_script)
