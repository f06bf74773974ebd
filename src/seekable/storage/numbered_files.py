"""Names of files that say how many belong together, as ``train-00001-of-00003.parquet`` does. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["check_complete"]

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>\d{1,6})(?P<of>[-_.]of[-_.])(?P<count>\d{1,6})(?!\d)")


def check_complete(
    names: Iterable[str], where: str, *, wanted: Callable[[str], object] = lambda _: True
) -> None:
    """Check that of the files that are numbered ``-I-of-N`` none is missing.

    The first is number 0, or number 1 where there is a number N.

    Args:
        names: the names of the files, with folders.
        where: what they are in, for the error.
        wanted: is true of the last part of names that were asked for, where that is not all.

    Raises:
        DataNotFound: one is missing; the error names it.

    Example:
        >>> check_complete(["data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl"], "x")
        >>> check_complete(["train-00001-of-00003.jsonl"], "'data'")
        Traceback (most recent call last):
        ...
        seekable.errors.DataNotFound: 'data' has no 'train-00000-of-00003.jsonl', and ...
    """
    sets: dict[tuple[str, str, str], dict[int, tuple[str, re.Match[str]]]] = {}
    for name in names:
        folder, slash, last = name.rpartition("/")
        if found := _NUMBERED.match(last):
            key = folder + slash, found["before"], found["count"]
            sets.setdefault(key, {})[int(found["number"])] = name, found
    for (folder, before, count), members in sets.items():
        total, (example, found) = int(count), next(iter(members.values()))
        first = 1 if total in members and 0 not in members else 0
        if max(members) >= total + first:
            continue  # the numbers mean something else
        width, rest = len(found["number"]), found.string[found.end() :]
        made = (
            f"{before}{number:0{width}}{found['of']}{count}{rest}"
            for number in range(first, total + first)
            if number not in members
        )
        if missing := next(filter(wanted, made), None):
            message = (
                f"{where} has no {folder + missing!r}, and {example!r} says that {total:,} files belong "
                f"together; {len(members):,} are there. Copy the rest, or name those to read in a list"
            )
            raise DataNotFound(message)
