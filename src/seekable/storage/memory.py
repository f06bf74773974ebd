"""How much data can be kept in memory."""

from __future__ import annotations

import os

from seekable.errors import InvalidArgument

__all__ = ["CACHE_VARIABLE", "bytes_in_words", "cache_bytes"]

CACHE_VARIABLE = "SEEKABLE_CACHE_BYTES"

_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_STEP = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def cache_bytes() -> int:
    """Return how many bytes of data are taken to stay in memory once they were read.

    ``SEEKABLE_CACHE_BYTES``, or else half of the memory that this process may use: local files are kept by
    the operating system, which needs room for everybody.

    Raises:
        InvalidArgument: the variable holds no number of bytes.
    """
    chosen = os.environ.get(CACHE_VARIABLE, "")
    if not chosen:
        return memory_bytes() // 2
    if not chosen.isdecimal():
        message = f"{CACHE_VARIABLE} must be a number of bytes, such as {16 << 30} (got {chosen!r})"
        raise InvalidArgument(message)
    return int(chosen)


def memory_bytes() -> int:
    """Return how much memory this process may use: the machine's, or its control group's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in _GROUP_LIMITS if (limit := _limit(path)) is not None)])


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def bytes_in_words(count: int) -> str:
    """Return a number of bytes as a person reads it.

    Example:
        >>> bytes_in_words(1), bytes_in_words(999), bytes_in_words(1_234_567)
        ('1 byte', '999 bytes', '1.2 MB')
    """
    size, unit = float(count), 0
    while size >= _STEP and unit + 1 < len(_UNITS):
        size, unit = size / _STEP, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} byte{'s' * (count != 1)}"
