"""The scan of one file, put together from its parts in any order, and the buffer of its record offsets.

Few offsets stay in memory. Many go to disk while the file is scanned, and are a segment of their own.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from seekable.index.digest import content_digest
from seekable.index.file_table import OFFSET_BYTES, OffsetSegment
from seekable.index.offsets import UnitHasher, keep_units
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, put_in_place
from seekable.storage.memory import advise

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from seekable.index.build.scan import PartScan, PartSummary

_SPILL_BYTES = 32 << 20
"""From this size on the offsets of one file are a segment of their own, written while it is scanned."""


@dataclass(frozen=True, slots=True, eq=False)
class FileScan:
    """The result of the scan of one file."""

    size: int
    """The size of the file in bytes."""

    mtime_ns: int
    """The modification time of the file."""

    indexed_ns: int
    """The time at which the scan began."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: OffsetBuffer
    """The first byte of each record in the content, and the end of the last one."""

    points: bytes
    """Of a compressed file, the table of where it can be entered; else nothing."""

    schema: bytes
    """Of a table, its columns; else nothing."""

    records: int
    """The number of records."""

    units: bytes = b""
    """Of an object that was read as a whole, the digests of its units."""


class FileScanBuilder:
    """Puts the scans of the parts of one file together: they arrive in any order, and are added in order."""

    def __init__(self, folder: str, *, parts: int, size: int, mtime_ns: int) -> None:
        """Begin without any part.

        Args:
            folder: the index folder; many offsets are written there.
            parts: the number of parts of the file.
            size: the size of the file in bytes.
            mtime_ns: the modification time of the file.
        """
        self.torn = False
        """True if the file changed during the scan, so that its parts are not those of one file."""
        self.spool = OffsetBuffer(folder)
        """The offsets of the parts that have come in order."""
        self.records = 0
        """The number of records in the parts that have arrived."""
        self._left = parts
        self._size = size
        self._mtime_ns = mtime_ns
        self._early: dict[int, Callable[[], PartScan | None]] = {}
        self._next = 0
        self._pieces = self._units = b""
        self._head_tail: int | None = None
        self._holders: dict[int, tuple[int, int]] = {}
        """By machine, the device and the inode of the file there."""
        self._begun_ns = 0

    def add(
        self, number: int, summary: PartSummary | None, load: Callable[[], PartScan | None]
    ) -> FileScan | None:
        """Take a part, and return the whole file with its last one.

        Args:
            number: the index of the part.
            summary: that of the part; None if the file was not as expected.
            load: returns the part, when those before it have come; None if the file changed.
        """
        if summary is None or not self._agrees(summary):
            self._tear()
        if summary is None or self.torn:
            return None
        self._begun_ns = min(summary.begun_ns, self._begun_ns or summary.begun_ns)
        self._early[number] = load
        self.records += summary.records
        self._left -= 1
        whole = None
        while (early := self._early.pop(self._next, None)) is not None:
            part = early()
            if part is None or not self._agrees(part.summary):
                self._tear()
                return None
            self._next += 1
            self._pieces += part.pieces
            self._units += part.units
            self.spool.add(part.starts)
            whole = part
        return self._whole(whole) if whole is not None and not self._left else None

    def _agrees(self, part: PartSummary) -> bool:
        """Return True if a part is of the file that the parts before are of."""
        device, inode, head_tail = part.identity
        known = self._holders.setdefault(part.node, (device, inode))
        if self._head_tail is None:
            self._head_tail = head_tail
        return known == (device, inode) and self._head_tail == head_tail

    def _tear(self) -> None:
        self.torn = True
        self.spool.discard()
        self._early.clear()

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
            units=self._units,
        )


class OffsetBuffer:
    """The offsets of one file, given part by part and in order, and hashed as they come.

    Example:
        >>> import numpy as np
        >>> spool = OffsetBuffer("/index")
        >>> spool.add(np.array([0, 7], np.uint64))
        >>> spool.finish(size=12)
        >>> spool.records, np.frombuffer(spool.data, "<u8").tolist()
        (2, [0, 7, 12])
    """

    __slots__ = (
        *("_file", "_folder", "_hasher", "_held", "_parts", "_path", "_published"),
        *("data", "digest", "records"),
    )

    def __init__(self, folder: str) -> None:
        """Begin without offsets; nothing is written to disk while they are few.

        Args:
            folder: the index folder.
        """
        self.records = 0
        """The number of offsets that were added."""
        self.digest = 0
        """The xxh3_64 of all offsets, after ``finish``."""
        self.data = b""
        """The bytes of all offsets, after ``finish``, unless they are on disk."""
        self._folder = folder
        self._hasher: UnitHasher | None = UnitHasher()
        self._parts: list[memoryview | bytes] = []
        self._held = 0
        self._path = ""
        self._file: BinaryIO | None = None
        self._published = False

    @property
    def on_disk(self) -> bool:
        """True if the offsets are many, and therefore on disk."""
        return self._file is not None

    def add(self, starts: NDArray[np.uint64]) -> None:
        """Add the next offsets.

        Raises:
            OSError: the offsets are many, and the index folder cannot be written or is full.
        """
        self.records += len(starts)
        self._take(starts.astype("<u8", copy=False).view("u1").data)
        if self._held >= _SPILL_BYTES:
            self._spill()

    def finish(self, *, size: int) -> None:
        """Add the end of the file's last record, the content's size; what is on disk is synced then.

        Of a table it is the number of its rows, as the first rows of groups were added before.
        """
        self._take(size.to_bytes(OFFSET_BYTES, "little"))
        assert self._hasher is not None
        # Many finished files may wait to be committed: neither the hasher nor the arrays stay with them.
        hasher, self._hasher = self._hasher, None
        self.digest = hasher.whole()
        if self._file:
            keep_units(self._segment_path, hasher)
            self._spill()
            os.fsync(self._file.fileno())
            self._file.close()
        else:
            self.data = b"".join(self._parts)
            self._parts.clear()

    def publish(self) -> OffsetSegment:
        """Give what is on disk its name, as a segment of the index; a commit that failed may do so again."""
        segment = self._segment
        if not self._published:
            put_in_place(self._path, self._segment_path)
            self._published = True
        return segment

    @property
    def _segment(self) -> OffsetSegment:
        return OffsetSegment(self.digest, self.records + 1)

    @property
    def _segment_path(self) -> str:
        return os.path.join(self._folder, self._segment.file_name)

    def discard(self) -> None:
        """Remove what is on disk and was not published."""
        if self._file:
            self._file.close()
        if self._file and os.path.lexists(self._path):
            os.unlink(self._path)

    def _take(self, data: memoryview | bytes) -> None:
        assert self._hasher is not None
        self._hasher.update(data)
        self._parts.append(data)
        self._held += len(data)

    def _spill(self) -> None:
        if self._file is None:
            # Open until it is finished: another build may take it for what a killed one left, and remove it.
            self._path = os.path.join(self._folder, f"offsets.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
            self._file = create_new(self._path)
        self._file.writelines(self._parts)
        self._file.flush()
        # This process does not read these bytes again. With this advice Linux begins at once to write them to
        # disk, while the next parts are scanned, and there is little left to wait for in the end.
        start = self._file.tell() - self._held
        advise(self._file.fileno(), start, self._held, "DONTNEED")
        self._parts.clear()
        self._held = 0
