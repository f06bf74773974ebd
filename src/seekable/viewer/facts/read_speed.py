"""How fast data is read: records a second by order, decoding and workers, and where the time goes.

Ways without workers are measured in turns, a slice of time each, because the speed of a machine drifts. A way
goes on where its last slice ended, so data that is larger than memory comes from the disk.
"""

from __future__ import annotations

import itertools
import os
import resource
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, SeekableError
from seekable.loader.loader import Loader
from seekable.nodes.node import node_of
from seekable.parallel.processes import usable_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.dataset.dataset import Dataset

__all__ = ["ReadSpeed", "ReadWay", "advice", "measured", "time_parts", "ways_of"]

IN_ORDER, SHUFFLED, OWN_ORDER = "in order", "shuffled", "its own"
"""The orders beside that of a window; a pipeline has its own."""

RECORDS, BYTES, ARROW = "records", "bytes", "arrow"
"""What is made of the data: what the dataset makes, the bytes alone, or record batches."""

_ROUNDS = 5
_EPOCHS = 1 << 30
_PLANNED = 4096
"""The positions that a loader plans together."""

_AHEAD = 3
"""The batches of each worker that are not counted: it has made about as many before they are asked for."""

_SOME, _MUCH = 1.15, 1.3
"""An order that is faster by so much is advised; workers and columns, which change more, must bring more."""

_MOSTLY, _CROWDED = 0.5, 2
_BLOCK_BYTES = 512
"""The unit of ``ru_inblock``."""


@dataclass(frozen=True, slots=True)
class ReadWay:
    """One way to read data: an order, what is made of it, and a number of worker processes."""

    order: str
    decode: str
    workers: int
    dataset: Dataset = field(repr=False)


@dataclass(slots=True)
class ReadSpeed:
    """What was measured of a way, over all its slices."""

    way: ReadWay
    records: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    """The processor time of this process alone."""

    disk_bytes: int = 0
    """Bytes that this process read from a disk."""

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def record_processor_seconds(self) -> float:
        """The processor time of a record in this process."""
        return self.processor_seconds / self.records

    @property
    def waiting(self) -> float:
        """The share of the time in which this process did not work: it waited for data or a processor."""
        return max(0.0, 1 - self.processor_seconds / self.seconds)


class _Run:
    """An endless run over the batches of a way, of which slices are timed."""

    def __init__(self, way: ReadWay, batch_size: int) -> None:
        self.speed = ReadSpeed(way)
        # Record batches stay such by default; a list is the least that a batch of records can be.
        made: Mapping[str, Any] = {} if way.decode == ARROW else {"collate": list}
        self._loader = Loader(
            way.dataset,
            batch_size=batch_size,
            epochs=_EPOCHS,
            workers=way.workers,
            rank=0,
            world_size=1,
            **made,
        )
        self._batches = iter(self._loader)

    def begin(self) -> None:
        """Take the first batches, which are not counted."""
        for _ in range(1 + _AHEAD * self.speed.way.workers):
            next(self._batches)

    def take(self, seconds: float) -> None:
        """Take batches for so long, and one at least."""
        count, took, speed = 0, 0.0, self.speed
        began, worked, disk = time.perf_counter(), time.process_time(), _disk_bytes()
        while took < seconds or not count:
            batch = next(self._batches)
            count += getattr(batch, "num_rows", None) or len(batch)
            took = time.perf_counter() - began
        speed.records += count
        speed.seconds += took
        speed.processor_seconds += time.process_time() - worked
        speed.disk_bytes += _disk_bytes() - disk

    def close(self) -> None:
        """End the run, and the processes of its workers."""
        self._loader.close()


def ways_of(
    dataset: Dataset, others: Mapping[str, Dataset], *, window: int, workers: int, ordered: bool
) -> list[ReadWay]:
    """Return the ways to read data that are worth comparing; those with workers come last.

    Args:
        dataset: the data as it is opened.
        others: the same data with other decodings, by their names.
        window: the blocks of a windowed shuffle.
        workers: the number of worker processes to compare with none; 0 for no such comparison.
        ordered: True if the dataset is a pipeline with an order of its own, which stays.
    """
    if ordered:
        orders = {OWN_ORDER: dataset}
    else:
        windowed = dataset.shuffle(seed=0, window=window)
        orders = {IN_ORDER: dataset, f"window={window}": windowed, SHUFFLED: dataset.shuffle(seed=0)}
    main, last = list(orders.items())[-1]
    ways = [ReadWay(order, RECORDS, 0, each) for order, each in orders.items()]
    ways += [ReadWay(main, name, 0, each.shuffle(seed=0)) for name, each in others.items()]
    return ways + [ReadWay(main, RECORDS, workers, last)] * bool(workers)


def measured(
    ways: Sequence[ReadWay], *, seconds: float, batch_size: int, tell: Callable[[float, ReadWay], None]
) -> list[ReadSpeed]:
    """Measure the ways: those without workers in turns, then each that has workers by itself.

    A decoding that cannot read this data is left out.

    Args:
        ways: the ways; the first one decodes as the dataset does.
        seconds: about how long all of it may take.
        batch_size: the records in a batch, fewer where so many take too long.
        tell: is called before each slice with the share of the time that is over, and the way.

    Raises:
        InvalidArgument: there is no record, or there is no end of them.
        SeekableError: a record cannot be read as the dataset decodes it.
    """
    size = node_of(ways[0].dataset).size
    if not size:
        message = "there is no record to read" if size == 0 else "data without an end cannot be measured"
        raise InvalidArgument(message)
    began, each = time.perf_counter(), seconds / len(ways)

    def told(way: ReadWay) -> None:
        tell(min(1.0, (time.perf_counter() - began) / seconds), way)

    batch_size = min(batch_size, size, _fitting(ways[0].dataset, each / (_ROUNDS + 1)))
    alone, shared = ([way for way in ways if bool(way.workers) is works] for works in (False, True))
    found = _in_turns(alone, batch_size, began + each * len(alone), told)
    for way in shared:
        told(way)
        run = _Run(way, batch_size)
        try:
            run.begin()
            run.take(max(each / 2, began + seconds - time.perf_counter()))
        finally:
            run.close()
        found.append(run.speed)
    return found


def _in_turns(
    ways: Sequence[ReadWay], batch_size: int, deadline: float, told: Callable[[ReadWay], None]
) -> list[ReadSpeed]:
    """Give each way a slice in each round; after the first round only as long as there is time.

    The first round only fills caches, where there is time for more.
    """
    runs = []
    try:
        for way in ways:
            told(way)
            run = _begun(way, batch_size)
            if run is not None:
                runs.append(run)
        each = (deadline - time.perf_counter()) / (_ROUNDS * len(runs))
        for turn, run in itertools.product(range(_ROUNDS), runs):
            if turn and time.perf_counter() >= deadline:
                break
            if turn == 1:
                run.speed = ReadSpeed(run.speed.way)
            told(run.speed.way)
            run.take(each)
    finally:
        for run in runs:
            run.close()
    return [run.speed for run in runs]


def _begun(way: ReadWay, batch_size: int) -> _Run | None:
    """Return a run that has made its first batch; None for another decoding that cannot read this data."""
    run = _Run(way, batch_size)
    try:
        run.begin()
    except SeekableError:
        if way.decode == RECORDS:
            raise
        return None
    return run


def _fitting(dataset: Dataset, seconds: float) -> int:
    """Return how many records can be read in so many seconds, one at least."""
    dataset[0]
    began = time.perf_counter()
    dataset[len(dataset) // 2]
    return max(1, int(seconds / (time.perf_counter() - began)))


def time_parts(speeds: Sequence[ReadSpeed]) -> dict[str, float]:
    """Return where the time of a record goes, in the last order, without workers: seconds by what for.

    The order is timed by itself. Reading is what the bytes alone take beside it, decoding what records take
    above them.
    """
    whole = _plain(speeds)
    worked = whole.record_processor_seconds
    order = min(_order_seconds(whole.way.dataset), worked)
    parts = {"order": order}
    as_bytes = [speed.record_processor_seconds for speed in speeds if speed.way.decode == BYTES]
    if as_bytes:
        read = min(max(as_bytes[0], order), worked)
        parts |= {"reading": read - order, "decoding": worked - read}
    else:
        parts["reading and decoding"] = worked - order
    return parts | {"waiting": whole.waiting / whole.rate}


def _plain(speeds: Sequence[ReadSpeed]) -> ReadSpeed:
    """Return the speed of a full shuffle, or of the order that a pipeline has, without more."""
    return [speed for speed in speeds if not speed.way.workers and speed.way.decode == RECORDS][-1]


def _order_seconds(dataset: Dataset) -> float:
    """Return the processor time of resolving a position, among thousands that are resolved together."""
    node, size = node_of(dataset), len(dataset)
    taken = []
    for turn in range(_ROUNDS):
        positions = np.arange(turn * _PLANNED, (turn + 1) * _PLANNED, dtype=np.int64) % size
        began = time.process_time()
        node.plan(positions)
        taken.append((time.process_time() - began) / _PLANNED)
    return min(taken)


def advice(speeds: Sequence[ReadSpeed], parts: Mapping[str, float]) -> list[str]:
    """Return what to change, each with what it gives; that nothing is to be changed if there is nothing."""
    plain = _plain(speeds)
    found = [each for speed in speeds for each in _compared(speed, plain)]
    share = parts.get("decoding", 0.0) / sum(parts.values())
    if share > _MOSTLY and not any(speed.way.decode == ARROW for speed in speeds):
        found.append(
            f"decoding is {share:.0%} of the time: read fewer fields (columns=, select_columns), or "
            f"let workers share it where they are faster above"
        )
    if plain.waiting > _MOSTLY:
        found.append(f"{plain.waiting:.0%} of the time of the order {plain.way.order!r} is waiting")
    load, processors = os.getloadavg()[0], usable_cpus()
    if load > _CROWDED * processors:
        found.append(f"measure again on an idle machine: the load is {load:.0f} on {processors} processors")
    return found or ["nothing: no other way that was measured is much faster"]


def _compared(speed: ReadSpeed, plain: ReadSpeed) -> list[str]:
    """Return what to say of a way beside a full shuffle."""
    way, times = speed.way, speed.rate / plain.rate
    if way.workers and times < 1:
        return [f"workers=0: {way.workers} workers are slower here, as what they make has to be sent back"]
    if way.workers and times > _MUCH:
        return [f"Loader(workers={way.workers}) reads {times:.1f} times as fast as none"]
    if way.decode == ARROW and times > _MUCH:
        return [f'sk.open(..., decode="arrow") reads {times:.1f} times as fast: columns, and no dicts']
    if way.order.startswith("window") and times > _SOME:
        return [f"shuffle({way.order}) reads {times:.1f} times as fast as a full shuffle"]
    return []


def _disk_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_inblock * _BLOCK_BYTES
