"""The tests that every executor must pass which is to do the work of this library, as a class for pytest."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import BrokenExecutor, CancelledError, as_completed, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from seekable.errors import WorkerDied, WrongType
from seekable.parallel.cluster import ClusterExecutor
from seekable.parallel.map_ranges import execution_options, map_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor, Future

__all__ = ["ExecutorTests"]

_PATIENCE_SECONDS = 60.0
"""The time that an answer may take on a busy machine."""

_SMALL = 1_000
_LARGE = 30
_WAITING = 24


class ExecutorTests:
    """Tests an executor; pytest runs the methods of a class that is derived from this one.

    Override ``executor``. Its workers must be on this machine, because the tests write to a temporary folder.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> class TestThreads(ExecutorTests):
        ...     has_processes = False
        ...     def executor(self):
        ...         return ThreadPoolExecutor(2)
        >>> TestThreads().test_small_calls_are_many()
    """

    has_processes: ClassVar[bool] = True
    """False if calls are made in this process, so that their death is that of the test."""

    sends_closures: ClassVar[bool] = True
    """False if only functions of modules can be sent; seekable sends its own by such a function."""

    retries: ClassVar[bool] = False
    """True if a call is made again whose worker died."""

    stops_running: ClassVar[bool] = False
    """True if a call that runs can be cancelled."""

    large_bytes: ClassVar[int] = 4 << 20
    """The size of a large result; 30 of them pass through the executor."""

    def executor(self) -> Executor:
        """Return a new executor with at least one worker, and at most eight."""
        message = f"{type(self).__name__} must have a method executor()"
        raise WrongType(message)

    def test_a_call_has_its_arguments(self) -> None:
        """Those by position and those by name."""
        with self.executor() as executor:
            call = executor.submit(_described, 1, "two", three=[3.0, None])
            assert call.result(_PATIENCE_SECONDS) == ((1, "two"), {"three": [3.0, None]})

    def test_an_error_is_raised_as_it_was(self) -> None:
        """It has its type and its message, and the executor goes on."""
        with self.executor() as executor:
            error = executor.submit(_fail, "row 7").exception(_PATIENCE_SECONDS)
            assert type(error) is LookupError
            assert str(error) == "row 7"
            assert executor.submit(abs, -2).result(_PATIENCE_SECONDS) == 2  # noqa: PLR2004 - of the line itself

    def test_small_calls_are_many(self) -> None:
        """Each future has the result of its own call."""
        with self.executor() as executor:
            calls = [executor.submit(divmod, number, 7) for number in range(_SMALL)]
            found = [call.result(_PATIENCE_SECONDS) for call in calls]
        assert found == [divmod(number, 7) for number in range(_SMALL)]

    def test_large_results_pass(self) -> None:
        """They are taken as they come; together they may be larger than what the executor can hold."""
        with self.executor() as executor:
            calls = {executor.submit(_large, self.large_bytes, number): number for number in range(_LARGE)}
            for call in as_completed(list(calls), timeout=_PATIENCE_SECONDS):
                assert _is_large(call.result(), self.large_bytes, calls.pop(call))

    def test_functions_of_a_script_can_be_sent(self) -> None:
        """Lambdas and closures travel to the workers, where the executor sends closures."""
        if not self.sends_closures:
            return
        offset = 41
        with self.executor() as executor:
            assert executor.submit(lambda number: number + offset, 1).result(_PATIENCE_SECONDS) == offset + 1

    def test_a_job_has_the_results_of_one_process(self) -> None:
        """Its function is a closure, and its errors are raised."""
        factor = 3

        def work(start: int, stop: int) -> list[int]:
            if start <= _SMALL < stop:
                raise LookupError(start)
            return [factor * number for number in range(start, stop)]

        with self.executor() as executor:
            using = execution_options(None, executor, at_once=True)
            found = [number for _, some in map_ranges(work, _SMALL, using=using) for number in some]
            assert found == [factor * number for number in range(_SMALL)]
            _assert_raises(LookupError, lambda: list(map_ranges(work, 2 * _SMALL, using=using)))

    def test_calls_that_wait_can_be_cancelled(self) -> None:
        """They are not made, and who waits for them goes on."""
        with _folder() as folder, self.executor() as executor:
            calls = [executor.submit(_nap, _path(folder, number)) for number in range(_WAITING)]
            cancelled = [
                number for number in reversed(range(_WAITING // 2, _WAITING)) if calls[number].cancel()
            ]
            assert len(cancelled) >= _WAITING // 4
            assert not wait(calls, timeout=_PATIENCE_SECONDS).not_done
            for number in cancelled:
                assert calls[number].cancelled()
                assert isinstance(_outcome(calls[number]), CancelledError)
            done = {int(name) for name in os.listdir(folder)}
            assert done >= set(range(_WAITING)) - set(cancelled)
            assert self.stops_running or not done & set(cancelled)

    def test_a_call_that_runs_can_be_cancelled(self) -> None:
        """It ends, and its worker is free again."""
        if not self.stops_running:
            return
        with _folder() as folder, self.executor() as executor:
            call = executor.submit(_run_on, _path(folder, 1), _path(folder, 2))
            _wait_for(_path(folder, 1))
            assert call.cancel()
            assert isinstance(_outcome(call), CancelledError)
            _wait_for(_path(folder, 2))

    def test_a_dead_worker_is_an_error(self) -> None:
        """A call that ends its worker each time it is made has ``BrokenExecutor``; nobody waits for ever."""
        if not self.has_processes:
            return
        with self.executor() as executor:
            error = executor.submit(_die).exception(_PATIENCE_SECONDS)
            assert isinstance(error, BrokenExecutor | WorkerDied), error
            using = execution_options(None, executor, at_once=True)
            _assert_raises(WorkerDied, lambda: list(map_ranges(_die, 1, using=using)))

    def test_a_call_is_made_again_if_its_worker_died(self) -> None:
        """The caller gets the result of the second attempt, where the executor has retries."""
        if not self.retries:
            return
        with _folder() as folder, self.executor() as executor:
            assert executor.submit(_die_once, _path(folder, 1)).result(_PATIENCE_SECONDS) == "alive"

    def test_after_the_end_nothing_is_taken(self) -> None:
        """Calls that were submitted before are done."""
        executor = self.executor()
        calls = [executor.submit(abs, -number) for number in range(_WAITING)]
        executor.shutdown(wait=True)
        assert [call.result(0) for call in calls] == list(range(_WAITING))
        _assert_raises(RuntimeError, lambda: executor.submit(abs, 1))

    def test_at_an_end_without_patience_nobody_waits(self) -> None:
        """``shutdown(cancel_futures=True)`` cancels the calls that wait."""
        with _folder() as folder:
            executor = self.executor()
            calls = [executor.submit(_nap, _path(folder, number)) for number in range(_WAITING)]
            executor.shutdown(wait=True, cancel_futures=True)
            outcomes = [_outcome(call) for call in calls]
            assert any(isinstance(outcome, CancelledError) for outcome in outcomes)
            assert len(os.listdir(folder)) >= outcomes.count(None)

    def test_a_cluster_does_more(self) -> None:
        """It shares bytes, and calls a function on each node; nothing of it is tested for other executors."""
        with self.executor() as executor:
            if not isinstance(executor, ClusterExecutor):
                return
            assert executor.most >= 1
            data = os.urandom(1 << 20)
            fetch = executor.shared(data)
            calls = [executor.submit(_fetched, fetch, number) for number in range(_WAITING)]
            assert [call.result(_PATIENCE_SECONDS) for call in calls] == [
                data[: 1 + n] for n in range(_WAITING)
            ]
            assert set(executor.on_each_node(divmod, 7, 2).values()) == {(3, 1)}
            for error in executor.on_each_node(_fail, "row 7").values():
                assert isinstance(error, LookupError)
                assert str(error) == "row 7"


def _described(*args: object, **kwargs: object) -> tuple[object, object]:
    return args, kwargs


def _fail(message: str) -> None:
    raise LookupError(message)


def _large(size: int, number: int) -> bytes:
    return number.to_bytes(4, "little") * (size // 4)


def _is_large(found: bytes, size: int, number: int) -> bool:
    return len(found) == size and found[:4] == found[-4:] == number.to_bytes(4, "little")


def _fetched(fetch: Callable[[], bytes], number: int) -> bytes:
    return fetch()[: 1 + number]


def _nap(path: str) -> None:
    with open(path, "x", encoding="ascii"):
        time.sleep(0.05)


def _run_on(begun: str, ended: str) -> None:
    try:
        while True:
            with open(begun, "w", encoding="ascii"):
                time.sleep(0.01)
    finally:
        with open(ended, "w", encoding="ascii"):
            pass


def _die(*_: object) -> None:
    os._exit(9)


def _die_once(path: str) -> str:
    try:
        with open(path, "x", encoding="ascii"):
            os._exit(9)
    except FileExistsError:
        return "alive"


@contextmanager
def _folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="seekable-executor-") as folder:
        yield folder


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, str(number))


def _wait_for(path: str) -> None:
    """Wait until there is a file."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not os.path.exists(path):
        assert time.monotonic() < end, f"no file {path!r} after {_PATIENCE_SECONDS:.0f} s"
        time.sleep(0.01)


def _outcome(call: Future[Any]) -> object:
    """Return the result of a call, or its error."""
    try:
        return call.result(_PATIENCE_SECONDS)
    except (Exception, CancelledError) as error:  # noqa: BLE001 - the caller looks at it
        return error


def _assert_raises(kind: type[BaseException], call: Callable[[], object]) -> None:
    try:
        result = call()
    except kind:
        return
    message = f"expected {kind.__name__}, found the result {result!r}"
    raise AssertionError(message)
