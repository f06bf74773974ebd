"""Progress of work that takes long: what hooks are called with, and the bar that a terminal shows.

An index build counts files and bytes; work on the rows of a dataset counts rows. Both call a *hook* with a
`Progress`. Without a hook from the user, a bar appears on a terminal once the work has taken a second.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from seekable._typing import Value
from seekable.errors import WrongType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as RichProgress


__all__ = [
    "Progress",
    "ProgressChoice",
    "ProgressHook",
    "TerminalProgress",
    "Throttle",
    "Watch",
    "progress_or_bar",
    "terminal_progress",
    "watched",
]

_AFTER_SECONDS = 1.0
"""A build that is done sooner is not worth a bar."""

_AFTER_VARIABLE = "SEEKABLE_BAR_AFTER_SECONDS"
"""Overrides ``_AFTER_SECONDS`` and ``_SECONDS``, so that tests need no long builds; not public."""

_ERASE_LINE = "\r\x1b[2K"

_SECONDS = 0.1
"""The least time between two reports."""


class Progress(Value, frozen=True):
    """The progress of an index build, or of other work on all records.

    Example:
        >>> Progress(files_done=1, files=4, bytes_done=10, bytes=40, records=3).is_done
        False
    """

    files_done: int
    """The number of files that are indexed."""

    files: int
    """The number of files to index."""

    bytes_done: int
    """The number of bytes that are read."""

    bytes: int
    """The number of bytes to read."""

    records: int
    """The number of records found or processed so far."""

    notice: str = ""
    """A message for the user, such as the folder in which the index is written instead."""

    task: str = "indexing"
    """The work: "indexing", "filtering", "writing", "tokenizing" or "reading keys"."""

    rows: int | None = None
    """The number of records to process; None where it is not known before, as for an index build."""

    tokens: int = 0
    """The approximate number of tokens written so far; 0 before a part is finished, and for other work."""

    @property
    def is_done(self) -> bool:
        """True if all the work is done."""
        return self.files_done == self.files if self.rows is None else self.records == self.rows


ProgressHook = Callable[[Progress], None]
"""Is called in the thread that builds, at most some ten times a second and once at the end."""

ProgressChoice = ProgressHook | bool | None
"""``progress=`` of public functions: a function that takes a `Progress`; False for nothing; by default, and
for True, a bar on a terminal."""


def terminal_progress() -> TerminalProgress | None:
    """Return a hook that draws a bar on stderr, or None where stderr is no terminal that can show one."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM", "dumb") in {"dumb", "unknown"}:
        return None
    return TerminalProgress(after_seconds=_seconds_or_override(_AFTER_SECONDS))


def _seconds_or_override(seconds: float) -> float:
    return float(os.environ.get(_AFTER_VARIABLE, seconds))


@final
class TerminalProgress:
    """Draws a bar on stderr while an index is built, and wipes it away when the build is done.

    One line, drawn anew at each call. rich's own live display hides the cursor, takes over stdout and
    stderr and runs a thread until it is stopped. A hook is not called when a build fails, so this one holds
    nothing that would have to be released.
    """

    def __init__(self, *, after_seconds: float) -> None:
        self._due = time.monotonic() + after_seconds
        self._bar: RichProgress | None = None
        self._drawn = False
        self._begun: tuple[float, int] | None = None
        """The time of the first report, and its tokens."""

    def __call__(self, progress: Progress) -> None:
        """Show how far the build is."""
        if self._begun is None:
            self._begun = time.monotonic(), progress.tokens
        if progress.notice:
            self.close()
            sys.stderr.write(f"seekable: {progress.notice}\n")
        if progress.is_done:
            self.close()
        elif time.monotonic() >= self._due:
            self._draw(progress)

    def close(self) -> None:
        """Wipe the bar away, when the work has ended before all was done."""
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
        tokens = self._tokens_in_words(progress)
        bar.update(
            bar.task_ids[0], completed=done, total=total or None, records=progress.records, tokens=tokens
        )
        console = bar.console
        with console.capture() as captured:
            console.print(bar.get_renderable(), end="", no_wrap=True)
        line = captured.get().partition("\n")[0]
        # Before it is drawn, because an interrupt may come as soon as it can be seen.
        self._drawn = True
        sys.stderr.write(f"{_ERASE_LINE}{line}")
        sys.stderr.flush()

    def _tokens_in_words(self, progress: Progress) -> str:
        """Return the tokens and their number a second; nothing for other work."""
        if not progress.tokens or self._begun is None:
            return ""
        begun, before = self._begun
        rate = (progress.tokens - before) / max(1e-3, time.monotonic() - begun)
        return f"{progress.tokens:,} tokens, {rate / 1e6:.2f} M a second"


def _new_bar(shown: Progress) -> RichProgress:
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[records]:,} records"),
        progress.TextColumn("{task.fields[tokens]}"),
        *([progress.TransferSpeedColumn()] if shown.bytes else []),
        progress.TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        auto_refresh=False,
    )
    bar.add_task(shown.task, total=None, records=0, tokens="")
    return bar


@final
class Throttle:
    """Limits reports to ten a second.

    Example:
        >>> Throttle().is_due(always=True)
        True
    """

    def __init__(self) -> None:
        self._seconds = _seconds_or_override(_SECONDS)
        self._reported = time.monotonic()

    def is_due(self, *, always: bool = False) -> bool:
        """Return True if a tenth of a second has passed since the last report, which then counts as made.

        Args:
            always: count a report as made now, however short ago the last one was.
        """
        now = time.monotonic()
        if not always and now - self._reported <= self._seconds:
            return False
        self._reported = now
        return True


@final
class Watch:
    """Calls a hook with the progress, at most ten times a second and once at the end.

    Where the number of rows is not known before, the work counts as one file, which is done at the end.
    """

    def __init__(self, hook: ProgressHook | None, *, task: str, rows: int | None) -> None:
        self._hook = hook
        self._task = task
        self._rows = rows
        self._throttle = Throttle()

    def __call__(self, done: int, *, notice: str = "") -> None:
        """Report the number of rows that are done, at most ten times a second."""
        if self._hook is None or not self._throttle.is_due(always=done == self._rows or bool(notice)):
            return
        self._hook(Progress(0, int(self._rows is None), 0, 0, done, notice, self._task, self._rows))

    def end(self, done: int) -> None:
        """Report that all is done, where the number of rows was not known before."""
        if self._hook is not None:
            self._hook(Progress(1, 1, 0, 0, done, "", self._task, None))


@contextlib.contextmanager
def progress_or_bar(choice: ProgressChoice) -> Iterator[ProgressHook | None]:
    """Give the user's function, or a bar on a terminal, which is wiped away at the end, or nothing.

    Raises:
        WrongType: ``progress=`` is something else.
    """
    if not (choice is None or isinstance(choice, bool) or callable(choice)):
        message = f"progress must be True, False or a function that takes a Progress (got {choice!r})"
        raise WrongType(message)
    bar = terminal_progress() if choice is None or choice is True else None
    hook = None if isinstance(choice, bool) else choice
    try:
        yield hook or bar
    finally:
        if bar is not None:
            bar.close()


@contextlib.contextmanager
def watched(choice: ProgressChoice, *, task: str, rows: int | None) -> Iterator[Watch]:
    """Yield a reporter that calls the user's function, or draws a bar on a terminal, or does nothing."""
    with progress_or_bar(choice) as shown:
        yield Watch(shown, task=task, rows=rows)
