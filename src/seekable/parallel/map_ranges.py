"""A function of a range of numbers, called for each part of ``range(count)``, here or in other processes.

The numbers are rows of a dataset, or files to be written. A range takes a fraction of a second, and what the
function returns comes in the order of the ranges, however many processes there are.

The function travels to other processes once (`seekable.parallel.function_calls`).
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seekable._arguments import check_workers
from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.parallel.cluster import most_requests
from seekable.parallel.function_calls import (
    WAY_OUT,
    Answer,
    FunctionCalls,
    answered,
    greeting,
    offered,
)
from seekable.parallel.pickling import serialized

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from seekable.parallel import processes
    from seekable.parallel.finished_ranges import FinishedRanges
else:
    processes = lazy("seekable.parallel.processes")

__all__ = [
    "FOREIGN_REQUESTS",
    "ExecutionOptions",
    "RangeFunction",
    "execution_options",
    "map_ranges",
    "with_workers_if_worth_it",
]

T = TypeVar("T")
RangeFunction = Callable[[int, int], T]
"""A picklable function of the first number of a range and the number after its last."""

_RANGE_SECONDS = 0.2
"""The time that a range is to take: short enough to show progress, and far more than sending one costs."""

_MOST_NUMBERS = 1 << 17
"""The most numbers of a range."""

_PATIENCE_SECONDS = 1.0
_START_SECONDS = 0.6
"""The time that workers must save to be worth starting: a new process can begin after some 0.3 s."""

_WORTH_SECONDS = 4.0
"""The time that workers must save where each number is a file, and the estimate is rough."""

FOREIGN_REQUESTS = 64
"""The most requests under way in a user's executor, which does not say how many workers it has."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The processes that `map_ranges` may use."""

    workers: int
    """The most worker processes to start."""

    patience_seconds: float
    """The time for which this process works alone before workers may be started."""

    executor: Executor | None
    """A user's executor, which does all the work and stays open."""

    finished: FinishedRanges | None = None
    """Keeps the ranges that are done, and has those of an earlier call that did not come to its end."""


def execution_options(jobs: int | None, executor: Executor | None, *, at_once: bool) -> ExecutionOptions:
    """Return the options that the arguments ``jobs=`` and ``executor=`` of a user stand for.

    Args:
        jobs: the most processes; None for as many as there are processors, where they are worth their start.
        executor: does the work instead.
        at_once: True to start workers at once where ``jobs`` is a number.

    Raises:
        WrongType: ``jobs`` is no integer, or ``executor`` no executor.
        InvalidArgument: ``jobs`` is less than 1.
    """
    check_workers(jobs, executor)
    patience = 0.0 if at_once and jobs is not None else _PATIENCE_SECONDS
    return ExecutionOptions(processes.usable_cpus() if jobs is None else jobs, patience, executor)


def with_workers_if_worth_it(
    using: ExecutionOptions, function: RangeFunction[Any], count: int, *, seconds: Callable[[], float]
) -> ExecutionOptions:
    """Return options that start workers at once, if the work is long enough and the function can be sent.

    `map_ranges` itself decides after the first range. Where a single number is a file, that may take an hour.

    Args:
        using: the options of the user.
        function: the work.
        count: how many numbers there are; no more workers than that are started.
        seconds: estimates the time of all the work in this process; is called where that matters.
    """
    using = replace(using, workers=max(1, min(count, using.workers)))
    if using.executor is not None or using.workers == 1 or not using.patience_seconds:
        return using
    if seconds() * (1 - 1 / using.workers) < _WORTH_SECONDS:
        return using
    try:
        serialized(function, way_out="")
    except InvalidArgument:
        return using
    return replace(using, patience_seconds=0.0)


def map_ranges(
    function: RangeFunction[T],
    count: int,
    *,
    using: ExecutionOptions,
    restored: Callable[[Any], T] = lambda kept: kept,
) -> Generator[tuple[int, T]]:
    """Yield the end of each range and what the function returned for it, in ascending order.

    With ``using.finished`` the function is not called for ranges that an earlier call finished. Close the
    generator (`contextlib.closing`) if it is not run to its end: that ends the workers.

    Args:
        function: is called many times, in any process, with ranges that make up ``range(count)``.
        count: how many numbers there are.
        using: the processes that may be used.
        restored: makes what the function returned of what `FinishedRanges` read.

    Raises:
        WorkerDied: a worker process or the executor ended too early.
        InvalidArgument: workers are to start at once and the function cannot be sent to them.
        BaseException: the error that the function raised for the lowest range that failed.

    Example:
        >>> parts = map_ranges(range, 25, using=execution_options(1, None, at_once=True))
        >>> [number for _, part in parts for number in part] == list(range(25))
        True
    """
    start = 0
    if using.finished is None:
        yield from _mapped(function, range(count), using=using)
        return
    for stop, kept in using.finished.read():
        start = stop
        yield stop, restored(kept)
    with closing(_mapped(function, range(start, count), using=using)) as left:
        for stop, made in left:
            using.finished.add(stop, made)
            yield stop, made


def _mapped(
    function: RangeFunction[T], numbers: range, *, using: ExecutionOptions
) -> Generator[tuple[int, T]]:
    """Yield what ``map_ranges`` does, for some last numbers."""
    if using.executor is not None:
        with offered(function) as token:
            most = most_requests(using.executor, otherwise=FOREIGN_REQUESTS)
            yield from _elsewhere(using.executor, token, function, numbers, most=most)
        return
    start, payload = yield from _here(function, numbers, using=using)
    if payload is not None:
        token = secrets.token_hex(8)
        rest = range(start, numbers.stop)
        workers = min(using.workers, len(rest))
        with processes.WorkerProcesses(workers, first=greeting(token, payload)) as started:
            yield from _elsewhere(started, token, function, rest, most=2 * workers)


class _Pace:
    """The length of the next range, learned from the ranges before."""

    def __init__(self) -> None:
        self.length = 1

    def saw(self, length: int, seconds: float) -> None:
        """Learn from the time that a range took, by a factor of four at the most."""
        wanted = int(length * _RANGE_SECONDS / max(seconds, 1e-6))
        self.length = min(max(wanted, self.length // 4, 1), self.length * 4, _MOST_NUMBERS)


def _here(
    function: RangeFunction[T], numbers: range, *, using: ExecutionOptions
) -> Generator[tuple[int, T], None, tuple[int, bytes | None]]:
    """Call the function in this process, until all is done or workers are worth their start.

    Returns:
        The first number that is left, and the bytes of the function for workers; None if nothing is left.
    """
    pace, spent, alone = _Pace(), 0.0, using.workers == 1
    start, count = numbers.start, numbers.stop
    while start < count:
        if not alone and spent >= using.patience_seconds:
            rest = (count - start) * spent / max(start - numbers.start, 1)
            ordered = not using.patience_seconds
            if ordered or rest * (1 - 1 / using.workers) > _START_SECONDS:
                try:
                    return start, serialized(function, way_out=WAY_OUT)
                except InvalidArgument:
                    if ordered:
                        raise
                    alone = True
        stop = min(start + pace.length, count)
        began = time.monotonic()
        made = function(start, stop)
        seconds = time.monotonic() - began
        spent += seconds
        pace.saw(stop - start, seconds)
        start = stop
        yield start, made
    return start, None


def _elsewhere(
    executor: Executor, token: str, function: RangeFunction[T], numbers: range, *, most: int
) -> Generator[tuple[int, T]]:
    """Call the function in an executor, with a few ranges under way."""
    ranges: _Ranges[T] = _Ranges(numbers, most=most)
    calls = FunctionCalls(
        token=token,
        function=function,
        take=ranges.take,
        executor_of=lambda _: executor,
        name=lambda request: f"the range from {request[0]:,} to {request[1]:,}",
    )
    with closing(answered(calls, executor=executor, ahead=most)) as answers:
        for request, answer in answers:
            ranges.put(request, answer)
            yield from ranges.in_order()


class _Ranges(Generic[T]):
    """The ranges that are under way, and the answers that came before those of lower ranges."""

    def __init__(self, numbers: range, *, most: int) -> None:
        self._pace = _Pace()
        self._next, self._stop = numbers.start, numbers.stop
        self._most = most
        self._line: deque[tuple[int, int]] = deque()
        """The ranges that were taken and not yielded, in ascending order."""
        self._answers: dict[int, Answer] = {}
        """By the first number of their ranges."""

    def take(self) -> tuple[int, int] | None:
        """Return the next range as its start and stop, or None if there is none to be given now."""
        if self._next == self._stop or len(self._line) == self._most:
            return None
        request = self._next, min(self._next + self._pace.length, self._stop)
        self._line.append(request)
        self._next = request[1]
        return request

    def put(self, request: tuple[int, int], answer: Answer) -> None:
        """Take the answer to a range."""
        self._answers[request[0]] = answer

    def in_order(self) -> Iterator[tuple[int, T]]:
        """Yield the answers to the lowest ranges, as far as there is no gap."""
        while self._line and (answer := self._answers.pop(self._line[0][0], None)) is not None:
            start, stop = self._line.popleft()
            if answer.error is not None:
                raise answer.error
            self._pace.saw(stop - start, answer.seconds)
            yield stop, answer.made
