"""The pieces of a run with a journal: the dataset that makes the batch of a step.

A piece is chosen by the step, never by the position: a record that fills a last batch has an old position,
and ``set_epoch`` can go back.
"""

from __future__ import annotations

import itertools
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

__all__ = ["LastPieces", "Pieces"]


@final
class Pieces:
    """The datasets of a run, each from the step on at which an entry of the journal begins.

    Args:
        dataset: the dataset without a journal.
        journal: the entries. Those that are needed have positions.
        before: earlier pieces of the run, of which those before the first other entry need not be made again:
            a controller may steer thousands of times.

    Example:
        >>> import seekable as sk
        >>> from seekable.nodes.node import node_of
        >>> from seekable.state.journal import Steer
        >>> mixture = sk.mix([sk.from_sequence("ab"), sk.from_sequence("cd")], seed=1, stop="never")
        >>> ds = node_of(mixture)
        >>> pieces = Pieces(ds, (Steer(5, (0, 1), position=20),))
        >>> pieces.at(4) is ds, pieces.at(5) is ds, pieces.until(4), pieces.until(5)
        (True, False, 5, None)
    """

    def __init__(self, dataset: Node, journal: Journal = (), *, before: Pieces | None = None) -> None:
        self._journal = journal
        self._datasets = [dataset]
        """The dataset with none of the entries, with the first one, and so on as far as it was asked for."""
        if before is not None and before.at(-1) is dataset:
            self._datasets = before.common_with(journal)

    def common_with(self, journal: Journal) -> list[Node]:
        """Return the datasets that another journal has in common with this one, as far as they were made."""
        pairs = zip(journal, self._journal, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return self._datasets[: 1 + same]

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


@final
class LastPieces:
    """The pieces that were made last, which the next ones begin with."""

    def __init__(self) -> None:
        self._last: Pieces | None = None

    def of(self, dataset: Node, journal: Journal) -> Pieces:
        """Return the pieces of a run."""
        self._last = made = Pieces(dataset, journal, before=self._last)
        return made

    def __reduce__(self) -> tuple[type[LastPieces], tuple[()]]:
        return LastPieces, ()
