"""The padding of batches that are padded to their longest record, and of packed samples that are not full.

That of a run, step by step; and of data that no run has yet, by the size of a batch and the order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.loader.positioned import position_of, size_at, sizes_of
from seekable.loader.steerable import made_by
from seekable.nodes.graph import HOLE, known_size, nodes_of
from seekable.packing.nodes.packed_node import PackedNode
from seekable.viewer.facts.lengths import PositionLengths, index_unit, position_lengths
from seekable.viewer.facts.reading import FROM_INDEX, ResultPace, ratio_error, read_sample, sample_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.loader.loader import Loader
    from seekable.nodes.node import Node
    from seekable.viewer.facts.lengths import IndexUnit
    from seekable.viewer.facts.token_counts import RecordMeasure, RecordUnit

_MOST_INDEXED = 200_000
_MOST_READ = 10_000
"""The records whose lengths are looked up in the index in some 50 ms; those that are read in some seconds."""

_MOST_STEPS = 200
_AT_ONCE = 512

BATCHES = (4, 8, 16, 32, 64, 128)
"""The batches for which the padding of data is computed: each divides those after it."""

_SORTED = 2048
"""The rows that are sorted by length together, as bucketing has them at hand."""

_ORDERS = ("shuffled", "in the order of the files", f"by length within {_SORTED:,} shuffled rows")


@dataclass(frozen=True, slots=True)
class Padding:
    """The elements in batches of some steps, without padding and with it; of fewer while the work goes on.

    Each rank's part of a batch is padded to its own longest record; a packed sample has its own width.
    """

    start: int
    stop: int
    """The steps of the window."""

    done: int
    """The number of steps that were looked at."""

    of: int
    """The number of steps that are looked at in the end."""

    unit: IndexUnit | RecordUnit
    batch: int | list[tuple[int, int]]
    """The records of a step over all ranks; or pairs of a step and the records from there on."""
    world_size: int

    is_packed: bool
    """True if the records are packed samples, so that the padding is in them and not between them."""

    made_of: str
    """What the figures are made of."""

    steps: Int64s
    """The steps that were looked at, ascending: int64."""

    held: Int64s
    """What the records of each of them hold, in ``unit``."""

    padded: Int64s
    """What they hold with the padding."""

    left_out: int
    """The number of records without a length, such as corrupt ones: they count as empty."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The padding of each step as a share of what the padded batch holds, 0 to 1."""
        shares: NDArray[np.float64] = (self.padded - self.held) / np.maximum(self.padded, 1)
        return shares

    @property
    def share(self) -> float:
        """The padding of all steps together, 0 to 1."""
        return _share(self.held, self.padded)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % bounds of the share of all steps; both are the share if all were looked at."""
        return _bounds(self.held, self.padded, self.steps.size / (self.stop - self.start))

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        low, high = self.bounds
        return {
            "from": self.start,
            "to": self.stop,
            "done": self.done,
            "of": self.of,
            "unit": self.unit,
            "batch": self.batch,
            "world_size": self.world_size,
            "packed": self.is_packed,
            "made_of": self.made_of,
            "held": int(self.held.sum()),
            "padded": int(self.padded.sum()),
            "share": self.share,
            "low": low,
            "high": high,
            "left_out": self.left_out,
            "steps": self.steps.tolist(),
            "held_by_step": self.held.tolist(),
            "padded_by_step": self.padded.tolist(),
        }


def padding(
    loader: Loader,
    *,
    start: int,
    stop: int,
    measure: RecordMeasure | None = None,
    source: Callable[[Node], Node] | None = None,
) -> Generator[Padding]:
    """Yield the padding of a window while its steps are looked at; the last result covers all of these.

    Each rank pads its own part of a batch. Each step is made as the journal of the run says. The records that
    fill up the last batch of a run (``end="pad"``) are not counted. Of a large window 200 steps are looked
    at, fewer of large batches: the first ones of a shuffle with seed 0.

    Args:
        loader: the loader of the run, over a dataset.
        start: the first step.
        stop: the step after the last one.
        measure: the length of records, which are read for it; None for the lengths of the index.
        source: returns the order of a dataset over records as they are in the files; None for those of the
            run.

    Raises:
        InvalidArgument: a number is out of range, a step is not known or never comes, or the index has no
            lengths.

    Example:
        >>> import seekable as sk
        >>> from seekable.viewer.facts.token_counts import record_measure
        >>> ds = sk.from_sequence(["a", "abc", "ab", "ab"])
        >>> measure = record_measure(ds[0])
        >>> *_, found = padding(sk.Loader(ds, batch_size=2), start=0, stop=2, measure=measure)
        >>> found.held.tolist(), found.padded.tolist(), found.share
        ([4, 4], [6, 4], 0.2)
    """
    checked_count("start", start, least=0)
    checked_count("stop", stop, least=start + 1)
    pieces = _Pieces(loader, source)
    node = pieces.at(start)
    sizes, ranks = sizes_of(loader), loader.world_size
    batch = sizes if isinstance(sizes, int) else max(size for _, size in sizes)
    unit = index_unit(node)
    if measure is None and unit is None:
        message = f"the index has no lengths of the records of {node.expression()}: measure= reads them"
        raise InvalidArgument(message)
    most = max(1, min(_MOST_STEPS, (_MOST_INDEXED if measure is None else _MOST_READ) // batch))
    order = sample_rows(stop - start, most, 0) + start
    base: dict[str, Any] = {
        "start": start,
        "stop": stop,
        "of": order.size,
        "batch": sizes,
        "world_size": ranks,
    }
    base |= {"unit": unit if measure is None else measure.unit}
    base |= {"is_packed": measure is None and _is_packed(node)}
    found, left_out, pace = np.zeros((2, 0), np.int64), 0, ResultPace()
    each = order.size if measure is None else max(1, _AT_ONCE // batch)
    for first in range(0, order.size, each):
        steps = order[first : first + each]
        made = [_of_steps(loader, piece, some, measure) for piece, some in pieces.of(steps)]
        found = np.concatenate([found, *(sums for sums, _ in made)], axis=1)
        left_out += sum(lacking for _, lacking in made)
        done = first + steps.size
        if done == order.size or pace.due():
            at = np.argsort(order[:done])
            columns = {"steps": order[at], "held": found[0, at], "padded": found[1, at], "left_out": left_out}
            yield Padding(**base, done=done, made_of=_made_of(done, stop - start, measure), **columns)
            pace.made()


@final
class _Pieces:
    """The dataset that makes each step, as the journal of the run says."""

    def __init__(self, loader: Loader, source: Callable[[Node], Node] | None) -> None:
        self._loader, self._source = loader, source
        self._made: dict[int, tuple[Node, Node]] = {}
        """By the id of each dataset itself, and what ``source`` returns for it."""

    def at(self, step: int) -> Node:
        """Return the dataset of a step."""
        node = made_by(self._loader, step)
        if id(node) not in self._made:
            self._made[id(node)] = node, node if self._source is None else self._source(node)
        return self._made[id(node)][1]

    def of(self, steps: Int64s) -> Iterator[tuple[Node, Int64s]]:
        """Yield runs of some steps that follow one another, each with the dataset that makes all of it."""
        for _, some in itertools.groupby(steps.tolist(), key=lambda step: id(self.at(step))):
            run = np.array(list(some), dtype=np.int64)
            yield self.at(int(run[0])), run


def _of_steps(loader: Loader, node: Node, steps: Int64s, measure: RecordMeasure | None) -> tuple[Int64s, int]:
    """Return what some steps of one dataset hold, and hold padded, and how many records have no length."""
    positions, is_there = _positions(loader, steps)
    lengths, lacking = _lengths(node, positions[is_there], measure)
    is_in = lengths.places >= 0
    is_there[is_there] = is_in
    kept = PositionLengths(lengths.held[is_in], lengths.places[is_in])
    return _sums(kept, is_there, loader.world_size), lacking


def _is_packed(node: Node) -> bool:
    return any(isinstance(each, PackedNode) for each in nodes_of(node))


def _lengths(node: Node, positions: Int64s, measure: RecordMeasure | None) -> tuple[PositionLengths, int]:
    """Return the lengths of the records at positions, and how many have none."""
    if measure is None:
        return position_lengths(node, positions), 0
    records = read_sample(node, positions)
    lengths = measure.lengths(records)
    is_hole = np.fromiter((record is HOLE for record in records), np.bool_, len(records))
    lacking = (lengths < 0) & ~is_hole
    lengths[lengths < 0] = 0
    return PositionLengths(lengths, np.where(is_hole, -1, lengths)), int(lacking.sum())


def _positions(loader: Loader, steps: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
    """Return the positions that each step may have, and True for those it has: shape (steps, largest batch).

    The last batch of a run may be shorter than the others.
    """
    edges = [(position_of(loader, step), position_of(loader, step + 1)) for step in steps.tolist()]
    firsts, lasts = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    positions = firsts[:, None] + np.arange(max(size_at(loader, step) for step in steps.tolist()))
    return positions, positions < lasts[:, None]


def _sums(lengths: PositionLengths, is_there: NDArray[np.bool_], ranks: int) -> Int64s:
    """Return what each step holds, and what it holds padded: int64 of shape (2, steps)."""
    held, places = np.zeros((2, *is_there.shape), np.int64)
    held[is_there], places[is_there] = lengths.held, lengths.places
    # Neighbours go to different ranks, so each column here is the part of one rank.
    by_rank = is_there.shape[0], -1, ranks
    padded = places.reshape(by_rank).max(axis=1) * is_there.reshape(by_rank).sum(axis=1)
    return np.stack([held.sum(axis=1), padded.sum(axis=1)])


def _share(held: Int64s, padded: Int64s) -> float:
    whole = int(padded.sum())
    return (whole - int(held.sum())) / whole if whole else 0.0


def _bounds(held: Int64s, padded: Int64s, part: float) -> tuple[float, float]:
    """Return the 95 % bounds of a share of padding.

    Args:
        held: what each unit that was drawn holds.
        padded: what each holds with padding.
        part: the part of all units that was drawn, from 0 to 1.
    """
    share, count = _share(held, padded), held.size
    if part >= 1:
        return share, share
    if count <= 1 or not padded.any():
        return 0.0, 1.0
    half = ratio_error(padded - held, padded, part)
    return max(0.0, share - half), min(1.0, share + half)


def _made_of(done: int, window: int, measure: RecordMeasure | None, unit: str = "steps") -> str:
    if done < window:
        lengths = FROM_INDEX if measure is None else f"counted in {measure.unit}"
        return f"from {done:,} of {window:,} {unit}, seed 0; lengths {lengths}"
    return FROM_INDEX if measure is None else f"exact, from the {measure.unit} of all records"


@dataclass(frozen=True, slots=True)
class BatchPadding:
    """The padding of batches of one size in one order."""

    order: str
    batch: int
    share: float
    """The padding as a share of what the padded batches hold, 0 to 1."""

    low: float
    """The lower 95 % bound of the share of all batches."""

    high: float
    """The upper one; equal to the lower one if all rows were looked at."""


@dataclass(frozen=True, slots=True)
class DataPadding:
    """The padding that data has in batches; while the work goes on, of fewer rows."""

    done: int
    """The number of lengths that were found."""

    of: int
    unit: IndexUnit | RecordUnit
    made_of: str
    batches: tuple[BatchPadding, ...]
    """A figure for each size of a batch in each order."""

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {
            "done": self.done,
            "of": self.of,
            "unit": self.unit,
            "made_of": self.made_of,
            "batches": [
                {
                    "order": each.order,
                    "batch": each.batch,
                    "share": each.share,
                    "low": each.low,
                    "high": each.high,
                }
                for each in self.batches
            ],
        }


def data_padding(node: Node, *, measure: RecordMeasure | None = None) -> Generator[DataPadding]:
    """Yield the padding of data by batch and order, while lengths are found; the last result is of all.

    Of large data some rows are looked at: the first ones of a shuffle with seed 0, and blocks of 128 rows
    that follow one another. Where rows are sorted by length, it is within 2,048 rows of the shuffle.

    Args:
        node: the data, with a length.
        measure: the length of records, which are read for it; None for the lengths of the index.

    Raises:
        InvalidArgument: the index has no lengths.
        EndlessDataset: the node has no length.

    Example:
        >>> import seekable as sk
        >>> from seekable.viewer.facts.token_counts import record_measure
        >>> letters = sk.from_sequence(["a", "abc", "ab", "ab"])
        >>> *_, found = data_padding(letters._node, measure=record_measure(letters[0]))
        >>> [(each.order, round(each.share, 2)) for each in found.batches if each.batch == 4][1]
        ('in the order of the files', 0.33)
    """
    size = known_size(node, "padding")
    unit: IndexUnit | RecordUnit | None = index_unit(node) if measure is None else measure.unit
    if unit is None:
        message = f"the index has no lengths of the records of {node.expression()}: measure= reads them"
        raise InvalidArgument(message)
    most, largest = _MOST_INDEXED if measure is None else _MOST_READ, BATCHES[-1]
    shuffled = sample_rows(size, most, 0)
    blocks = sample_rows(size // largest, most // largest, 0)
    is_all = shuffled.size == size
    others = np.zeros(0, np.int64) if is_all else (blocks[:, None] * largest + np.arange(largest)).ravel()
    rows = np.concatenate([shuffled, others])
    lengths, pace = np.zeros(0, np.int64), ResultPace()
    at_once = max(1, rows.size) if measure is None else _AT_ONCE
    for first in range(0, max(1, rows.size), at_once):
        found, _ = _lengths(node, rows[first : first + at_once], measure)
        lengths = np.concatenate([lengths, np.maximum(found.places, 0)])
        if lengths.size == rows.size or pace.due():
            in_files = lengths[shuffled.size :]
            if is_all and lengths.size == size:
                in_files = np.empty(size, np.int64)
                in_files[shuffled] = lengths
            made_of = _made_of(min(lengths.size, shuffled.size), size, measure, "rows")
            batches = _by_batch(lengths[: shuffled.size], in_files, size)
            yield DataPadding(lengths.size, rows.size, unit, made_of, batches)
            pace.made()


def _by_batch(shuffled: Int64s, in_files: Int64s, size: int) -> tuple[BatchPadding, ...]:
    """Return the padding in each order.

    Args:
        shuffled: the lengths of rows in their shuffled order.
        in_files: those of rows in the order of the files, in blocks of 128.
        size: the number of all rows.
    """
    windows = [np.sort(shuffled[at : at + _SORTED]) for at in range(0, shuffled.size, _SORTED)]
    by_length = np.concatenate([np.zeros(0, np.int64), *windows])
    found = []
    for order, lengths, together in zip(
        _ORDERS, (shuffled, in_files, by_length), (1, BATCHES[-1], _SORTED), strict=True
    ):
        for batch in BATCHES:
            # Batches that were drawn together count as one.
            held, padded = _in_batches(lengths, batch, max(1, together // batch))
            bounds = _bounds(held, padded, lengths.size / size if size else 1.0)
            found.append(BatchPadding(order, batch, _share(held, padded), *bounds))
    return tuple(found)


def _in_batches(lengths: Int64s, batch: int, together: int) -> tuple[Int64s, Int64s]:
    """Return what records hold and hold padded, summed over some batches together; int64 each."""
    rows = -(-lengths.size // batch)
    full = np.zeros((rows, batch), np.int64)
    full.ravel()[: lengths.size] = lengths
    counts = np.full(rows, batch)
    counts[rows - 1 :] -= rows * batch - lengths.size
    firsts = np.arange(0, rows, together)
    held, padded = full.sum(axis=1), full.max(axis=1, initial=0) * counts
    return (np.add.reduceat(held, firsts), np.add.reduceat(padded, firsts)) if rows else (held, padded)
