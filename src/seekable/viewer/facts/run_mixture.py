"""The mixture of a run over time: the weights in force, and what they plan and deliver of each source.

Records are exact. Bytes are looked up in the index where the steps have few records; where they have many,
they are records times the mean length of the source's records. Both include line ends. Tokens are these bytes
times the tokens per byte, which the caller has estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.formats.tables.tables import TableSource
from seekable.loader.positioned import position_of, regular_step, sizes_of
from seekable.loader.steerable import made_by
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.batch import Batch
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.mix import Mix
from seekable.nodes.node import node_of
from seekable.viewer.facts.lengths import index_unit, position_lengths
from seekable.viewer.facts.named_sources import source_counts, source_names, sources_in_files, sources_of
from seekable.viewer.facts.reading import COMPUTED, FROM_INDEX, bytes_of_records, sample_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.loader.loader import Loader
    from seekable.nodes.node import Node

    Float64s = NDArray[np.float64]

Unit = Literal["records", "bytes", "tokens"]
UNITS: tuple[Unit, ...] = ("records", "bytes", "tokens")

_USUAL_STEPS = 1000
_MOST_USUAL_STEPS = 10**6

_SAMPLED = 1000
"""The rows of a source without lengths of lines that are planned for its mean: some milliseconds."""

_MOST_LOOKED_UP = 100_000
"""The records whose lengths are looked up one by one, which takes some 0.1 s."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The weights of the outermost mixture of a pipeline, in force one after the other."""

    names: tuple[str, ...]
    """The parts of the mixture."""

    batch: int | list[tuple[int, int]]
    """The records of a step over all ranks; pairs of a step and the records from there on."""

    positions: tuple[int, ...]
    """The position from which on each row of weights holds, ascending from 0."""

    steps: tuple[int, ...]
    """The step that has this position; the change may come in its middle."""

    weights: tuple[tuple[int, ...], ...]
    """The weights that hold from each position on."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights as shares of 1: shape (changes, parts)."""
        rows = np.array(self.weights, dtype=np.float64)
        shares: NDArray[np.float64] = rows / rows.sum(axis=1, keepdims=True)
        return shares

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        columns = zip(self.steps, self.positions, self.weights, self.shares.tolist(), strict=True)
        return {
            "made_of": COMPUTED,
            "batch": self.batch,
            "sources": list(self.names),
            "changes": [
                {"step": step, "position": position, "weights": list(weights), "shares": shares}
                for step, position, weights, shares in columns
            ],
        }


def schedule(loader: Loader) -> Schedule:
    """Return the weights of the outermost mixture of a pipeline, and when they change.

    Args:
        loader: the loader of the run, over a dataset.

    Raises:
        InvalidArgument: the pipeline has no mixture, or stages above it choose or move records.

    Example:
        >>> import seekable as sk
        >>> web, code = (sk.from_sequence(range(10**6)) for _ in range(2))
        >>> weights = [(0, {"web": 9, "code": 1}), (640, {"web": 1, "code": 1})]
        >>> ds = sk.mix({"web": web, "code": code}, weights=weights, seed=0)
        >>> found = schedule(sk.Loader(ds, batch_size=64, prefetch=0))
        >>> found.steps, found.shares.tolist()
        ((0, 10), [[0.9, 0.1], [0.5, 0.5]])
    """
    mix, each = _mix(made_by(loader))
    starts = [start for start, _ in mix.in_force]
    names = mix.names or tuple(map(str, range(len(mix.parts))))
    positions = tuple(-(-start // each) for start in starts)
    weights = tuple(weights for _, weights in mix.in_force)
    steps = tuple(regular_step(loader, position) for position in positions)
    return Schedule(names, sizes_of(loader), positions, steps, weights)


def _mix(node: Node) -> tuple[Mix, int]:
    """Return the outermost mixture, and how many of its records each position of the pipeline has."""
    each = 1
    while not isinstance(node, Mix):
        grouped = node.length if isinstance(node, Batch) and node.size is None else 0
        is_same = isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode)
        if not grouped and not is_same:
            raise InvalidArgument(
                f"{node.expression()} is neither a mixture nor a map or an endless batch of one, so it "
                f"has no weights"
            )
        each *= grouped or 1
        (node,) = node.children
    return node, each


@dataclass(frozen=True, slots=True)
class RunMixture:
    """What each source gives between some steps of a run, in records, bytes or tokens."""

    names: tuple[str, ...]
    unit: Unit
    made_of: str
    batch: int | list[tuple[int, int]]
    """The records of a step over all ranks; or pairs of a step and the records from there on."""
    steps: Int64s
    """The steps of the places, ascending, one more than there are intervals: int64."""
    delivered: Float64s
    """What comes of each source in each interval: shape (intervals, sources)."""
    planned: Float64s
    """What the weights plan for it, not rounded to records: the same shape."""

    def document(self) -> dict[str, Any]:
        """Return the fact, JSON-safe, with the sums over all intervals beside each source's name."""
        sums = zip(
            self.names, self.planned.sum(axis=0).tolist(), self.delivered.sum(axis=0).tolist(), strict=True
        )
        return {
            "unit": self.unit,
            "made_of": self.made_of,
            "batch": self.batch,
            "sources": [{"name": name, "planned": plan, "delivered": came} for name, plan, came in sums],
            "steps": self.steps.tolist(),
            "planned": self.planned.tolist(),
            "delivered": self.delivered.tolist(),
        }


def mixture(
    loader: Loader,
    *,
    start: int,
    stop: int,
    places: int = 200,
    unit: Unit = "records",
    tokens_per_byte: Mapping[str, float] | None = None,
) -> RunMixture:
    """Return what each source gives to the steps ``start`` to ``stop`` of a run; no record is read.

    The records that a run leaves out at its end (``end="drop"``) count as delivered. The plan is the weights
    of the mixtures, with their schedules. Below them, where there is no mixture, it is the records of an
    epoch of each part.

    Args:
        loader: the loader of the run, over a dataset.
        start: the first step.
        stop: the step after the last one.
        places: the most intervals.
        unit: records or bytes, from the index; or tokens, estimated.
        tokens_per_byte: the tokens in a byte of each source, by name, where the unit is tokens.

    Raises:
        InvalidArgument: a number is out of range, or the tokens in a byte of a source are not given.
        DataNotFound: the unit is not records, and the files of a rebuilt pipeline are not on this machine.

    Example:
        >>> import seekable as sk
        >>> a, b = sk.from_sequence(range(10**6)), sk.from_sequence(range(10**6))
        >>> ds = sk.mix({"a": a, "b": b}, weights={"a": 3, "b": 1}, seed=0)
        >>> fact = mixture(sk.Loader(ds, batch_size=64, prefetch=0), start=0, stop=100, places=2)
        >>> fact.steps.tolist(), fact.delivered.tolist(), fact.planned.tolist()
        ([0, 50, 100], [[2400.0, 800.0], [2400.0, 800.0]], [[2400.0, 800.0], [2400.0, 800.0]])
    """
    checked_count("start", start, least=0)
    checked_count("stop", stop, least=start)
    intervals = min(checked_count("places", places, least=1), stop - start)
    if unit not in ("records", "bytes", "tokens"):
        message = f"unit must be 'records', 'bytes' or 'tokens' (got {unit!r})"
        raise InvalidArgument(message)
    node = made_by(loader)
    names = source_names(node)
    steps = np.array([start + (stop - start) * i // max(1, intervals) for i in range(intervals + 1)])
    positions = np.array([position_of(loader, step) for step in steps.tolist()], dtype=np.int64)
    delivered = np.diff(source_counts(node, positions), axis=0).astype(np.float64)
    planned = np.diff(_planned(node, positions.astype(np.float64)), axis=0)
    made_of = COMPUTED
    if unit != "records":
        means, made_of = _mean_lengths(node)
        planned *= means
        found = _looked_up(node, positions)
        delivered, made_of = (delivered * means, made_of) if found is None else (found, FROM_INDEX)
    if unit == "tokens":
        rates = _rates(names, tokens_per_byte)
        delivered, planned = delivered * rates, planned * rates
        made_of += ", times the tokens in a sampled byte"
    return RunMixture(names, unit, made_of, sizes_of(loader), steps, delivered, planned)


def usual_stop(loader: Loader, *, start: int) -> int:
    """Return the step to which a run is shown by default: the end of its first epoch, or its own.

    For endless data it is step 1,000; never more than 1,000,000, and at least the step after ``start``.

    Example:
        >>> import seekable as sk
        >>> usual_stop(sk.Loader(sk.from_sequence(range(100)), batch_size=10, prefetch=0), start=0)
        10
    """
    size = node_of(loader.dataset).size
    whole = regular_step(loader, size) if size else _USUAL_STEPS
    left = loader.steps_left
    end = whole if left is None else loader.step + left
    return max(start + 1, min(whole, end, _MOST_USUAL_STEPS))


def _planned(node: Node, positions: Float64s) -> Float64s:
    """Return the planned records of each source before positions, which may be fractions."""
    if isinstance(node, Mix):
        parts = [_planned(child, _share(node, slot, positions)) for slot, child in enumerate(node.parts)]
        return np.concatenate(parts, axis=1)
    if isinstance(node, Batch) and node.child.size is None:
        return _planned(node.child, positions * node.length)
    if isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode):
        return _planned(node.child, positions)
    if len(source_names(node)) == 1 and not node.size:
        return positions[:, None]
    if not node.size:
        # What takes an endless mixture apart is planned as it is delivered.
        return source_counts(node, positions.astype(np.int64)).astype(np.float64)
    epoch = source_counts(node, np.array([node.size]))
    planned: Float64s = positions[:, None] / node.size * epoch
    return planned


def _share(node: Mix, slot: int, positions: Float64s) -> Float64s:
    """Return how many records of a part the weights, in force one after the other, give to positions."""
    starts = np.array([start for start, _ in node.in_force], dtype=np.float64)
    ends = np.append(starts[1:], np.inf)
    shares = np.array([weights[slot] / sum(weights) for _, weights in node.in_force])
    inside = np.clip(positions[:, None], starts, ends) - starts
    share: Float64s = inside @ shares
    return share


def _looked_up(node: Node, positions: Int64s) -> Float64s | None:
    """Return each source's bytes between the positions; None where that is slow or not known."""
    if positions[-1] - positions[0] > _MOST_LOOKED_UP or index_unit(node) != "bytes":
        return None
    every = np.arange(positions[0], positions[-1])
    owners, width = sources_of(node, every), len(source_names(node))
    intervals = np.repeat(np.arange(positions.size - 1), np.diff(positions))
    cells = intervals * width + owners
    size = (positions.size - 1) * width
    held = np.bincount(cells, position_lengths(node, every).held, size)
    return held.astype(np.float64).reshape(-1, width)


def _mean_lengths(node: Node) -> tuple[Float64s, str]:
    """Return the mean bytes of a record for each source, and the words that say where they are from."""
    means, sampled, of_tables = [], False, False
    for source in sources_in_files(node):
        size = source.size or 0
        if isinstance(source, FileSource) and size:
            means.append(bytes_of_records(source.files) / size)
            continue
        if isinstance(source, TableSource) and size:
            of_tables = True
            means.append(int(source.files.data_sizes.sum()) / size)
            continue
        rows = np.sort(sample_rows(size, _SAMPLED, 0))
        sampled |= rows.size < size
        means.append(source.plan(rows).bytes / rows.size if rows.size else 0.0)
    lengths = f"of {_SAMPLED:,} rows of each source, seed 0" if sampled else "of the source, from the index"
    if of_tables:
        lengths += "; of tables, the compressed bytes of all files by their rows"
    return np.array(means, dtype=np.float64), f"exact records, times the mean length {lengths}"


def _rates(names: tuple[str, ...], tokens_per_byte: Mapping[str, float] | None) -> Float64s:
    """Return the tokens in a byte of each source.

    Raises:
        InvalidArgument: some are not given.
    """
    given = tokens_per_byte or {}
    if missing := [name for name in names if name not in given]:
        lacking = ", ".join(map(repr, missing)) if given else "any source"
        message = f"unit='tokens' needs tokens_per_byte= of each source (not given: {lacking})"
        raise InvalidArgument(message)
    return np.array([given[name] for name in names], dtype=np.float64)
