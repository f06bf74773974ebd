"""Calls a function for each part of ``range(count)``, here or in other processes.

The numbers are rows of a dataset, or files to be written. A range takes a fraction of a second, and what the
function returns comes in the order of the ranges, however many processes there are. The function travels to
other processes once (`seekable.parallel.function_calls`).

Finished ranges are kept in a file, so that the same call goes on where a worker or the process died. The file
begins with a digest of what decides the results. Then comes a frame for each range, in ascending order: the
number after its last, the length and the digest of what the function returned, and that itself, as msgpack
with arrays by dtype, shape and bytes. A torn frame ends what is read.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import msgspec
import numpy as np
import xxhash

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
    from typing import BinaryIO

    from seekable.parallel import processes
else:
    processes = lazy("seekable.parallel.processes")

__all__ = [
    "FOREIGN_REQUESTS",
    "ExecutionOptions",
    "FinishedRanges",
    "RangeFunction",
    "execution_options",
    "map_ranges",
    "with_workers_if_worth_it",
]

_MAGIC: Final = b"SKRANGE1"
_FRAME: Final = struct.Struct("<QQQ")
_ARRAY: Final = 1
_KINDS: Final = "biuf"
"""The kinds of dtypes that stand in a file: flags and numbers."""

T = TypeVar("T")

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


@final
class FinishedRanges:
    """The results of a function for the first ranges of a job.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with FinishedRanges(f"{folder}/a.part", of={"dataset": "xxh3:1"}) as kept:
        ...         kept.add(3, [np.arange(2), "a"])
        ...     with FinishedRanges(f"{folder}/a.part", of={"dataset": "xxh3:1"}) as kept:
        ...         [(stop, made[0].tolist(), made[1]) for stop, made in kept.read()]
        [(3, [0, 1], 'a')]
    """

    def __init__(self, path: str, *, of: Any) -> None:
        """Name the file, which is made with the first range.

        Args:
            path: the file; the caller holds a lock for it.
            of: what decides the results, JSON-safe: ranges of anything else are not read.
        """
        self.path = path
        self._head = _MAGIC + xxhash.xxh3_128_digest(msgspec.json.encode(of, order="sorted"))
        self._file: BinaryIO | None = None
        self._is_full = False

    def read(self) -> Iterator[tuple[int, Any]]:
        """Yield the end of each finished range and what the function returned; lists stand for tuples."""
        try:
            file = open(self.path, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            return
        with file:
            whole = 0
            if file.read(len(self._head)) == self._head:
                whole = len(self._head)
                while (frame := _read_frame(file)) is not None:
                    whole = file.tell()
                    yield frame
        with open(self.path, "r+b") as cut:
            cut.truncate(whole)

    def add(self, stop: int, made: Any) -> None:
        """Keep the next range; a disk that is full is not an error, and ends the keeping.

        Args:
            stop: the number after its last.
            made: what the function returned: arrays of numbers, texts, bytes, and lists and dicts of them.
        """
        if self._is_full:
            return
        data = msgspec.msgpack.encode(made, enc_hook=_encoded)
        try:
            if self._file is None:
                self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - `close` closes it
                if not self._file.tell():
                    self._file.write(self._head)
            self._file.write(_FRAME.pack(stop, len(data), xxhash.xxh3_64_intdigest(data)) + data)
        except OSError:
            self._is_full = True

    def remove(self) -> None:
        """Remove the file: the whole result is kept elsewhere."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def close(self) -> None:
        """Close the file of results."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> FinishedRanges:
        """Return this object, for a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file of results."""
        self.close()


def _read_frame(file: BinaryIO) -> tuple[int, Any] | None:
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    stop, length, digest = _FRAME.unpack(head)
    if length > os.fstat(file.fileno()).st_size - file.tell():
        return None
    data = file.read(length)
    if xxhash.xxh3_64_intdigest(data) != digest:
        return None
    return stop, msgspec.msgpack.decode(data, ext_hook=_decoded)


def _encoded(value: Any) -> msgspec.msgpack.Ext:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in _KINDS:
        message = f"a range gave a {type(value).__name__}, which is no array of numbers"
        raise NotImplementedError(message)
    parts = value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()
    return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))


def _decoded(_: int, data: memoryview) -> Any:
    dtype, shape, raw = msgspec.msgpack.decode(data)
    return np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape)


RangeFunction = Callable[[int, int], T]
"""A picklable function of the first number of a range and the number after its last."""


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
        WrongType: ``jobs`` is not an integer, or ``executor`` no executor.
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
