"""The weights of a mixture over time: which hold from which step on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.batch import Batch
from seekable.nodes.mix import Mix
from seekable.viewer.facts.made_of import COMPUTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.nodes.contract import Node

__all__ = ["Schedule", "schedule"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The weights of the outermost mixture of a pipeline, in force one after the other."""

    names: tuple[str, ...]
    """The parts of the mixture."""

    batch: int
    """The records of a step over all ranks."""

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


def schedule(node: Node, *, batch: int) -> Schedule:
    """Return the weights of the outermost mixture of a pipeline, and when they change.

    Args:
        node: the pipeline.
        batch: the records of a step over all ranks.

    Raises:
        InvalidArgument: the pipeline has no mixture, or stages that choose or move records lie over it.

    Example:
        >>> import seekable as sk
        >>> web, code = (sk.from_sequence(range(10**6)) for _ in range(2))
        >>> weights = [(0, {"web": 9, "code": 1}), (640, {"web": 1, "code": 1})]
        >>> ds = sk.mix({"web": web, "code": code}, weights=weights, seed=0)
        >>> found = schedule(ds.node, batch=64)
        >>> found.steps, found.shares.tolist()
        ((0, 10), [[0.9, 0.1], [0.5, 0.5]])
    """
    checked_count("batch", batch, least=1)
    mix, each = _mix(node)
    starts = [start for start, _ in mix.schedule]
    names = mix.names or tuple(map(str, range(len(mix.parts))))
    positions = tuple(-(-start // each) for start in starts)
    weights = tuple(weights for _, weights in mix.schedule)
    return Schedule(names, batch, positions, tuple(position // batch for position in positions), weights)


def _mix(node: Node) -> tuple[Mix, int]:
    """Return the outermost mixture, and how many of its records each position of the pipeline has."""
    each = 1
    while not isinstance(node, Mix):
        grouped = node.length if isinstance(node, Batch) and node.size is None else 0
        is_same = isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode)
        if not grouped and not is_same:
            message = (
                f"{node.expression()} is no mixture, nor a map or an endless batch of one: it has no weights"
            )
            raise InvalidArgument(message)
        each *= grouped or 1
        (node,) = node.children
    return node, each
