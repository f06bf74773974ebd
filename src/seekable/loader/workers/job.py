"""What a worker process is sent: once what it makes, and for each run where to begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from seekable.loader.produce import produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.loader.steps import Cursor, Steps
    from seekable.nodes.contract import Node

__all__ = ["Begin", "DatasetJob", "Job"]


@dataclass(frozen=True, slots=True)
class Begin:
    """Where a run begins."""

    cursor: Cursor
    memory: Any = None
    """What the job has to know besides, if anything."""


class Job(Protocol):
    """What a worker makes."""

    @property
    def most_batches(self) -> int:
        """How many results may be made and not taken."""
        ...

    @property
    def most_bytes(self) -> int:
        """How many bytes these may have, but for the last of them."""
        ...

    def results(self, begin: Begin) -> Iterator[Any]:
        """Make what follows, to the end of the run: a function of this and of the job alone."""
        ...

    def paths(self, cursor: Cursor) -> set[str]:
        """Return the files that the next result is read from, as far as that can be told."""
        ...


@dataclass(frozen=True, slots=True)
class DatasetJob:
    """The batches of steps ``t % of == number`` of a loader over a dataset."""

    dataset: Node
    steps: Steps
    collate: Callable[[list[Any]], Any] | None
    most_batches: int
    most_bytes: int
    number: int
    of: int

    def results(self, begin: Begin) -> Iterator[Any]:
        """Make batches."""
        return produce(self.dataset, self.steps, begin.cursor, self.collate, number=self.number, of=self.of)

    def paths(self, cursor: Cursor) -> set[str]:
        """Return the files of the batch at a cursor."""
        positions, _ = self.steps.positions(cursor, 1, all_ranks=False)
        return self.dataset.plan(positions).paths
