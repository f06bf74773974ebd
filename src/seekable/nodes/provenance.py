"""Which row of which file records are: many at a time, and without what else a ``Location`` tells."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s


__all__ = ["Origins", "file_matches", "gathered", "of_places"]


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each of some records comes from.

    Example:
        >>> import seekable as sk
        >>> sk.from_sequence("abc").plan(np.array([2, 0])).origins().rows.tolist()
        [2, 0]
    """

    paths: tuple[str, ...]
    """The absolute paths of the files; in angle brackets what is no file."""

    names: tuple[str, ...]
    """What each file is called below the folder that was opened, or its path where that is not known."""

    files: Int64s
    """The number of each record's file among them."""

    rows: Int64s
    """The number of each record in its file, from 0."""

    def take(self, start: int, stop: int) -> Origins:
        """Return those of a run of the records."""
        return Origins(self.paths, self.names, self.files[start:stop], self.rows[start:stop])


def of_places(places: Sequence[Any]) -> Origins:
    """Return the origins of records whose places are known one by one.

    Raises:
        InvalidArgument: a record is made of several.
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
    """Return the origins of several parts as one, each put at the places of its records."""
    paths: list[str] = []
    names: list[str] = []
    files, rows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for at, part in parts:
        files[at], rows[at] = part.files + len(paths), part.rows
        paths += part.paths
        names += part.names
    return Origins(tuple(paths), tuple(names), files, rows)


def file_matches(pattern: str, *, path: str, name: str) -> bool:
    """Tell whether a pattern means a file.

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
