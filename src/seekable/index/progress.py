"""What an index build tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an index build has come.

    Example:
        >>> Progress(files_done=1, files=4, bytes_done=10, bytes=40, records=3).notice
        ''
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
    """Records found so far."""

    notice: str = ""
    """Something to tell the user once, such as where the index is written instead."""


ProgressHook = Callable[[Progress], None]
"""Is called in the thread that builds, at most some ten times a second and once at the end."""
