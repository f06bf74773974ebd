"""Threads whose work nobody needs any more: what they wait for is given up.

A thread cannot be interrupted. One that waits for a store may wait for minutes, and whoever ends it,
at Ctrl-C for example, would wait as long. So waits that may be long look here from time to time.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from seekable._lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent import futures
    from concurrent.futures import Future, ThreadPoolExecutor
else:
    # Its threads register themselves for the end of the interpreter, which is an error at that end.
    futures = lazy("concurrent.futures")

T = TypeVar("T")

_MOMENT = 0.1
"""The seconds between two looks of a thread that waits."""

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


class Abandoned(BaseException):
    """The current thread was abandoned: its work ends here. Not an ``Exception``, so that no code goes on."""


def abandon(thread: threading.Thread) -> None:
    """Let the next long wait of a thread, or the present one, raise ``Abandoned`` in it.

    Example:
        >>> thread = threading.Thread(target=check_not_abandoned)
        >>> abandon(thread)
        >>> check_not_abandoned()  # this thread goes on
    """
    _threads.add(thread)


def check_not_abandoned() -> None:
    """Do nothing in a thread whose work is still needed.

    Raises:
        Abandoned: the current thread was abandoned.
    """
    if _threads and threading.current_thread() in _threads:
        raise Abandoned


def awaited(answer: Future[T], look: Callable[[], object] = check_not_abandoned) -> T:
    """Return the result of a future.

    Args:
        answer: the future.
        look: is called about ten times a second; an error that it raises ends the wait.

    Raises:
        Abandoned: the current thread was abandoned.
    """
    while True:
        try:
            return answer.result(_MOMENT)
        except TimeoutError:
            if answer.done():
                raise
        look()


@contextmanager
def abandoned_at_errors(most: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Yield an executor whose threads are abandoned where the block ends by an error, or at Ctrl-C.

    Args:
        most: the number of threads.
        name: the beginning of their names.

    Example:
        >>> with abandoned_at_errors(2, "example") as executor:
        ...     list(executor.map(abs, [-1, -2]))
        [1, 2]
    """
    started: list[threading.Thread] = []
    executor = futures.ThreadPoolExecutor(most, name, lambda: started.append(threading.current_thread()))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for thread in started:
            abandon(thread)
        raise
    finally:
        executor.shutdown()
