"""The file and row of each of many records, as arrays; a ``Location`` holds these for one record."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.storage import addresses
else:
    addresses = lazy("seekable.storage.addresses")


__all__ = ["Origins", "file_matches", "gathered", "of_files", "of_places"]


@dataclass(frozen=True, slots=True)
class Origins:
    """The file and row of each of some records.

    Example:
        >>> import seekable as sk
        >>> sk.from_sequence("abc").plan(np.array([2, 0])).origins().rows.tolist()
        [2, 0]
    """

    paths: tuple[str, ...]
    """The absolute paths of the files; a source in memory has a name in angle brackets."""

    names: tuple[str, ...]
    """The path of each file below the opened folder; its absolute path if that folder is unknown."""

    files: Int64s
    """The number in ``paths`` of each record's file: int64."""

    rows: Int64s
    """The number of each record in its file, from 0: int64."""

    def take(self, start: int, stop: int) -> Origins:
        """Return the origins of the records ``start`` to ``stop``."""
        return Origins(self.paths, self.names, self.files[start:stop], self.rows[start:stop])


def of_files(files: FileSet, numbers: Int64s, rows: Int64s) -> Origins:
    """Return the origins of records of indexed files.

    Args:
        files: the files.
        numbers: the number of each record's file, int64.
        rows: the number of each record, counted over all files, int64.
    """
    present, used = np.unique(numbers, return_inverse=True)
    paths = tuple(files.shown_path(file) for file in present.tolist())
    names = tuple(map(files.name, present.tolist()))
    if files.has_objects:
        names = tuple(map(addresses.plain_name, paths, names))
    return Origins(paths, names, used.astype(np.int64), rows - files.starts[numbers])


def of_places(places: Sequence[Any]) -> Origins:
    """Return the origins of records whose locations are given one by one.

    Raises:
        InvalidArgument: a record is made of several others.
    """
    numbers: dict[str, int] = {}
    for place in places:
        if isinstance(place, list | tuple):
            message = (
                "the file of a record was asked for, and here a record is made of several (by zip or batch): "
                "ask before they are put together"
            )
            raise InvalidArgument(message)
        numbers.setdefault(place.path, len(numbers))
    paths = tuple(numbers)
    files = np.array([numbers[place.path] for place in places], dtype=np.int64)
    return Origins(paths, paths, files, np.array([place.row for place in places], dtype=np.int64))


def gathered(size: int, parts: Iterable[tuple[NDArray[np.intp], Origins]]) -> Origins:
    """Return the origins of several parts together, each at the given indices."""
    paths: list[str] = []
    names: list[str] = []
    files, rows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for at, part in parts:
        files[at], rows[at] = part.files + len(paths), part.rows
        paths += part.paths
        names += part.names
    return Origins(tuple(paths), tuple(names), files, rows)


def file_matches(pattern: str, *, path: str, name: str) -> bool:
    """Return True if a file matches a pattern.

    A pattern that begins with ``/`` is compared with the absolute path. Any other one is compared with the
    name below the folder that was opened, and with that name's last part. ``*`` stands for anything, ``/``
    included; ``?`` and ``[...]`` are as in a shell.

    Example:
        >>> file_matches("*2024*", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        True
        >>> file_matches("a.jsonl", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        True
        >>> file_matches("*data*", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        False
    """
    if pattern.startswith("/"):
        return fnmatch.fnmatchcase(path, pattern)
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(os.path.basename(name), pattern)
