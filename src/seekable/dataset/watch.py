"""What the user sees of work on all rows of a dataset."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, final

from seekable.index.progress import Progress
from seekable.index.terminal import terminal_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.index.progress import ProgressHook

__all__ = ["Watch", "progress_or_bar", "watched"]

_SECONDS = 0.1


@final
class Watch:
    """Tells a hook how far the work is, at most some ten times a second and once at the end."""

    def __init__(self, hook: ProgressHook | None, *, task: str, rows: int) -> None:
        self._hook = hook
        self._task = task
        self._rows = rows
        self._told = time.monotonic()

    def __call__(self, done: int, *, notice: str = "") -> None:
        """Tell how many rows are done, unless that was done a moment ago."""
        now = time.monotonic()
        if self._hook is None or not (done == self._rows or notice or now - self._told > _SECONDS):
            return
        self._told = now
        self._hook(Progress(0, 0, 0, 0, done, notice, self._task, self._rows))


@contextlib.contextmanager
def progress_or_bar(hook: ProgressHook | None) -> Iterator[ProgressHook | None]:
    """Give the user's hook, or a bar on a terminal if there is none, which is wiped away at the end."""
    bar = terminal_progress() if hook is None else None
    try:
        yield hook or bar
    finally:
        if bar is not None:
            bar.close()


@contextlib.contextmanager
def watched(hook: ProgressHook | None, *, task: str, rows: int) -> Iterator[Watch]:
    """Give what tells the user's hook, or a bar on a terminal, how far the work is."""
    with progress_or_bar(hook) as shown:
        yield Watch(shown, task=task, rows=rows)
