"""The names of files are read here.

The natural order, in which ``part-9`` comes before ``part-10``; ``-of-3``, which says how many files belong
together; braces, as shells and WebDataset write them: ``train-{000..099}.tar``, ``{a,b}.jsonl``; and the
names of indexes, our own and those that other tools keep beside data files.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

INDEX_FOLDER = ".seekable"
"""The folder of our index, in the folder of the data: of a published one, in the store too."""

INDEX_SUFFIX = ".idx"
"""The end of the names of Lhotse's and Energon's indexes, after the whole name of a file: ``a.tar.idx``."""

_PICKLED = ".index"
"""The end of the names that wids gives to pickles, which are never read."""

_ARCHIVE = ".tar"
_SHARDS = "index.json"
"""The name that wids gives to its list of shards."""

_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")
_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?")

_LITERAL, _LITERAL_OUTSIDE = re.compile(r"[^{},]+"), re.compile(r"[^{}]+")

_MOST_PATHS = 10_000_000
"""The most paths that braces may stand for: more is a slip of the hand."""


def without_indexes(names: set[str]) -> set[str]:
    """Return names of files without those of the indexes beside them.

    Example:
        >>> sorted(without_indexes({"a.jsonl", "a.jsonl.idx", "b.idx", "c.0.tar", "c.0.tar.idx", "c.idx"}))
        ['a.jsonl', 'b.idx', 'c.0.tar']
        >>> sorted(without_indexes({"s/a.tar", "s/a.tar.index", "s/index.json", "index.json"}))
        ['index.json', 's/a.tar']
    """
    return names.difference([name + INDEX_SUFFIX for name in names], _beside_archives(names))


def _beside_archives(names: Iterable[str]) -> Iterator[str]:
    """Yield the names that wids gives to lists of shards and pickles, and DALI to indexes, cut at a dot."""
    for name in names:
        if name.lower().endswith(_ARCHIVE):
            folder, base = os.path.split(name)
            yield os.path.join(folder, _SHARDS)
            yield name + _PICKLED
            yield name[: -len(_ARCHIVE)] + INDEX_SUFFIX
            yield os.path.join(folder, base.partition(".")[0]) + INDEX_SUFFIX


_DIGITS = re.compile(r"([0-9]+)")
_NUMBERED = re.compile(r"(?P<number>\d{1,6})(?P<of>[-_.]of[-_.])(?P<count>\d{1,6})(?!\d)")
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Return the sort key of the natural order, in which digits compare as numbers.

    Names that are equal so far (``a1`` and ``a01``) are ordered as plain strings.

    Example:
        >>> sorted(["a10", "a9", "a09", "B1"], key=natural_key)
        ['B1', 'a09', 'a9', 'a10']
    """
    parts = enumerate(_DIGITS.split(name))
    return [int(part) if number % 2 else part for number, part in parts], name


def natural_sorted(names: Iterable[str]) -> list[str]:
    """Return names in the natural order.

    Example:
        >>> natural_sorted(["a10", "a9"])
        ['a9', 'a10']
    """
    unsorted = list(names)
    # Names that differ in nothing but digits are, as most shards are, in natural order when they are in
    # that of strings, which is found ten times as fast.
    return sorted(unsorted, key=None if _differ_in_digits_alone(unsorted) else natural_key)


def _differ_in_digits_alone(names: list[str]) -> bool:
    """Return True for names with the same characters in the same places, but for digits."""
    # All at once: a call for each of many names takes ten times as long.
    joined = "\0".join(names).encode("utf-8", "surrogatepass")
    shapes = joined.translate(_ANY_DIGIT).split(b"\0")
    return len(set(shapes)) <= 1 and len(shapes) == max(1, len(names))


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
        if "of" in last and (found := _NUMBERED.search(last)):
            key = folder + slash, last[: found.start()], found["count"]
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


def has_braces(path: str) -> bool:
    """Return True if a path has braces that stand for several texts.

    Example:
        >>> has_braces("x-{0..9}.tar"), has_braces("x{1}.tar"), has_braces("{}.tar")
        (True, False, False)
    """
    return _BRACES.search(path) is not None


def expanded(path: str) -> list[str]:
    """Return the paths that a path with braces stands for, in the order in which they are written.

    ``{000..099}`` counts with as many digits as the wider end has, if either begins with 0; ``{0..10..5}``
    counts in steps, ``{3..1}`` down, ``{a..e}`` letters; ``{a,b}`` lists texts, which may have braces
    themselves. ``{}`` and ``{1}`` stand for themselves.

    Raises:
        InvalidArgument: a brace is not closed, or was not opened.

    Example:
        >>> expanded("x-{08..10}.{a,b}")
        ['x-08.a', 'x-08.b', 'x-09.a', 'x-09.b', 'x-10.a', 'x-10.b']
        >>> expanded("{01..100..50}{}"), expanded("{b,{1..2}}")
        (['001{}', '051{}'], ['b', '1', '2'])
    """
    texts, at = _sequence(path, 0, path)
    assert at == len(path)
    return texts


def _sequence(text: str, at: int, path: str, *, inside: bool = False) -> tuple[list[str], int]:
    """Return the texts up to the end, or inside of braces up to a comma or the closing brace."""
    found = [""]
    while at < len(text):
        if inside and text[at] in ",}":
            break
        if text[at] == "}":
            raise InvalidArgument(_unbalanced(path, at))
        if text[at] == "{":
            some, at = _group(text, at, path)
        else:
            literal = _LITERAL.match(text, at) if inside else _LITERAL_OUTSIDE.match(text, at)
            assert literal is not None
            some, at = [literal.group()], literal.end()
        if len(found) * len(some) > _MOST_PATHS:
            message = f"{path!r} stands for more than {_MOST_PATHS:,} paths"
            raise InvalidArgument(message)
        found = [one + other for one, other in itertools.product(found, some)]
    return found, at


def _group(text: str, at: int, path: str) -> tuple[list[str], int]:
    """Return the texts that braces stand for, and the index after them."""
    start, choices = at, []
    while True:
        some, at = _sequence(text, at + 1, path, inside=True)
        choices.append(some)
        if at == len(text):
            raise InvalidArgument(_unbalanced(path, start))
        if text[at] == "}":
            break
    if len(choices) > 1:
        return list(itertools.chain.from_iterable(choices)), at + 1
    counted = _counted(text[start + 1 : at])
    return counted or [f"{{{one}}}" for one in choices[0]], at + 1


def _counted(inner: str) -> list[str]:
    """Return the numbers or letters of a range; none if the text is not a range."""
    if (match := _NUMBERS.fullmatch(inner)) is not None:
        first, last, step = match.groups()
        padded = any(re.match(r"-?0\d", end) for end in (first, last))
        width = max(len(first), len(last)) if padded else 0
        return [f"{number:0{width}d}" for number in _range(int(first), int(last), step)]
    if (match := _LETTERS.fullmatch(inner)) is not None:
        first, last, step = match.groups()
        return [chr(code) for code in _range(ord(first), ord(last), step)]
    return []


def _range(first: int, last: int, step: str | None) -> range:
    by = abs(int(step or 1)) or 1
    if abs(last - first) // by > _MOST_PATHS:
        message = f"the braces from {first} to {last} stand for more than {_MOST_PATHS:,} paths"
        raise InvalidArgument(message)
    return range(first, last + 1, by) if first <= last else range(first, last - 1, -by)


def _unbalanced(path: str, at: int) -> str:
    side = "not closed" if path[at] == "{" else "closed without being opened"
    return f"{path!r} has a brace at character {at} that is {side}; a glob (*, ?, [...]) needs no braces"
