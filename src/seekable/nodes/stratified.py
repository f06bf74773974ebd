"""Stratified splits: parts of a dataset that have each label in the same shares.

Each label's rows are dealt as ``split`` deals the rows of a dataset: by their numbers among the rows of that
label. So a part has of each label its share by largest remainder; or, of a stable split, records that are
appended later never move an old row to another part.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadValue, InvalidArgument, MissingColumn, WrongType
from seekable.nodes.by import By, narrowed_to, value_by
from seekable.nodes.display import describe_place
from seekable.nodes.filter import Filter
from seekable.nodes.graph import known_size
from seekable.nodes.hole import HOLE
from seekable.nodes.readahead import read_rows
from seekable.nodes.saved_rows import keep_unnamed
from seekable.nodes.sequence_source import SequenceSource
from seekable.nodes.split import is_in_rows, split
from seekable.nodes.stable_split import stable_split
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable._typing import Int64s
    from seekable.nodes.node import Node


__all__ = ["stratified"]


def stratified(
    child: Node,
    shares: Mapping[Any, float | None],
    seed: int,
    *,
    by: By,
    stable: bool,
) -> dict[Any, Node]:
    """Return the named parts of a dataset, each label split separately; see ``Dataset.split``."""
    deal = stable_split if stable else split
    deal(child, shares, seed)  # A dataset without rows has no label at which the arguments would be checked.
    if is_in_rows(shares):
        message = (
            f"split(by=) takes shares that sum to 1, by which each value is split (got {dict(shares)!r}): "
            f"divide the numbers of rows by {known_size(child, 'split(by=)'):,}"
        )
        raise InvalidArgument(message)
    size = known_size(child, "split(by=)")
    job = _Labels(narrowed_to(child, by, "split(by=)"), by)
    labels = _numbered(job, size)
    name = by if isinstance(by, str) else getattr(by, "__qualname__", type(by).__qualname__)
    owners = _owners(labels, lambda rows: deal(SequenceSource(range(rows), None), shares, seed))
    return {
        part: Filter(
            child,
            keep_unnamed([np.flatnonzero(owners == i).astype(np.int64)]),
            f"the part {part!r} of split(..., seed={seed}, by={name})",
        )
        for i, part in enumerate(shares)
    }


def _numbered(job: _Labels, size: int) -> Int64s:
    """Return a number for the label of each row: int64."""
    numbers: dict[Any, int] = {}
    found = [np.empty(0, dtype=np.int64)]
    with (
        watched(None, task="reading labels", rows=size) as watch,
        contextlib.closing(map_ranges(job, size, using=execution_options(None, None, at_once=True))) as runs,
    ):
        for done, labels in runs:
            watch(done)
            found.append(
                np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
            )
    return np.concatenate(found)


def _owners(labels: Int64s, dealt: Callable[[int], Mapping[Any, Node]]) -> Int64s:
    """Return the number of the part that each row belongs to.

    Args:
        labels: a number for the label of each row.
        dealt: returns the parts of a number of rows.
    """
    owners = np.empty(labels.size, dtype=np.int64)
    order = np.argsort(labels, kind="stable")
    edges = np.flatnonzero(np.diff(labels[order], prepend=-1, append=labels.size))
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = order[start:stop]
        for i, part in enumerate(dealt(rows.size).values()):
            own = part.plan(np.arange(part.size or 0, dtype=np.int64)).origins().rows
            owners[rows[own]] = i
    return owners


@dataclass(frozen=True, slots=True)
class _Labels:
    """A picklable job that returns the labels of a range of rows; a hole has a label of its own."""

    dataset: Node
    by: By

    def __call__(self, start: int, stop: int) -> list[Any]:
        found: list[Any] = []
        for _, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for record in records:
                try:
                    label = record if record is HOLE else value_by(record, self.by)
                    hash(label)
                except (MissingColumn, WrongType, TypeError) as error:
                    place = describe_place(self.dataset, start + len(found))
                    message = f"{place}: split(by={self.by!r}): {error}"
                    raise (MissingColumn if isinstance(error, MissingColumn) else BadValue)(
                        message
                    ) from error
                found.append(label)
        return found
