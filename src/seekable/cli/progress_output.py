"""Progress of index builds and other long work, on stderr."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Self, final

from seekable.cli.output import printable, tell
from seekable.parallel.progress import Progress, terminal_progress

if TYPE_CHECKING:
    from seekable.parallel.progress import ProgressHook

_ERASE_LINE = "\r\x1b[2K"


@final
class BuildWatch:
    """Counts the files of index builds and, unless ``notices`` is False, shows their progress.

    On a terminal a bar appears when a build takes longer than a second; elsewhere only notices are printed,
    such as where an index goes when the data's folder cannot be written.
    """

    def __init__(self, *, bar: bool, notices: bool, hook: ProgressHook | None = None) -> None:
        self.files_indexed = 0
        """The number of files that were new or changed."""
        self._bar = terminal_progress() if bar and notices else None
        self._notices = notices
        self._hook = hook

    def __call__(self, progress: Progress) -> None:
        """Count the files of a build, and draw its progress."""
        if self._hook is not None:
            self._hook(progress)
        # Other work than an index build reports no bytes.
        if progress.bytes:
            self.files_indexed = max(self.files_indexed, progress.files_done)
        if self._bar is not None:
            self._bar(progress)
        elif self._notices and progress.notice:
            tell(progress.notice)

    def close(self) -> None:
        """Erase the bar, also after a build that failed."""
        if self._bar is not None:
            self._bar.close()


@final
class StatusLine:
    """One line on a terminal that shows the present work, and is erased at the end; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and terminal_progress() is not None
        self._drawn = False

    def show(self, what: str) -> None:
        """Replace the line by ``what``, cut to the width of the terminal."""
        if self._shown:
            # Before it is drawn, because an interrupt may come as soon as it can be seen.
            self._drawn = True
            sys.stderr.write(
                f"{_ERASE_LINE}{printable(what)}"[: len(_ERASE_LINE) + shutil.get_terminal_size().columns - 1]
            )
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Erase the line, also after an error."""
        if self._drawn:
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()
