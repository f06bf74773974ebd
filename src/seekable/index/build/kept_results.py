"""The finished parts in the index folders of one build: those that it finds there, and those of workers."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from typing import TYPE_CHECKING, final

from seekable.index.build.kept_parts import KeptParts, SharedBatch, scan_sent, scan_shared, sent_batch
from seekable.index.build.scan import scan_batch
from seekable.storage.files import TEMPORARY_SUFFIX, create_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor, Future

    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.scan import PartScan, ScanBatch

__all__ = ["KeptResults", "loaded"]

_TOUCH_SECONDS = 600.0
"""Temporary files that nobody touched for an hour are removed by the next commit, as of a killed build."""


def loaded(kept: KeptParts, batch: ScanBatch) -> Sequence[PartScan | None]:
    """Return the result of a batch from the index folder; where it is lost or damaged, scan it again."""
    return kept.load() or scan_batch(batch)


@final
class KeptResults:
    """The names of the finished parts of a build, and the markers of its folders."""

    def __init__(self) -> None:
        """Begin; nothing is read or written."""
        self._found: dict[str, set[str]] = {}
        """By folder, the names that were there when the build began with it. They are listed, and not tried
        one by one: a network file system would remember for a while that a file is missing."""
        self._markers: dict[str, str] = {}
        self._touched = time.monotonic()
        self._needless: set[tuple[str, str]] = set()

    def earlier(self, kept: KeptParts) -> list[PartScan] | None:
        """Return the parts that an earlier build left; None if it did not."""
        if kept.folder not in self._found:
            self._found[kept.folder] = set(os.listdir(kept.folder))
        return kept.load() if kept.name in self._found[kept.folder] else None

    def submit(self, executor: Executor, kept: KeptParts, batch: ScanBatch) -> Future[Answer]:
        """Submit a batch to a user's executor.

        Args:
            executor: the executor.
            kept: the file for its result, in a folder that its workers may see.
            batch: the batch.
        """
        shared = self._shared(kept, batch)
        if any("://" in job.path for job in batch.jobs):
            return executor.submit(scan_sent, sent_batch(shared))
        return executor.submit(scan_shared, shared)

    def _shared(self, kept: KeptParts, batch: ScanBatch) -> SharedBatch:
        """Return a batch for a worker, after marking the folder for its result."""
        if kept.folder not in self._markers:
            # A marker of a killed build goes with its other temporary files.
            marker = os.path.join(kept.folder, f"marker.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
            # Without the marker, where the disk is full, all answers are sent.
            with contextlib.suppress(OSError):
                create_new(marker).close()
            self._markers[kept.folder] = marker
        if time.monotonic() - self._touched > _TOUCH_SECONDS:
            self._touched = time.monotonic()
            for marker in self._markers.values():
                with contextlib.suppress(OSError):
                    os.utime(marker)
        return SharedBatch(batch, kept.folder, self._markers[kept.folder])

    def discard(self, finished: Iterable[KeptParts]) -> None:
        """Remove parts that are in the index now, or of no use."""
        for kept in finished:
            kept.discard()
            self._needless.add((kept.folder, kept.name))

    def close(self) -> None:
        """Remove the markers, and the needless parts that tasks wrote again, which ran twice."""
        for folder, marker in self._markers.items():
            with contextlib.suppress(OSError):
                os.unlink(marker)
            with contextlib.suppress(OSError):
                again = {(folder, name) for name in os.listdir(folder)} & self._needless
                for _, name in again:
                    os.unlink(os.path.join(folder, name))
