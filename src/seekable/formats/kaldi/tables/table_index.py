"""The index of an archive or a script, where seekable has made one: the bytes of the entries of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable._arguments import checked_path
from seekable.index.digest import key_hash
from seekable.index.key_files import (
    Keyed,
    descriptions,
    keys_of_entries,
    open_pairs,
    places,
    read_files,
    read_head,
    read_keys,
)
from seekable.index.opening import find_indexed

if TYPE_CHECKING:
    import os

    from seekable.index.fileset import FileSet
    from seekable.index.key_files import KeyIndex

__all__ = ["TableIndex", "find_table_index"]

_MOST_SPACES = 4096
_SPACES = b" \t\n\r"


@final
class TableIndex:
    """The entries of one archive or script by key. Safe from threads and after fork."""

    def __init__(self, files: FileSet, keys: KeyIndex, first: int) -> None:
        """Take the index of a table; callers use `find_table_index`.

        Args:
            files: the one file.
            keys: the index of its keys, and maybe of those of other files.
            first: the row of its first entry in that index.
        """
        self._files = files
        self._keys = keys
        self._first = first
        self._count = int(files.records[0])

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._count

    @property
    def is_whole(self) -> bool:
        """True if all entries can be found, and each has a key of its own; also in the files indexed with it.

        A reader of all the table says no of a key only then.
        """
        return self._keys.is_whole

    def ranges(self, key: str) -> list[tuple[int, int]]:
        """Return the first byte of each entry of a key, and the byte behind the entry, in the file's order.

        The range of an entry of an archive begins with its key; that of a script is a line with its end.

        Raises:
            IndexStale: the file was changed after the index was found.
        """
        mapped = self._files.mapped(0)
        mapped.check()
        raw = key.encode("utf-8", "surrogateescape")
        found = []
        for row in self._keys.rows(key_hash(key)):
            number = row - self._first
            if not 0 <= number < self._count:
                continue
            start, stop = self._files.range(0, number)
            head = bytes(mapped.view[start : min(stop, start + len(raw) + _MOST_SPACES)]).lstrip()
            if head.startswith(raw) and head[len(raw) : len(raw) + 1] in _SPACES:
                found.append((start, stop))
        return found

    def close(self) -> None:
        """Close the file. It is opened again when a key is looked up."""
        self._files.close()


def find_table_index(path: str | os.PathLike[str], format_name: str) -> TableIndex | None:
    r"""Return the index of an archive or a script, None if there is none that is valid; none is built.

    An index is valid if the file has the size and the modification time that it had when it was indexed.

    Args:
        path: the path of the file, which is not compressed.
        format_name: ``"scp"``, or ``"ark-"`` and the name of the holder.

    Raises:
        DataNotFound: there is no such file.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.ark")
        ...     _ = path.write_bytes(b"utt1 7 \nutt2 8 \n")
        ...     before = find_table_index(path, "ark-int32")
        ...     _ = sk.open(path, format=sk.formats.Kaldi(holder="int32"))
        ...     before, find_table_index(path, "ark-int32").ranges("utt2")
        (None, [(8, 16)])
    """
    files = find_indexed(checked_path(path), format_name=format_name)
    if files is None:
        return None
    keyed = Keyed.of(files, keys_of_entries(format_name))
    for folder in places(files, index_dir=None):
        if (keys := read_keys(folder, keyed)) is not None:
            return TableIndex(files, keys, 0)
        if (found := _among_others(folder, keyed)) is not None:
            return TableIndex(files, *found)
    return None


def _among_others(folder: str, keyed: Keyed) -> tuple[KeyIndex, int] | None:
    """Return the index of keys of several files, one of which is the file, and the row of its first entry."""
    wanted = keyed.contents[0], int(keyed.records[0])
    for path in descriptions(folder):
        head = read_head(path)
        if head is None or head.made != keyed.made:
            continue
        files, first = read_files(path) or (), 0
        for file in files:
            if (file.content, file.records) == wanted:
                records = sum(each.records for each in files)
                if (keys := open_pairs(folder, head, records=records)) is not None:
                    return keys, first
            first += file.records
    return None
