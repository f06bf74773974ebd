"""Whether pickles may hold secrets: only those that go through a pipe to a process of our own may.

Options of object stores have keys and passwords. ``pickle.dumps(ds)`` leaves them out, because nobody can say
where the bytes will lie. What this library pickles for its own child processes has them::

    with sending_secrets():
        pipe.send_bytes(pickle.dumps(work))
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["may_send_secrets", "sending_secrets"]

_sending: ContextVar[bool] = ContextVar("sending", default=False)


@contextmanager
def sending_secrets() -> Iterator[None]:
    """Let what is pickled inside, in this thread, hold the secrets of storage options."""
    before = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(before)


def may_send_secrets() -> bool:
    """Return True if what is pickled now goes to a child process alone.

    So it is inside ``sending_secrets``, and while ``multiprocessing`` starts a process by ``spawn`` or
    ``forkserver``.
    """
    if _sending.get():
        return True
    context = sys.modules.get("multiprocessing.context")
    return context is not None and context.get_spawning_popen() is not None
