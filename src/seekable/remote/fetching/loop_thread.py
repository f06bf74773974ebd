"""An event loop in a thread of its own, which other threads wait for and can interrupt.

A call into compiled code cannot be interrupted, and an interpreter that ends waits for the threads of a pool.
Here requests are tasks of a loop in a daemon thread: the caller waits for a moment at a time, so that Ctrl-C
answers at once and cancels the task, and ``close`` cancels all tasks and waits until they have ended.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import time
import weakref
from concurrent.futures import Future, InvalidStateError
from sys import getrefcount
from typing import TYPE_CHECKING, Any, TypeVar, final

from seekable.storage.abandoned import check_not_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["LoopThread"]

T = TypeVar("T")

_MOMENT = 0.1
"""The seconds after which a waiting thread looks whether the loop still runs. Signals wake it earlier."""
_QUIET_SECONDS = 0.1
"""The time that ``close`` leaves to the threads of obstore after the last of them was seen to end a request.
That is some milliseconds after the request has ended in the loop, or more where hundreds end at once. The
threads use the interpreter then, and abort the process if it is gone."""
_LOOK_SECONDS = 0.02
_ENDING_SECONDS = 1.5
"""The most time that ``close`` waits for cancelled requests."""


@final
class LoopThread:
    """An event loop in a daemon thread, which starts at the first call. Safe from threads, of one process."""

    def __init__(self, name: str, *, at_end: Callable[[], object]) -> None:
        """Begin without a loop, which the first call starts.

        Args:
            name: the name of the thread.
            at_end: called by ``close`` when the tasks have ended.
        """
        self._name = name
        self._at_end = at_end
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_process_ending = False
        self._last_end = float("-inf")

    @property
    def is_closed(self) -> bool:
        """True if `close` was called."""
        return self._is_closed

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result.

        An exception in the waiting thread, ``KeyboardInterrupt`` for instance, cancels the coroutine. So does
        ``abandon`` of the thread.

        Raises:
            RuntimeError: the loop was closed, or this is its thread, which cannot wait for itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a request was sent and waited for in the thread that sends requests")
        done = threading.Event()
        future: Future[T] = Future()
        future.add_done_callback(lambda _: done.set())
        # An interrupt may come in any line of this block, also before the loop has begun the coroutine.
        try:
            self._running(work).call_soon_threadsafe(_begin, work, future)
            while not done.wait(_MOMENT):
                self._check_thread()
                check_not_abandoned()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._last_end = time.monotonic()
        while self._is_process_ending and future.cancelled():
            # Nobody needs the answer now. An error here would only be printed, by a thread that ends anyway.
            check_not_abandoned()
            time.sleep(_MOMENT)
        return future.result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop and return its future; cancelling the future cancels the coroutine.

        Raises:
            RuntimeError: the loop was closed.
        """
        return asyncio.run_coroutine_threadsafe(work, self._running(work))

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon. Nothing happens after ``close``."""
        with self._lock:
            if not self._is_closed:
                self._started().call_soon_threadsafe(function)

    def close(self) -> None:
        """Cancel all tasks, wait until they have ended, and stop the loop. A second call does nothing."""
        with self._lock:
            already, self._is_closed = self._is_closed, True
            loop, thread = self._loop, self._thread
        if already or loop is None or thread is None or thread is threading.current_thread():
            return
        quiet_seconds = self._last_end + _QUIET_SECONDS - time.monotonic()
        loop.call_soon_threadsafe(_end, loop, quiet_seconds)
        thread.join(_ENDING_SECONDS + 1)
        self._at_end()

    def close_with_process(self) -> None:
        """Close at the end of the process: daemon threads that wait for answers wait on, and end with it."""
        self._is_process_ending = True
        self.close()

    def _check_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            raise RuntimeError("the thread of the requests has ended")

    def _running(self, work: Coroutine[Any, Any, T]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if not self._is_closed:
                return self._started()
        work.close()
        if self._is_process_ending and threading.current_thread().daemon:
            threading.Event().wait()  # It ends with the process.
        raise RuntimeError("the fetcher is closed")

    def _started(self) -> asyncio.AbstractEventLoop:
        """Return the loop, after starting it; called with the lock."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
            self._thread.start()
            atexit.register(_close_in, os.getpid(), weakref.ref(self))
        return self._loop


def _close_in(process: int, thread: weakref.ref[LoopThread]) -> None:
    """Close the loop at the end of its process; a forked child has the call too, but not the thread."""
    found = thread()
    if found is not None and process == os.getpid():
        found.close_with_process()


def _begin(work: Coroutine[Any, Any, T], future: Future[T]) -> None:
    """Start a coroutine in the running loop, and end a future with it, unless that is cancelled already."""
    if future.cancelled():
        work.close()
        return
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    def end(_: asyncio.Task[T]) -> None:
        with contextlib.suppress(InvalidStateError):  # It was cancelled this moment.
            if task.cancelled():
                future.cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

    def cancel(_: Future[T]) -> None:
        if future.cancelled() and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    task.add_done_callback(end)
    future.add_done_callback(cancel)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, quiet_seconds: float) -> None:
    """Stop the loop after its tasks were cancelled; runs in it."""
    ending = loop.create_task(_cancel_all(quiet_seconds))
    ending.add_done_callback(lambda _: loop.stop())


async def _cancel_all(quiet_seconds: float) -> None:
    """Cancel all tasks, and wait until they and the requests below them have ended."""
    loop = asyncio.get_running_loop()
    had_tasks, until = False, time.monotonic() + _ENDING_SECONDS
    # A task that ends may have begun others.
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        had_tasks = True
        for task in tasks:
            task.cancel()
        if time.monotonic() >= until:
            break
        await asyncio.wait(tasks, timeout=until - time.monotonic())
    # The threads of obstore refer to the loop until a request has ended there.
    references = getrefcount(loop)
    quiet_at = time.monotonic() + (_QUIET_SECONDS if had_tasks else quiet_seconds)
    until += _QUIET_SECONDS
    while (now := time.monotonic()) < min(quiet_at, until):
        await asyncio.sleep(min(quiet_at - now, _LOOK_SECONDS))
        if (found := getrefcount(loop)) != references:
            references, quiet_at = found, time.monotonic() + _QUIET_SECONDS
    await loop.shutdown_asyncgens()
