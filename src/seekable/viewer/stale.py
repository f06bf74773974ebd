"""The files of data that are not the ones that were indexed, and the times of their changes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from seekable.viewer.facts.data_survey import files_of
from seekable.viewer.facts.documents import json_safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.formats.shar.shar_source import DataSource
    from seekable.index.fileset import FileSet

_MOST_SHOWN = 20


def changed_files(sources: Iterable[DataSource], *, most: int = _MOST_SHOWN) -> list[dict[str, Any]]:
    """Return the first files that are not as they were indexed, by their sizes and times, JSON-safe.

    Each has its path, what is different, and the time of its last change in UTC, None if it is gone.
    """
    found: list[dict[str, Any]] = []
    for files in files_of(list(sources)):
        for number in range(len(files)):
            status, since = status_of(files, number)
            if status in _GOOD:
                continue
            found.append({"path": json_safe(files.shown_path(number)), "status": status, "since": since})
            if len(found) == most:
                return found
    return found


_GOOD = frozenset({"as indexed", "in a store"})


def status_of(files: FileSet, number: int) -> tuple[str, str | None]:
    """Return whether a file is the one that was indexed, and when it was changed if it is not."""
    path = files.path(number)
    if "://" in path:
        return "in a store", None
    try:
        now = os.stat(path)
    except OSError:
        return "not there any more", None
    size = int(files.sizes[number])
    if now.st_size == size and now.st_mtime_ns == int(files.mtimes_ns[number]):
        return "as indexed", None
    since = datetime.fromtimestamp(now.st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if now.st_size == size:
        return "changed since it was indexed", since
    return f"changed since it was indexed: {size:,} bytes are now {now.st_size:,}", since
