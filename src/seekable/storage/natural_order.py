"""The natural order of names, in which ``part-9`` comes before ``part-10``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["natural_key", "natural_sorted"]

_DIGITS = re.compile(r"([0-9]+)")
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
