"""Calls that block, beside the loop of the fetcher."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["in_thread"]

_T = TypeVar("_T")


async def in_thread(call: Callable[[], _T]) -> _T:
    """Await a blocking call in a thread of its own, which does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def run() -> None:
        try:
            outcome = partial(done.set_result, call())
        except BaseException as error:  # noqa: BLE001 - the error belongs to the caller
            outcome = partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits.
            loop.call_soon_threadsafe(lambda: None if done.done() else outcome())

    threading.Thread(target=run, name="seekable-store", daemon=True).start()
    return await done
