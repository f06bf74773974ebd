"""Calls that report their progress to a hook, as generators of partial results."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from seekable.parallel.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from seekable.parallel.progress import ProgressHook
    from seekable.viewer.jobs import Partial


class _Stopped(BaseException):
    """Ends a call whose generator was closed; no handler of errors takes it for one."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a call."""

    result: Partial | None
    error: BaseException | None


def hooked(
    call: Callable[[ProgressHook], Partial], shown: Callable[[Progress], Partial]
) -> Generator[Partial]:
    """Yield what a call reports, and what it returns at last.

    The call runs in a thread from the first item on. Closing the generator ends the call at its next report,
    and waits for that.

    Args:
        call: takes a hook, which it calls some ten times a second.
        shown: makes a partial result of a report.

    Raises:
        BaseException: what the call raised.
    """
    news: SimpleQueue[Progress | _End] = SimpleQueue()
    stopping = threading.Event()

    def hook(progress: Progress) -> None:
        if stopping.is_set():
            raise _Stopped
        news.put(progress)

    def run() -> None:
        try:
            news.put(_End(call(hook), None))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the generator
            news.put(_End(None, error))

    thread = threading.Thread(target=run, name="seekable-hooked", daemon=True)
    thread.start()
    try:
        while isinstance(item := news.get(), Progress):
            yield shown(item)
        if item.error is not None:
            raise item.error
        if item.result is not None:
            yield item.result
    finally:
        stopping.set()
        thread.join()
