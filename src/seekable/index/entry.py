"""The entry of one file in an index, and its identity without its place there."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from seekable.index.digest import unread_content_digest

OFFSET_BYTES = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of record offsets in an index folder."""

    digest: int
    """The xxh3_64 of its bytes."""

    length: int
    """The number of offsets that it holds."""

    @property
    def file_name(self) -> str:
        """The file name in the index folder."""
        return f"offsets-{self.digest:016x}.u64"

    @property
    def bytes(self) -> int:
        """The number of bytes of the segment."""
        return self.length * OFFSET_BYTES


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in one format, as the index keeps it."""

    name: str
    """The path of the file, relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """The number of bytes of the file."""

    mtime_ns: int
    """When it was modified, in nanoseconds."""

    indexed_ns: int
    """When it was last read to be indexed or checked."""

    records: int
    """The number of records of the file."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: int
    """The digest of its record offsets."""

    _: KW_ONLY

    segment: Segment
    """The segment that holds its record offsets."""

    start: int
    """The index of the first of its offsets in that segment."""

    generation: int
    """In which generation of the index it came to be as it is; the first one is 1."""

    groups: int = 0
    """The number of groups of a table, whose first rows are its offsets; 0 for a file that is no table."""

    schema: int = 0
    """The digest of a table's schema; 0 of a file that is no table."""

    @property
    def numbers(self) -> int:
        """The number of its offsets: one for each record, or group, and the end."""
        return (self.groups if self.schema else self.records) + 1

    @property
    def unread(self) -> bool:
        """True for a file that was not read as a whole, because another tool's index had its offsets."""
        return self.content == unread_content_digest(
            head_tail=self.head_tail, offsets=self.offsets, size=self.size, mtime_ns=self.mtime_ns
        )

    @property
    def key(self) -> tuple[str, str]:
        """The name and the format: one file may be indexed in several formats."""
        return self.name, self.format


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The identity of an indexed file, without anything that depends on where it lies."""

    name: str
    """The path of the file, relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """The number of bytes of the file."""

    records: int
    """The number of records of the file."""

    head_tail_digest: str
    """The digest of its first and last 64 KiB and its size."""

    content_digest: str
    """The digest of all of it."""

    offsets_digest: str
    """The digest of its record offsets."""
