"""The pools of Python and our worker processes pass the tests of executors, and bad executors do not."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.thrift import some

from seekable.parallel.processes import WorkerProcesses
from seekable.testing import ExecutorTests

if TYPE_CHECKING:
    from collections.abc import Callable


class TestThreads(ExecutorTests):
    has_processes = False

    def executor(self) -> Executor:
        return ThreadPoolExecutor(2)


@pytest.mark.exhaustive
class TestProcesses(ExecutorTests):
    sends_closures = False

    def executor(self) -> Executor:
        return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver"))


class TestWorkers(ExecutorTests):
    sends_closures = False
    large_bytes = some(4 << 20, of=4)

    def executor(self) -> Executor:
        return WorkerProcesses(1)


class Forgetful(ThreadPoolExecutor):
    """Answers with the result of the call before."""

    last: object = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **given: Any) -> Future[Any]:
        def call() -> object:
            before, self.last = self.last, function(*args, **given)
            return before

        return super().submit(call)


class Rude(ThreadPoolExecutor):
    """Raises errors of its own, takes no arguments by name and cancels nothing."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        def call() -> object:
            try:
                return function(*args)
            except Exception as error:
                raise RuntimeError from error

        future = super().submit(call)
        future.cancel = lambda: False  # type: ignore[method-assign]
        return future


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Forgetful, "test_small_calls_are_many"),
        (Forgetful, "test_large_results_pass"),
        (Rude, "test_a_call_has_its_arguments"),
        (Rude, "test_an_error_is_raised_as_it_was"),
        (Rude, "test_calls_that_wait_can_be_cancelled"),
    ],
)
def test_a_bad_executor_is_found(kind: type[Executor], name: str) -> None:
    class Tests(ExecutorTests):
        def executor(self) -> Executor:
            return kind(2)  # type: ignore[call-arg]

    with pytest.raises((AssertionError, TypeError)):
        getattr(Tests(), name)()
