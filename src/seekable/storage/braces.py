"""Braces in paths, as shells and WebDataset write them: ``train-{000..099}.tar``, ``{a,b}.jsonl``."""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["expanded", "expanded_paths", "has_braces"]

_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")
_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?")

_LITERAL, _LITERAL_OUTSIDE = re.compile(r"[^{},]+"), re.compile(r"[^{}]+")

_MAGIC = re.compile(r"[*?\[]")

_MOST_PATHS = 10_000_000
"""The most paths that braces may stand for: more is a slip of the hand."""


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


def expanded_paths(path: str, *, hint: Callable[[str], str]) -> list[str]:
    """Return the absolute paths and globs that a path stands for: itself if it exists, or has no braces.

    Args:
        path: the path as the user wrote it; what its braces stand for may be relative or absolute.
        hint: returns the advice for a path that does not exist.

    Raises:
        DataNotFound: some of the paths do not exist.
        InvalidArgument: a brace is not closed, or was not opened.
    """
    if not has_braces(path) or os.path.lexists(path):
        return [os.path.abspath(path)]
    paths = [os.path.abspath(each) for each in expanded(path)]
    lost = [each for each in paths if not _MAGIC.search(each) and not os.path.lexists(each)]
    if lost:
        message = (
            f"of the {len(paths):,} paths that {path!r} stands for, {len(lost):,} do not exist; the first of "
            f"these is {lost[0]!r}: {hint(lost[0])}"
        )
        raise DataNotFound(message)
    return paths


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
    """Return the texts that braces stand for, and the index behind them."""
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
    """Return the numbers or letters of a range; none if it is no range."""
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
