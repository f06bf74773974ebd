"""What a build has done so far: what is to be committed, and what the progress hook is told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from seekable.index.building.commit import commit
from seekable.index.entry import OFFSET_BYTES
from seekable.parallel.progress import Progress

if TYPE_CHECKING:
    from seekable.index.building.assembly import FileScan
    from seekable.parallel.progress import ProgressHook

_COMMIT_SECONDS = 30.0
_COMMIT_BYTES = 256 << 20
_PROGRESS_SECONDS = 0.1


class Ledger:
    """Finished files are committed every half minute, and when the build ends, however it ends."""

    def __init__(self, *, files: int, size: int, format_name: str, hook: ProgressHook | None) -> None:
        """Begin with nothing done.

        Args:
            files: how many files are to be scanned.
            size: how many bytes they have together.
            format_name: the format that they are scanned as.
            hook: is told how far the build is.
        """
        self._format_name = format_name
        self._hook = hook
        self._files, self._bytes = files, size
        self._files_done = self._bytes_done = self._records = 0
        self._bytes_of_part = 0
        self._pending: dict[tuple[str, str], dict[str, FileScan]] = {}
        self._pending_bytes = 0
        self._committed = self._told = time.monotonic()

    def read(self, count: int) -> None:
        """Take note of bytes of a part that is being scanned here."""
        self._bytes_of_part += count
        self.tell()

    def arrived(self, count: int, *, records: int) -> None:
        """Take note of a finished part.

        Args:
            count: how many bytes it has.
            records: how many start in it; fewer than none to take back those of a file that has changed.
        """
        self._bytes_done += count
        self._bytes_of_part = 0
        self._records += records
        self.tell()

    def add(self, folder: str, root: str, name: str, scan: FileScan) -> None:
        """Take a finished file, and commit if there is enough to commit.

        Args:
            folder: its index folder.
            root: where the data is.
            name: the file, relative to the root.
            scan: what was found in it.
        """
        self._pending.setdefault((folder, root), {})[name] = scan
        self._pending_bytes += (scan.offsets.records + 1) * OFFSET_BYTES
        self._files_done += 1
        self.tell()
        if time.monotonic() - self._committed > _COMMIT_SECONDS or self._pending_bytes > _COMMIT_BYTES:
            self.commit()

    def commit(self) -> None:
        """Write what is finished to the index folders."""
        while self._pending:
            folder, root = next(iter(self._pending))
            commit(folder, self._pending[folder, root], format_name=self._format_name, root=root)
            del self._pending[folder, root]
        self._pending_bytes = 0
        self._committed = time.monotonic()

    def close(self) -> None:
        """Commit what is finished; what cannot be committed leaves nothing behind."""
        try:
            self.commit()
        finally:
            for scans in self._pending.values():
                for scan in scans.values():
                    scan.offsets.discard()

    def tell(self, *, always: bool = False, notice: str = "") -> None:
        """Call the hook, unless that was done a moment ago."""
        if self._hook is None or not (always or time.monotonic() - self._told > _PROGRESS_SECONDS):
            return
        self._told = time.monotonic()
        # A file that was changed meanwhile is read twice, and may have another size by then.
        read = min(self._bytes_done + self._bytes_of_part, self._bytes)
        done = self._bytes if self._files_done == self._files else read
        self._hook(Progress(self._files_done, self._files, done, self._bytes, self._records, notice))
