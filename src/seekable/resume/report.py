"""Reports of how far each source of a run is: in the log, and for ``sources()`` and ``seekable state show``.

Making a report reads no data. It takes arithmetic for each source, and looks up the name of one file.

Rows of a source are told as rows of its shards: files, or a sequence in memory. A source reads its shards in
*natural order* if its rows ascend: shard after shard, row after row. Functions over records, and nodes that
choose some rows in ascending order, keep that order. A shuffle does not: then the shard and row of the next
record say nothing about the records before it.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.bases import Ascending, ElementwiseNode, UnaryNode
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.flatten import FlattenNode
from seekable.nodes.graph import known_size
from seekable.nodes.node import LeafNode, OrderNode
from seekable.nodes.select import Select
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.slice import Slice
from seekable.resume.consumed import in_ordinals, progress_of, remainder_of
from seekable.resume.continued import Continued
from seekable.resume.from_description import described_sources
from seekable.resume.pipeline_sources import counted_sources, positions_by_source, remaining_by_source
from seekable.resume.placeholders import PlaceholderSource
from seekable.stream.from_dataset import FromDataset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.order.positions import StridedRange
    from seekable.order.remaining import Remaining
    from seekable.resume.consumed import DatasetProgress
    from seekable.resume.pipeline_sources import Name, NamedSource
    from seekable.state.descriptions import PipelineDescription
    from seekable.state.document import RunState, StreamState
    from seekable.stream.stage import Stage

    Specs = Mapping[int, str]


__all__ = [
    "LeafRow",
    "Shard",
    "SourceReport",
    "leaf_row",
    "leaves_of",
    "moves_rows",
    "report_progress",
    "report_saved",
    "report_unknown_dataset",
    "report_unknown_stream",
    "rows_before",
    "shards_of",
    "spec_of",
]


class LeafRow(NamedTuple):
    """A row of a node that reads records from outside the graph."""

    leaf: LeafNode
    row: int


class _ShardRow(NamedTuple):
    """A row of a shard, by the shard's names and the row's number in it."""

    name: str
    """The path of the file below the opened folder; in angle brackets for a sequence in memory."""

    path: str
    """The absolute path of the file."""

    row: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A leaf's shard: the rows of one file, or of one sequence in memory."""

    name: str
    path: str
    first: int
    """The row of the leaf with which the shard begins."""

    count: int
    """The number of rows of the shard."""


def _shard_row(node: Node, position: int) -> _ShardRow | None:
    """Return the shard and row of the record at a position; no record is read.

    For a record made of several, by ``zip`` or ``batch``, it is that of the first. The result is None if
    there is no record, or if a description does not decide which record it is.

    Example:
        >>> import seekable as sk
        >>> _shard_row(sk.from_sequence("abc", version=1).map(str.upper)._node, 4)
        _ShardRow(name='<builtins.str 1>', path='<builtins.str 1>', row=1)
    """
    found = leaf_row(node, position)
    if found is None:
        return None
    try:
        origins = found.leaf.plan(np.array([found.row], dtype=np.int64)).origins()
    except InvalidArgument:
        return None
    file = int(origins.files[0])
    return _ShardRow(origins.names[file], origins.paths[file], int(origins.rows[0]))


def leaf_row(node: Node, position: int) -> LeafRow | None:
    """Return the leaf and row of the record at a position; None where ``_shard_row`` returns None."""
    while not isinstance(node, LeafNode):
        below = None if node.size == 0 else node.first_of(position)
        if below is None:
            return None
        node, position = below
    if not node.size or (isinstance(node, PlaceholderSource) and not node.is_source):
        return None
    return LeafRow(node, position % node.size)


def leaves_of(node: Node) -> Iterator[LeafNode]:
    """Yield the leaves below a node, in the order of its children."""
    if isinstance(node, LeafNode):
        yield node
    for child in node.children:
        yield from leaves_of(child)


def moves_rows(node: Node) -> Node | None:
    """Return a node because of which the rows of a dataset are in no natural order; None if they are in it.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abc")
        >>> moves_rows(words[1:].map(str.upper)._node), moves_rows(words.shuffle(seed=1).map(str.upper)._node)
        (None, <Dataset, 3 records: from_sequence(<builtins.str of 3>).shuffle(seed=1)>)
    """
    if isinstance(node, LeafNode):
        return None
    if isinstance(node, Concat):
        leaves = list(leaves_of(node))
        if len({id(leaf) for leaf in leaves}) < len(leaves):
            return node
    elif not (isinstance(node, UnaryNode) and _ascends(node)):
        return node
    return next(filter(None, map(moves_rows, node.children)), None)


def _ascends(node: UnaryNode) -> bool:
    """Return True for a node over one child whose rows are in the order of the child's."""
    if isinstance(node, Slice):
        return node.step > 0
    if isinstance(node, Select):
        return bool((np.diff(node.rows) > 0).all())
    return isinstance(node, Ascending | ElementwiseNode | Epoch | FlattenNode)


def rows_before(node: Node, at: LeafRow) -> int | None:
    """Return how many rows of an epoch come before a leaf's row, in natural order.

    The result is None if the leaf is not below the node. ``moves_rows(node)`` must be None.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence("abcdefgh")
        >>> rows_before(words[::3]._node, LeafRow(words._node, 4))
        2
    """
    if isinstance(node, LeafNode):
        return at.row if node is at.leaf else None
    if isinstance(node, Concat):
        before = 0
        for part in node.parts:
            own = rows_before(part, at)
            if own is not None:
                return before + own
            before += part.size or 0
        return None
    (child,) = node.children
    below = rows_before(child, at)
    if below is None or isinstance(node, ElementwiseNode | Epoch):
        return below
    if isinstance(node, FlattenNode):
        return bisect_left(node.rows.view, below)
    assert isinstance(node, OrderNode)
    rows: range = range(node.size or 0)
    return bisect_left(rows, below, key=lambda row: node.route_one(row)[1])


def shards_of(leaf: LeafNode) -> list[Shard]:
    """Return the shards of a leaf, in the order of its rows.

    Raises:
        InvalidArgument: the leaf is of a kind that has no rows in shards.
    """
    if isinstance(leaf, SequenceSource):
        return [Shard(leaf.place, leaf.place, 0, leaf.size)]
    leaf = leaf.parts[0]
    if not isinstance(leaf, FilesLeaf):
        message = f"the rows of {leaf!r} are not counted by shard: use state_dict() for a run over it"
        raise InvalidArgument(message)
    files = leaf.files
    return [
        Shard(name, files.path(number), first, count)
        for number, (name, first, count) in enumerate(
            zip(files.plain_names(), files.starts.tolist(), files.records.tolist(), strict=False)
        )
    ]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The progress of one source of a run, and the row that it reads next; None for what is not known."""

    spec: str | None
    """The argument of ``sk.open``, as the user wrote it; those of several sources joined by commas."""

    name: str
    """The names that lead to it through mixtures, joined by dots; empty where there are none."""

    of: int | None
    """The number of rows in an epoch; None for a source without end."""

    epoch: int | None = None
    """The number of the epoch that was begun last, from 0."""

    rows: int | None = None
    """The number of rows of this epoch that were consumed: delivered at least in part, or skipped."""

    consumed: int | None = None
    """The number of rows of all epochs that were consumed, or passed over as a whole."""

    in_flight: int | None = None
    """The number of rows that were read, and of which nothing was delivered yet."""

    shard: str | None = None
    """The name, below the opened folder, of the file that has the next row."""

    row_offset: int | None = None
    """The next row in that file."""

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON-safe dict."""
        return {
            "spec": self.spec,
            "name": self.name,
            "epoch": self.epoch,
            "rows": self.rows,
            "of": self.of,
            "consumed": self.consumed,
            "in_flight": self.in_flight,
            "shard": self.shard,
            "row_offset": self.row_offset,
        }

    def line(self) -> str:
        """Return the line of the log at a resume; ``-`` stands for what is not known.

        Example:
            >>> SourceReport("corpus/*.jsonl", "web", 900, 0, 35, 35, 0, "a.jsonl", 16).line()
            'resume: spec=corpus/*.jsonl sample_row=35 shard=a.jsonl offset=16'
        """
        known = {
            "spec": self.spec,
            "sample_row": self.rows,
            "shard": self.shard,
            "offset": self.row_offset,
        }
        facts = [f"{key}={'-' if value is None else value}" for key, value in known.items()]
        return f"resume: {' '.join(facts)}"

    @property
    def percent(self) -> float:
        """The share of the epoch that was consumed, in percent."""
        return 100 * (self.rows or 0) / self.of if self.of else 0.0


def report_progress(progress: Sequence[DatasetProgress], specs: Specs | None = None) -> list[SourceReport]:
    """Return how far each source of a run has come, given how far its datasets were read.

    Args:
        progress: of each dataset that the run reads.
        specs: by the ``id`` of a leaf that is described, its argument of ``sk.open``.
    """
    return [report for each in progress for report in _reports(each, specs or {})]


def report_saved(
    description: PipelineDescription, state: RunState | StreamState, noted: Sequence[str | None] = ()
) -> list[SourceReport]:
    """Return how far each source of a saved run has come.

    Args:
        description: the description of the pipeline that the state was taken of.
        state: the state, of a stream with all lanes.
        noted: the argument of ``sk.open`` of each described source of files or sequence, as far as known.

    Raises:
        InvalidArgument: a stage hides how much each source delivered.
        CorruptState: the description or the state cannot be read, or lacks a lane.
    """
    progress = progress_of(description, state)
    return report_progress(progress, _specs_of([each.dataset for each in progress], description.tree, noted))


def report_unknown_dataset(dataset: Node, name: Name = ()) -> list[SourceReport]:
    """Return reports of the sources of a dataset that have nothing but their specs, names and lengths."""
    return [
        SourceReport(spec_of(source.dataset), _joined(source.name), source.dataset.size)
        for source in counted_sources(dataset, name)
    ]


def report_unknown_stream(stage: Stage, name: Name = ()) -> list[SourceReport]:
    """Return such reports of the sources of a stream, given its last stage."""
    if isinstance(stage, FromDataset):
        return report_unknown_dataset(stage.dataset, name)
    if not stage.inputs:
        return [SourceReport(stage.shown([]), _joined(name), None)]
    names = getattr(stage, "names", None) or range(len(stage.inputs))
    return [
        report
        for own, below in zip(names, stage.inputs, strict=True)
        for report in report_unknown_stream(below, (*name, own) if len(stage.inputs) > 1 else name)
    ]


def spec_of(node: Node, specs: Specs | None = None) -> str | None:
    """Return the arguments of ``sk.open`` of all sources below a node, each once, joined by commas.

    Args:
        node: the node.
        specs: as of ``report_progress``.

    Example:
        >>> import seekable as sk
        >>> spec_of(sk.from_sequence("abc").shuffle(seed=1)._node)
        'from_sequence(<builtins.str of 3>)'
    """
    if isinstance(node, Continued):
        node = node.new
    found = [_spec_of_leaf(leaf, specs or {}) for leaf in leaves_of(node)]
    return None if None in found else ",".join(dict.fromkeys(spec for spec in found if spec is not None))


def _spec_of_leaf(leaf: LeafNode, specs: Specs) -> str | None:
    if isinstance(leaf, PlaceholderSource):
        return specs.get(id(leaf))
    asked = getattr(leaf, "asked", None)
    if asked is None:
        return leaf.shown([])
    # A path is kept as code has it, in quotes; a list of paths in brackets.
    return str(ast.literal_eval(asked)) if asked[0] in "'\"" else str(asked)


def _specs_of(
    datasets: Sequence[Node], tree: Mapping[str, Any], noted: Sequence[str | None]
) -> dict[int, str]:
    """Return the specs of described leaves, by their ``id``.

    Args:
        datasets: the datasets over these leaves.
        tree: the description of the pipeline.
        noted: the spec of each source of the description, as far as known.
    """
    known = [(source, spec) for source, spec in zip(described_sources(tree), noted, strict=False) if spec]
    found: dict[int, str] = {}
    for leaf in (leaf for dataset in datasets for leaf in leaves_of(dataset)):
        if isinstance(leaf, PlaceholderSource):
            own = [_taken(known, source) for source in described_sources(leaf.described)]
            if None not in own:
                found[id(leaf)] = ",".join(dict.fromkeys(spec for spec in own if spec is not None))
    return found


def _taken(known: list[tuple[Mapping[str, Any], str]], source: Mapping[str, Any]) -> str | None:
    """Return the spec of a described source, and take it off the list."""
    number = next((number for number, (other, _) in enumerate(known) if other == source), None)
    return None if number is None else known.pop(number)[1]


def _reports(progress: DatasetProgress, specs: Specs) -> Iterator[SourceReport]:
    sources = counted_sources(progress.dataset, progress.name)
    remaining = remaining_by_source(progress.dataset, progress.remaining)
    in_flight = positions_by_source(progress.dataset, progress.in_flight)
    for source, (_, own), (_, waiting) in zip(sources, remaining, in_flight, strict=True):
        yield _report(source, own, waiting, spec_of(source.dataset, specs))


def _report(source: NamedSource, remaining: Remaining, in_flight: Int64s, spec: str | None) -> SourceReport:
    node, following = source.dataset, _shard_row(source.dataset, remaining.first)
    epoch, rows, of = _begun_epoch(node, remaining, in_flight)
    return SourceReport(
        spec=spec,
        name=_joined(source.name),
        of=of,
        epoch=epoch,
        rows=rows,
        consumed=_consumed(node, remaining, in_flight),
        in_flight=in_flight.size,
        shard=None if following is None else following.name,
        row_offset=None if following is None else following.row,
    )


def _begun_epoch(node: Node, remaining: Remaining, in_flight: Int64s) -> tuple[int, int, int | None]:
    """Return the number of the epoch that was begun last, the rows consumed of it, and the rows in it."""
    if node.size is None:
        return 0, _num_passed(remaining, in_flight), None
    left = remainder_of(node, remaining, in_flight)
    epoch = max(0, left.num_begun - 1)
    if not left.num_begun:
        return epoch, 0, left.size
    size = left.size
    if isinstance(node, Continued) and not _has_begun(node, remaining):
        size = known_size(node.olds[node.segments[-1].slot], "sources()")
    num_left = sum(_num_of_epoch(epoch, order, positions) for order, positions in left.segments)
    return epoch, size - num_left, size


def _has_begun(source: Continued, remaining: Remaining) -> bool:
    """Return True if a resumed source has begun its new order, or goes on with it within an epoch."""
    goes_on = source.first % source.size != 0
    return goes_on or not source.segments or in_ordinals(source, remaining).frontier > source.num_pending


def _num_of_epoch(number: int, order: Node, positions: StridedRange) -> int:
    """Return the number of positions that are in one epoch of an order."""
    size = known_size(order, "sources()")
    before, through = (sum(map(len, positions.before((number + more) * size))) for more in (0, 1))
    return through - before


def _consumed(node: Node, remaining: Remaining, in_flight: Int64s) -> int | None:
    """Return the number of rows consumed in all epochs; None if these had different numbers of rows."""
    if not isinstance(node, Continued):
        return _num_passed(remaining, in_flight)
    if any(old.size != node.size for old in node.olds):
        return None
    return node.first - node.num_pending + _num_passed(in_ordinals(node, remaining), in_flight)


def _num_passed(remaining: Remaining, in_flight: Int64s) -> int:
    return remaining.frontier - sum(map(len, remaining.ranges)) - in_flight.size


def _joined(name: Name) -> str:
    return ".".join(map(str, name))
