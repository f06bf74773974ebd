"""The progress of a build, and of other work that takes long, on a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from seekable.index.progress import Progress

__all__ = ["TerminalProgress", "terminal_progress"]

_AFTER_SECONDS = 1.0
"""A build that is done sooner is not worth a bar."""

_ERASE_LINE = "\r\x1b[2K"


def terminal_progress(*, after_seconds: float = _AFTER_SECONDS) -> TerminalProgress | None:
    """Return a hook that draws a bar on stderr, or None where stderr is no terminal that can show one.

    Args:
        after_seconds: how long a build runs before the bar appears.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM", "dumb") in {"dumb", "unknown"}:
        return None
    return TerminalProgress(after_seconds=after_seconds)


@final
class TerminalProgress:
    """Draws a bar on stderr while an index is built, and wipes it away when the build is done.

    One line, drawn anew at each call. rich's own live display hides the cursor, takes over stdout and
    stderr and runs a thread until it is told to stop; a hook is never told that a build failed, so this
    one holds nothing that had to be given back.
    """

    def __init__(self, *, after_seconds: float) -> None:
        self._due = time.monotonic() + after_seconds
        self._bar: RichProgress | None = None
        self._drawn = False

    def __call__(self, progress: Progress) -> None:
        """Show how far the build is."""
        if progress.notice:
            self.close()
            sys.stderr.write(f"seekable: {progress.notice}\n")
        if progress.is_done:
            self.close()
        elif time.monotonic() >= self._due:
            self._draw(progress)

    def close(self) -> None:
        """Wipe the bar away; for whoever knows that the build has ended early."""
        if self._drawn:
            sys.stderr.write(_ERASE_LINE)
            self._drawn = False
        sys.stderr.flush()

    def _draw(self, progress: Progress) -> None:
        bar = self._bar
        if bar is None or bar.tasks[0].description != progress.task:
            bar = self._bar = _new_bar(progress)
        done, total = progress.bytes_done, progress.bytes
        if progress.rows is not None:
            done, total = progress.records, progress.rows
        bar.update(bar.task_ids[0], completed=done, total=total, records=progress.records)
        console = bar.console
        with console.capture() as captured:
            console.print(bar.get_renderable(), end="", no_wrap=True)
        line = captured.get().partition("\n")[0]
        # Before it is drawn, because an interrupt may come as soon as it can be seen.
        self._drawn = True
        sys.stderr.write(f"{_ERASE_LINE}{line}")
        sys.stderr.flush()


def _new_bar(shown: Progress) -> RichProgress:
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[records]:,} records"),
        *([progress.TransferSpeedColumn()] if shown.rows is None else []),
        progress.TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        auto_refresh=False,
    )
    bar.add_task(shown.task, total=None, records=0)
    return bar
