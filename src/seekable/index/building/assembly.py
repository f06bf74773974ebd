"""Putting the parts of a file together, whatever the order in which they were scanned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.index.building.spool import OffsetSpool
from seekable.index.digest import content_digest

if TYPE_CHECKING:
    from seekable.index.building.scan import PartScan


@dataclass(frozen=True, slots=True, eq=False)
class FileScan:
    """What was found in one file."""

    size: int
    """How many bytes it has."""

    mtime_ns: int
    """When it was modified."""

    indexed_ns: int
    """When the scan began."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: OffsetSpool
    """Where in its content its records start, and where the last one ends."""

    points: bytes
    """Of a compressed file, the table of where it can be entered; else nothing."""

    schema: bytes
    """Of a table, its columns; else nothing."""

    records: int
    """How many records it has."""


class Assembly:
    """One file of which parts arrive; those that are early wait, the others go on to the spool."""

    def __init__(self, folder: str, *, parts: int, size: int, mtime_ns: int) -> None:
        """Wait for the parts.

        Args:
            folder: the index folder, for offsets that are many.
            parts: how many there are.
            size: how many bytes the file has.
            mtime_ns: when it was modified.
        """
        self.torn = False
        """Whether it was changed meanwhile, so that its parts are not those of one file."""
        self.spool = OffsetSpool(folder)
        """The offsets of the parts that have come in order."""
        self.records = 0
        """How many records the parts that have come have."""
        self._left = parts
        self._size = size
        self._mtime_ns = mtime_ns
        self._early: dict[int, PartScan] = {}
        self._next = 0
        self._pieces = b""
        self._identity: tuple[int, int, int] | None = None
        self._begun_ns = 0

    def add(self, number: int, scan: PartScan | None) -> FileScan | None:
        """Take a part, None if the file was not as expected; return the whole file with its last one."""
        if scan is None or self._identity not in (None, scan.identity):
            self.torn = True
            self.spool.discard()
            self._early.clear()
        if scan is None or self.torn:
            return None
        self._identity = scan.identity
        self._begun_ns = min(scan.begun_ns, self._begun_ns or scan.begun_ns)
        self._early[number] = scan
        self.records += scan.records
        self._left -= 1
        while part := self._early.pop(self._next, None):
            self._next += 1
            self._pieces += part.pieces
            self.spool.add(part.starts)
        return None if self._left else self._whole(scan)

    def _whole(self, scan: PartScan) -> FileScan:
        self.spool.finish(size=self._size if scan.content_size is None else scan.content_size)
        return FileScan(
            size=self._size,
            mtime_ns=self._mtime_ns,
            indexed_ns=self._begun_ns,
            head_tail=scan.head_tail,
            content=content_digest(self._pieces),
            offsets=self.spool,
            points=scan.points,
            schema=scan.schema,
            records=self.records,
        )
