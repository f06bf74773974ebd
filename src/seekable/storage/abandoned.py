"""Threads whose work nobody needs any more: what they wait for is given up.

A thread cannot be interrupted. One that waits for a store may wait for minutes, and whoever ends it,
at Ctrl-C for example, would wait as long. So waits that may be long look here from time to time.
"""

from __future__ import annotations

import threading
import weakref

__all__ = ["Abandoned", "abandon", "check_not_abandoned"]

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
