"""The files of a build that are finished: committed from time to time, and reported to the progress hook."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from seekable.index.build.commit import commit
from seekable.index.entry import OFFSET_BYTES
from seekable.parallel.progress import Progress, Throttle

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.index.build.file_scan import FileScan
    from seekable.index.build.scan import ScanJob
    from seekable.parallel.progress import ProgressHook

__all__ = ["BuildProgress"]

_COMMIT_SECONDS = 30.0
_COMMIT_BYTES = 256 << 20


class BuildProgress:
    """Commits finished files every half minute and when the build ends, and calls the progress hook."""

    def __init__(self, *, files: int, size: int, format_name: str, hook: ProgressHook | None) -> None:
        """Begin with no file scanned.

        Args:
            files: the number of files to scan.
            size: their number of bytes.
            format_name: the name of the format that they are scanned as.
            hook: is called with the progress, at most ten times a second; None for no calls.
        """
        self._format_name = format_name
        self._hook = hook
        self._files, self._bytes = files, size
        self._files_done = self._bytes_done = self._records = 0
        self._bytes_of_parts: dict[ScanJob, int] = {}
        self._pending: dict[tuple[str, str], dict[str, FileScan]] = {}
        self._after: list[Callable[[], object]] = []
        self._pending_bytes = 0
        self._committed = time.monotonic()
        self._throttle = Throttle()

    def read(self, job: ScanJob, count: int) -> None:
        """Count bytes of a part that is being scanned in this thread."""
        self.count(job, count)
        self.report()

    def count(self, job: ScanJob, count: int) -> None:
        """Count bytes of a part that is being scanned in any thread; the hook is not called."""
        self._bytes_of_parts[job] = self._bytes_of_parts.get(job, 0) + count

    def arrived(self, job: ScanJob, count: int, *, records: int) -> None:
        """Count a finished part.

        Args:
            job: the part.
            count: its number of bytes.
            records: the number of records that start in it; negative to take back those of a changed file.
        """
        self._bytes_done += count
        self._bytes_of_parts.pop(job, None)
        self._records += records
        self.report()

    def add(
        self,
        folder: str,
        root: str,
        name: str,
        scan: FileScan,
        *,
        after: Callable[[], object] | None = None,
    ) -> None:
        """Take a finished file, and commit if half a minute has passed or the offsets are many.

        Args:
            folder: its index folder.
            root: the folder of the data.
            name: the path of the file, relative to the root.
            scan: the result of its scan.
            after: is called when the file is in the index.
        """
        if after is not None:
            self._after.append(after)
        self._pending.setdefault((folder, root), {})[name] = scan
        self._pending_bytes += (scan.offsets.records + 1) * OFFSET_BYTES
        self._files_done += 1
        self.report()
        if time.monotonic() - self._committed > _COMMIT_SECONDS or self._pending_bytes > _COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Add the finished files to the index folders."""
        while self._pending:
            folder, root = next(iter(self._pending))
            commit(folder, self._pending[folder, root], format_name=self._format_name, root=root)
            del self._pending[folder, root]
        while self._after:
            self._after.pop()()
        self._pending_bytes = 0
        self._committed = time.monotonic()

    def close(self) -> None:
        """Commit the finished files; offsets that cannot be committed are removed from disk."""
        try:
            self.commit()
        finally:
            for scans in self._pending.values():
                for scan in scans.values():
                    scan.offsets.discard()

    def report(self, *, always: bool = False, notice: str = "") -> None:
        """Call the hook, unless it was called within a tenth of a second."""
        if self._hook is None or not self._throttle.is_due(always=always):
            return
        # A file that changes while it is scanned is read twice, and may have another size then.
        read = min(self._bytes_done + sum(list(self._bytes_of_parts.values())), self._bytes)
        done = self._bytes if self._files_done == self._files else read
        self._hook(Progress(self._files_done, self._files, done, self._bytes, self._records, notice))
