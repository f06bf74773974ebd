"""Reports for people of how far each source of a run is: in the log, and by ``seekable state show``."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.contract import Leaf
from seekable.nodes.sources.tables import TableSource
from seekable.nodes.windowed import WindowedShuffle
from seekable.order.remaining import Remaining
from seekable.resume.consumed import consumed, progress_of
from seekable.resume.continued import Continued
from seekable.resume.from_description import UNKNOWN_ROWS
from seekable.resume.sources import remaining_by_source, sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.nodes.contract import Node
    from seekable.resume.remainder import Remainder
    from seekable.resume.sources import Source
    from seekable.state.descriptions import Description
    from seekable.state.document import RunState
    from seekable.state.stream_document import StreamState

__all__ = ["SourceReport", "log_resumed", "report_sources"]

_LOG = logging.getLogger("seekable")


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The progress of one source of a saved run, and the row that it delivers next."""

    name: str
    """The names that lead to it through mixtures, joined by dots; empty where there are none."""

    epoch: int
    """The number of the epoch that was begun last, from 0."""

    rows: int
    """The number of rows of this epoch that were delivered."""

    of: int
    """The number of rows in an epoch."""

    shard: str | None
    """The name of the file of the next row; None if the description does not decide it."""

    row: int | None
    """The number of the next row in that file."""

    @property
    def percent(self) -> float:
        """The share of the epoch that was delivered, in percent."""
        return 100 * self.rows / self.of if self.of else 0.0


def report_sources(description: Description, state: RunState | StreamState) -> list[SourceReport]:
    """Return how far each source of a saved run has come.

    Args:
        description: the description of the pipeline that the state was taken of.
        state: the state, of a stream with all lanes.

    Raises:
        InvalidArgument: a node or a stage hides how much each source delivered.
        CorruptState: the description or the state cannot be read, or lacks a lane.
    """
    progress = progress_of(description, state)
    return [_report(source, left) for each in progress for source, left in consumed(each).remainders]


def _report(source: Source, remainder: Remainder) -> SourceReport:
    name, epoch = ".".join(map(str, source.name)), max(0, remainder.num_begun - 1)
    following = _next_row(source.dataset, remainder)
    path, row = (None, None) if following is None else (following.path, following.row)
    return SourceReport(name, epoch, remainder.num_delivered, remainder.size, path, row)


def _next_row(source: Node, remainder: Remainder) -> Any:
    """Return the file and row that a described source delivers next; None if that is not known."""
    if not remainder.size:
        return None
    if remainder.segments:
        order, position = remainder.segments[0][0], remainder.segments[0][1].first
    else:
        order = source.new if isinstance(source, Continued) else source
        position = remainder.num_begun * remainder.size
    kinds = set(_kinds_in(order.describe(None)))
    # A description lacks the row groups of tables, which decide a windowed order.
    if kinds & UNKNOWN_ROWS.keys() or {TableSource.kind, WindowedShuffle.kind} <= kinds:
        return None
    return _first_location(order, position)


def log_resumed(dataset: Node, *, position: int, num_delivered: Sequence[int]) -> None:
    """Log one line for each source of a dataset that resumes by rows, at level INFO.

    The line has the argument of ``sk.open``, the number of rows of the begun epoch that the old run
    delivered, and the file and row that come next:

        resume: spec=corpus/web-*.jsonl sample_row=35 shard=/data/corpus/web-00001.jsonl offset=16

    Args:
        dataset: the dataset that resumes.
        position: the position at which it begins.
        num_delivered: for each source, the number of rows of its begun epoch that the old run delivered.
    """
    if not _LOG.isEnabledFor(logging.INFO):
        return
    remaining = remaining_by_source(dataset, Remaining((), position))
    by_source = zip(sources_of(dataset), remaining, num_delivered, strict=True)
    for source, (order, own), delivered in by_source:
        following = _first_location(order, own.first) if order.size else None
        _LOG.info(
            "resume: spec=%s sample_row=%d shard=%s offset=%s",
            _spec(source.dataset),
            delivered,
            "-" if following is None else following.path,
            "-" if following is None else following.row,
        )


def _first_location(dataset: Node, position: int) -> Any:
    """Return the location of the record at a position; for a record made of several, of the first one."""
    location = dataset.plan(np.array([position], dtype=np.int64)).locate()[0]
    while isinstance(location, list | tuple):
        location = location[0]
    return location


def _spec(node: Node) -> str:
    """Return the arguments of ``sk.open`` of all sources below a node, joined by commas."""
    if isinstance(node, Continued):
        node = node.new
    if isinstance(node, Leaf):
        return str(getattr(node, "asked", node.shown([]))).strip("'\"")
    return ",".join(dict.fromkeys(map(_spec, node.children)))


def _kinds_in(description: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kind of each node of a description."""
    yield description["kind"]
    for below in description.get("of", ()):
        yield from _kinds_in(below)
