"""Waits of threads whose work nobody needs any more end; all others bring what they wait for."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from seekable.storage.abandoned import Abandoned, abandoned_at_errors, awaited


def test_a_wait_brings_the_result_or_the_error_of_the_work() -> None:
    done: Future[int] = Future()
    threading.Timer(0.25, done.set_result, [5]).start()
    assert awaited(done) == 5
    # In Python 3.11 this error is also that of a wait that has lasted long enough.
    failed: Future[int] = Future()
    failed.set_exception(TimeoutError("of the work"))
    with pytest.raises(TimeoutError, match="of the work"):
        awaited(failed)


def test_a_look_ends_a_wait() -> None:
    def look() -> None:
        raise OSError("seen")

    with pytest.raises(OSError, match="seen"):
        awaited(Future(), look)


def test_an_interrupt_ends_the_waits_of_threads() -> None:
    waits: list[Future[object]] = []

    def wait_in_threads() -> None:
        with abandoned_at_errors(2, "test") as threads:
            waits.extend(threads.submit(awaited, Future()) for _ in range(3))
            while not all(wait.running() for wait in waits[:2]):
                threading.Event().wait(0.001)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_in_threads()
    assert [type(wait.exception()) for wait in waits[:2]] == [Abandoned, Abandoned]
    assert waits[2].cancelled()


def test_without_an_error_all_work_is_done() -> None:
    with abandoned_at_errors(2, "test") as threads:
        done = threads.map(str, range(4))
    assert list(done) == ["0", "1", "2", "3"]
