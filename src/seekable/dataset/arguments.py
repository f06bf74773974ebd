"""Checks of arguments: each names the argument, the rule and the value."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from seekable.errors import InvalidArgument, WrongType

__all__ = ["checked_count", "checked_seed"]


def checked_count(name: str, value: object, *, least: int) -> int:
    """Return an integer argument of at least ``least``.

    Raises:
        WrongType: it is no integer.
        InvalidArgument: it is too small.

    Example:
        >>> checked_count("size", 3, least=1)
        3
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        message = f"{name} must be an integer (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    number = operator.index(value)
    if number < least:
        message = f"{name} must be at least {least} (got {number})"
        raise InvalidArgument(message)
    return number


def checked_seed(value: object) -> int:
    """Return a seed, ``0 <= seed < 2**64``."""
    seed = checked_count("seed", value, least=0)
    if seed >= 1 << 64:
        message = f"seed must be below 2**64 (got {seed})"
        raise InvalidArgument(message)
    return seed
