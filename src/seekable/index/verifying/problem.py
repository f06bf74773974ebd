"""What ``verify`` finds: files that are not what their index says, and what is wrong with them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from seekable.index.entry import Entry

__all__ = ["Indexed", "Kind", "Problem"]

Kind = Literal["not indexed", "gone", "changed", "touched", "content", "offsets", "index", "record"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be.

    Example:
        >>> Problem("changed", "/data/a.jsonl", "it has 3 bytes").offset is None
        True
    """

    kind: Kind
    """What it is: a file that is not indexed, is gone, has another size or time (and content, or only
    "touched"), has other content at the same size and time, offsets that are wrong, an index that is damaged,
    a record that cannot be decoded."""

    path: str
    """The absolute path of the file that is bad: a data file, or one of the index."""

    message: str
    """What was expected, what was found, and what to do."""

    row: int | None = None
    """The first record that is known to be concerned, if one is."""

    offset: int | None = None
    """The first byte that is known to be concerned, if one is."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A data file that is there, and what the index says of it."""

    root: str
    """The absolute folder that its name is relative to."""

    folder: str
    """The index folder."""

    row: int
    """Its row in the index's table."""

    entry: Entry
    """What the index says."""

    size: int
    """How many bytes it has now."""

    mtime_ns: int
    """When it was modified last."""

    @property
    def path(self) -> str:
        """Its absolute path."""
        return os.path.join(self.root, self.entry.name)

    @property
    def segment(self) -> tuple[str, str]:
        """Which file of which index holds its offsets."""
        return self.folder, self.entry.segment.file_name

    @property
    def difference(self) -> str | None:
        """How size and time differ from those that were indexed, if they do."""
        entry = self.entry
        if (self.size, self.mtime_ns) == (entry.size, entry.mtime_ns):
            return None
        return (
            f"it has {self.size:,} bytes, modified at {self.mtime_ns} ns, and was indexed with "
            f"{entry.size:,} bytes, modified at {entry.mtime_ns} ns"
        )
