"""The window of the bytes of an archive that a walk looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from seekable.index.finder import ForwardReader

__all__ = ["HeaderWindow"]

_NEAR_BYTES = 2 << 10
_NEAR_READ = 256 << 10
"""The bytes to read where headers are less than `_NEAR_BYTES` apart, extended ones counted."""

_FAR_READ = 6 << 10
"""The bytes to read elsewhere: the headers of a sample of small members, and of the large one behind it."""

_NEWEST_SHARE = 0.25
"""How much the newest distance between headers weighs in the mean."""

_MOST_OFFSET = 1 << 62


@final
class HeaderWindow:
    """A part of an archive, which moves from header to header; it is long where they are near each other."""

    __slots__ = ("_at", "_headers", "_source", "_spacing", "base", "buffer")

    def __init__(self, source: ForwardReader) -> None:
        """Begin with an empty window."""
        self.buffer = b""
        """The bytes of the window."""
        self.base = 0
        """The offset of the first of them."""
        self._source = source
        self._at = 0
        self._headers = 0
        self._spacing = 0.0

    def fill(self, at: int, count: int, *, headers: int) -> bool:
        """Move the window, so that it begins one byte before an offset.

        That byte is the last of the data that end there, so that a file which ends before it is told from one
        which ends there.

        Args:
            at: the offset.
            count: the number of bytes that are needed from there on, besides the next header.
            headers: the number of headers before the offset.

        Returns:
            False if the file ends before that byte.
        """
        if headers > self._headers:
            newest = (at - self._at) / (headers - self._headers)
            self._spacing += (newest - self._spacing) * _NEWEST_SHARE
            self._at, self._headers = at, headers
        self.base = max(at - 1, 0)
        count += _NEAR_READ if self._spacing < _NEAR_BYTES else _FAR_READ
        self.buffer = self._source.read(self.base, count + 1) if at < _MOST_OFFSET else b""
        return bool(self.buffer) or not at

    def take(self, at: int, count: int) -> bytes:
        """Return bytes of the window from an offset on; fewer where it ends."""
        return self.buffer[at - self.base : at - self.base + count]
