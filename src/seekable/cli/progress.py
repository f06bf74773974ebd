"""What a command shows of the index builds that it starts."""

from __future__ import annotations

import shutil
import sys
from typing import Self, final

from seekable.parallel.progress import Progress, terminal_progress

_ERASE_LINE = "\r\x1b[2K"


@final
class BuildWatch:
    """Follows index builds: counts the files and, unless it is to be quiet, shows how far they are.

    On a terminal a bar appears when a build takes longer than a second; elsewhere only notices are printed,
    such as where an index goes when the data's folder cannot be written.
    """

    def __init__(self, *, bar: bool, notices: bool) -> None:
        self.files_indexed = 0
        """How many files were new or changed."""
        self._bar = terminal_progress() if bar and notices else None
        self._notices = notices

    def __call__(self, progress: Progress) -> None:
        """Take note of how far a build is."""
        # Other work than an index build tells of no files.
        self.files_indexed = max(self.files_indexed, progress.files_done)
        if self._bar is not None:
            self._bar(progress)
        elif self._notices and progress.notice:
            print(f"seekable: {progress.notice}", file=sys.stderr)

    def close(self) -> None:
        """Wipe the bar away, also when the build did not end well."""
        if self._bar is not None:
            self._bar.close()


@final
class StatusLine:
    """One line on a terminal that says what is going on, wiped away at the end; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and terminal_progress() is not None
        self._drawn = False

    def tell(self, what: str) -> None:
        """Say what is going on now."""
        if self._shown:
            # Before it is drawn, because an interrupt may come as soon as it can be seen.
            self._drawn = True
            sys.stderr.write(
                f"{_ERASE_LINE}{what}"[: len(_ERASE_LINE) + shutil.get_terminal_size().columns - 1]
            )
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Wipe the line away."""
        if self._drawn:
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()
