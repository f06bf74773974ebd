"""The pieces of a run with a journal: the dataset that makes the batch of a step.

A piece is chosen by the step, never by the position: a record that fills a last batch has an old position,
and ``set_epoch`` can go back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable._lazy import lazy
from seekable.state.journal import Exclude

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes import steer, without
    from seekable.nodes.node import Node
    from seekable.state.journal import Entry, Journal
else:
    steer = lazy("seekable.nodes.steer")
    without = lazy("seekable.nodes.without")

__all__ = ["Pieces"]


@final
class Pieces:
    """The datasets of a run, each from the step on at which an entry of the journal begins.

    Args:
        dataset: the dataset without a journal.
        journal: the entries. Those that are needed have positions.

    Example:
        >>> import seekable as sk
        >>> from seekable.state.journal import Steer
        >>> ds = sk.mix([sk.from_sequence("ab"), sk.from_sequence("cd")], seed=1, stop="never")._node
        >>> pieces = Pieces(ds, (Steer(5, (0, 1), position=20),))
        >>> pieces.at(4) is ds, pieces.at(5) is ds, pieces.until(4), pieces.until(5)
        (True, False, 5, None)
    """

    def __init__(self, dataset: Node, journal: Journal = ()) -> None:
        self._journal = journal
        self._datasets = [dataset]
        """The dataset with none of the entries, with the first one, and so on as far as it was asked for."""

    def at(self, step: int) -> Node:
        """Return the dataset that makes the batch of a step."""
        count = sum(entry.at <= step for entry in self._journal)
        while len(self._datasets) <= count:
            entry = self._journal[len(self._datasets) - 1]
            self._datasets.append(_changed(self._datasets[-1], entry))
        return self._datasets[count]

    def until(self, step: int) -> int | None:
        """Return the first step after one that another dataset makes; None if there is none."""
        return min((entry.at for entry in self._journal if entry.at > step), default=None)

    def from_step(self, step: int) -> Iterator[tuple[Node, int, int | None]]:
        """Yield the datasets that make the batches from a step on, and the bounds of the steps of each."""
        first: int | None = step
        while first is not None:
            until = self.until(first)
            yield self.at(first), first, until
            first = until


def _changed(dataset: Node, entry: Entry) -> Node:
    if isinstance(entry, Exclude):
        return without.excluded(dataset, entry.rows, fill=entry.fill)
    return steer.changed(dataset, (entry,))
