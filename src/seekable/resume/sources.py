"""The parts of a pipeline: the largest datasets below its root that hold no mixture.

A part is what has rows of its own: each is delivered once in an epoch of the part, in its order. Above it
stand mixtures, and nodes whose positions are those of their child, or batches of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.bases import Aligned, OverOne
from seekable.nodes.batch import Batch
from seekable.nodes.mix import Mix
from seekable.nodes.slice import Slice
from seekable.order.positions import Left

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset
    from seekable.nodes.contract import Node

    Int64s = NDArray[np.int64]

__all__ = ["Name", "Part", "lefts", "over", "parts_of", "passes_on", "routed", "with_parts"]

Name = tuple[str | int, ...]
"""What a part is called: the names, or numbers, that lead to it through mixtures."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part."""

    name: Name
    dataset: Dataset

    @property
    def called(self) -> str:
        """The name as messages have it."""
        return ".".join(map(str, self.name)) or "the dataset"


def parts_of(root: Dataset, name: Name = ()) -> list[Part]:
    """Return the parts of a pipeline, in the order of its mixtures.

    Raises:
        InvalidArgument: something above a mixture hides which source gave how much.

    Example:
        >>> import seekable as sk
        >>> a, b = sk.from_sequence("abc").shuffle(seed=1), sk.from_sequence("xyz")
        >>> [part.name for part in parts_of(sk.mix({"a": a, "b": b}, seed=1).map(str.upper))]
        [('a',), ('b',)]
    """
    if isinstance(root, Mix):
        names: Sequence[str | int] = root.names or range(len(root.parts))
        return [
            part
            for own, child in zip(names, root.parts, strict=True)
            for part in parts_of(child, (*name, own))
        ]
    if passes_on(root):
        return parts_of(_child(root), name)
    if _holds_mixture(root):
        message = (
            f"resume='rows' cannot tell how much each source gave: {root.kind} stands above a mixture. "
            f"Shuffle each source, then mix"
        )
        raise InvalidArgument(message)
    return [Part(name, root)]


def passes_on(node: Node) -> bool:
    """Tell whether a node's positions are those of its one child, or batches of them."""
    if isinstance(node, Slice):
        return node.child.size is None and (node.start, node.step) == (0, 1)
    return isinstance(node, Batch) or (isinstance(node, OverOne) and isinstance(node, Aligned))


def with_parts(root: Dataset, parts: Iterable[Dataset]) -> Dataset:
    """Return a pipeline with others, of the same lengths, in the places of its parts, in their order."""
    return _with_next(root, iter(parts))


def _with_next(node: Dataset, parts: Iterator[Dataset]) -> Dataset:
    if isinstance(node, Mix):
        below = tuple(_with_next(child, parts) for child in node.parts)
        same = all(made is child for made, child in zip(below, node.parts, strict=True))
        return node if same else replace(node, parts=below)
    if passes_on(node):
        made = _with_next(_child(node), parts)
        return node if made is _child(node) else over(node, made)
    return next(parts)


def lefts(root: Dataset, left: Left) -> Iterator[tuple[Dataset, Left]]:
    """Yield each part, and what is left of its positions where ``left`` is left of the pipeline's."""
    if isinstance(root, Mix):
        for slot, child in enumerate(root.parts):
            yield from lefts(child, _left_of(root, slot, left))
    elif passes_on(root):
        below = _left_in(root, left) if isinstance(root, Batch) else left
        yield from lefts(_child(root), below)
    else:
        yield root, left


def routed(root: Dataset, positions: Int64s) -> Iterator[tuple[Dataset, Int64s]]:
    """Yield each part with those of its positions that some of the pipeline's lead to, in their order."""
    if isinstance(root, Mix):
        slots, below = root.route(positions)
        for slot, child in enumerate(root.parts):
            yield from routed(child, below[slots == slot])
    elif passes_on(root):
        if isinstance(root, Batch):
            positions = _rows_in(root, positions)
        yield from routed(_child(root), positions)
    else:
        yield root, positions


def _left_of(mix: Mix, slot: int, left: Left) -> Left:
    """Return what is left of a source: what its lanes have not drawn, and what lagging positions lead to."""
    below = Left.behind(*mix.drawn_by_lanes(slot, left.tail))
    lagging = left.lagging
    if not lagging.size:
        return below
    slots, positions = mix.route(lagging)
    return below.with_more(positions[slots == slot])


def _left_in(batch: Batch, left: Left) -> Left:
    return Left((), batch.first_of(left.tail)).with_more(_rows_in(batch, left.lagging))


def _rows_in(batch: Batch, positions: Int64s) -> Int64s:
    rows = [np.arange(*batch.rows_of_one(position), dtype=np.int64) for position in positions.tolist()]
    return np.concatenate([np.empty(0, dtype=np.int64), *rows])


def over(node: Dataset, child: Dataset) -> Dataset:
    """Return a node over one child with another one in its place."""
    made: Dataset = replace(node, child=child)  # type: ignore[type-var]  # nodes are dataclasses
    return made


def _child(node: Dataset) -> Dataset:
    child: Dataset = node.children[0]  # type: ignore[assignment]  # the children of datasets are datasets
    return child


def _holds_mixture(node: Node) -> bool:
    return isinstance(node, Mix) or any(map(_holds_mixture, node.children))
