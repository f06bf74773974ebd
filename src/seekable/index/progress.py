"""What an index build, and other work that takes long, tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an index build has come, or work on all records of a dataset.

    Example:
        >>> Progress(files_done=1, files=4, bytes_done=10, bytes=40, records=3).is_done
        False
    """

    files_done: int
    """Files that are indexed."""

    files: int
    """Files that were to be indexed."""

    bytes_done: int
    """Bytes that are read."""

    bytes: int
    """Bytes that were to be read."""

    records: int
    """Records found so far, or looked at."""

    notice: str = ""
    """Something to tell the user once, such as where the index is written instead."""

    task: str = "indexing"
    """What is done: "indexing", "filtering" or "reading keys"."""

    rows: int | None = None
    """Records that are to be looked at; None while files are indexed, whose records are not known before."""

    @property
    def is_done(self) -> bool:
        """Whether all is done."""
        return self.files_done == self.files if self.rows is None else self.records == self.rows


ProgressHook = Callable[[Progress], None]
"""Is called in the thread that builds, at most some ten times a second and once at the end."""
