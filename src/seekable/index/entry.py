"""What the index knows of one file."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

OFFSET_BYTES = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of record offsets in an index folder."""

    digest: int
    """xxh3_64 of its bytes."""

    length: int
    """How many offsets it holds."""

    @property
    def file_name(self) -> str:
        """What it is called in the index folder."""
        return f"offsets-{self.digest:016x}.u64"

    @property
    def bytes(self) -> int:
        """How many bytes it has."""
        return self.length * OFFSET_BYTES


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in one format, as the index keeps it."""

    name: str
    """Its path relative to the root."""

    format: str
    """The name of the format that it was scanned as."""

    size: int
    """How many bytes it has."""

    mtime_ns: int
    """When it was modified, in nanoseconds."""

    indexed_ns: int
    """When it was last read to be indexed or checked."""

    records: int
    """How many records it has."""

    head_tail: int
    """The digest of its ends."""

    content: int
    """The digest of all of it."""

    offsets: int
    """The digest of its record offsets."""

    _: KW_ONLY

    segment: Segment
    """Which file holds its record offsets."""

    start: int
    """Where in that segment they begin."""

    generation: int
    """In which generation of the index it came to be as it is; the first one is 1."""

    groups: int = 0
    """How many groups of rows a table has, whose first rows then are what stands in the segment."""

    schema: int = 0
    """The digest of a table's schema; 0 of a file that is no table."""

    @property
    def numbers(self) -> int:
        """How many numbers in the segment are its own: one for each record, or group, and the end."""
        return (self.groups if self.schema else self.records) + 1

    @property
    def key(self) -> tuple[str, str]:
        """What it is found by: one file may be indexed in several formats."""
        return self.name, self.format
