"""Headers of an archive that a walk has followed: they are checked at once, and members are made of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.formats.tar.header import BLOCK_BYTES, PAX, TYPE_AT, header_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HeaderBatch", "Members"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Consecutive regular files and hard links of an archive, at most 1,024, in its order."""

    starts: NDArray[np.uint64]
    """The offset of the first extended header of each member, or of its header if it has no other."""

    payloads: NDArray[np.uint64]
    """The offset of each payload; of a hard link, that of the member it leads to, which lies before it."""

    sizes: NDArray[np.uint64]
    """The number of bytes of each payload."""

    names: list[bytes]
    """The name of each member, without final slashes."""


@final
@dataclass(slots=True)
class HeaderBatch:
    """Headers in the order of the archive, extended ones among them; a header's number is its place here."""

    heads: list[bytes] = field(default_factory=list)
    """The blocks of the headers."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    """The offset of each header."""

    sizes: array[int] = field(default_factory=lambda: array("q"))
    """The size of the payload behind each header if it is that of a member, else -1."""

    starts: dict[int, int] = field(default_factory=dict)
    """By the number of a header, the offset of the first extended one before it, or its own.

    A header that is not here begins its member, but for one directly behind a PAX header.
    """

    names: dict[int, bytes] = field(default_factory=dict)
    """The names of members that do not stand in their headers."""

    links: dict[int, bytes] = field(default_factory=dict)
    """The targets of hard links."""

    bodies: list[bytes] = field(default_factory=list)
    """The data of extended headers."""

    def add(self, head: bytes, offset: int) -> int:
        """Add a header that is none of a member so far, and return its number."""
        self.heads.append(head)
        self.offsets.append(offset)
        self.sizes.append(-1)
        return len(self.heads) - 1

    def member_rows(self) -> NDArray[np.int64]:
        """Return the numbers of the headers that are those of members."""
        return np.flatnonzero(np.frombuffer(self.sizes, np.int64) >= 0)

    def names_of(self, heads: NDArray[np.uint8], rows: NDArray[np.int64]) -> list[bytes]:
        """Return the names of members.

        Args:
            heads: the headers, one a row, uint8, shape ``(n, 512)``.
            rows: the numbers of the headers of the members.
        """
        names = header_names(heads if rows.size == len(heads) else heads[rows])
        if self.names:
            names = [self.names.get(row, name) for row, name in zip(rows.tolist(), names, strict=True)]
        return names

    def members(self, heads: NDArray[np.uint8]) -> Members:
        """Return the members, hard links without payload, of headers that were checked, one a row."""
        sizes, offsets = np.frombuffer(self.sizes, np.uint64), np.frombuffer(self.offsets, np.uint64)
        rows = self.member_rows()
        starts = offsets.copy()
        behind_pax = np.flatnonzero(heads[:-1, TYPE_AT] == PAX) + 1
        starts[behind_pax] = offsets[behind_pax - 1]
        for row, start in self.starts.items():
            starts[row] = start
        payloads = offsets[rows] + np.uint64(BLOCK_BYTES)
        return Members(starts[rows], payloads, sizes[rows], self.names_of(heads, rows))
