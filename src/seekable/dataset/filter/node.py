"""Rows chosen by a function of their records, which is called once for each, when the dataset is made."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.dataset.base import Dataset, known_size, must_be_steady
from seekable.dataset.contract import OrderNode, Router
from seekable.dataset.evaluate import evaluate, means, read_rows
from seekable.dataset.failures import add_place
from seekable.dataset.filter.kept import KeptRows, keep_unnamed
from seekable.dataset.filter.saved import Origin, saved_rows
from seekable.dataset.hole import HOLE
from seekable.dataset.shapes import OverOne
from seekable.dataset.tables import ONE_CHILD, EachRouter
from seekable.dataset.watch import Watch, watched
from seekable.errors import InvalidArgument, WrongType
from seekable.state.code import code_digest, python_version
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable.dataset.contract import Within
    from seekable.dataset.evaluate import Means
    from seekable.index.progress import ProgressHook

    Int64s = NDArray[np.int64]

__all__ = ["Filter", "filter_rows"]


def filter_rows(
    child: Dataset,
    fn: Callable[[Any], Any],
    *,
    save: str | os.PathLike[str] | None,
    version: str | int | None,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Dataset:
    """Keep the rows whose records a function passes; see ``Dataset.filter``."""
    size = known_size(child, "filter()")
    must_be_steady(child, "filter()")
    if not callable(fn):
        message = f"filter() needs a function (got {fn!r} of type {type(fn).__name__})"
        raise WrongType(message)
    using = means(jobs, executor, at_once=True)
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    path, origin = None, None
    if save is not None:
        path, origin = _checked_path(save), _origin(child, size, fn, version)
    with watched(progress, task="filtering", rows=size) as watch:

        def keep() -> Iterator[Int64s]:
            return _kept(_Passing(child, fn, name), size, using=using, watch=watch)

        if path is None or origin is None:
            rows = keep_unnamed(keep())
        else:
            notice = f"another process is filtering into {path!r}: waiting for it"
            rows = saved_rows(path, origin, keep, waiting=lambda: watch(0, notice=notice))
    return Filter(child, rows, name)


def _checked_path(save: object) -> str:
    if not isinstance(save, str | os.PathLike):
        message = f"save must be the path of a file (got {save!r} of type {type(save).__name__})"
        raise WrongType(message)
    path = os.fsdecode(save)
    if not os.path.basename(path):
        message = f"save must name a file (got {path!r})"
        raise InvalidArgument(message)
    return os.path.abspath(path)


def _origin(child: Dataset, size: int, fn: Callable[[Any], Any], version: str | int | None) -> Origin:
    function = describe_function(fn, version)
    code = code_digest(fn) if version is None else None
    return Origin(child.fingerprint, size, function, code, python_version())


def _kept(job: _Passing, size: int, *, using: Means, watch: Watch) -> Iterator[Int64s]:
    with contextlib.closing(evaluate(job, size, using=using)) as runs:
        for done, rows in runs:
            watch(done)
            yield rows


@dataclass(frozen=True, slots=True)
class _Passing:
    """Which of a run of rows a function passes."""

    dataset: Dataset
    fn: Callable[[Any], Any]
    name: str

    def __call__(self, start: int, stop: int) -> Int64s:
        kept: list[int] = []
        fn = self.fn
        for first, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            row = at = start + first
            try:
                for row, record in enumerate(records, start=at):
                    if record is HOLE or fn(record):
                        kept.append(row)
            except Exception as error:
                add_place(error, f"filter({self.name}) of {self.dataset!r}", self.dataset, row)
                raise
        return np.array(kept, dtype=np.int64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Filter(Dataset, OverOne, OrderNode):
    """Row ``r`` is the ``r``-th row of the child that was kept."""

    child: Dataset
    rows: KeptRows
    name: str

    kind: ClassVar[str] = "filter"

    @property
    def size(self) -> int:
        """The number of kept rows."""
        return self.rows.count

    @property
    def steady(self) -> bool:
        """Always."""
        return True

    @property
    def blocks(self) -> Int64s:
        """The child's, with the kept rows of each."""
        return np.unique(np.searchsorted(self.rows.array, self.child.blocks))

    @property
    def lanes(self) -> int:
        """One: rows are taken from any lane."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """The kept rows, by number and digest; what chose them changes nothing."""
        return {"count": self.size, "rows": self.rows.digest}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        return f"{children[0]}.filter({self.name})"

    @classmethod
    def router(cls, nodes: Sequence[Filter]) -> Router:
        """Look the rows of one node after another up."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Look kept rows up."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self._below + self.rows.array[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Look one kept row up."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self._below + self.rows.view[row]

    def span(self, slot: int, start: int, stop: int | None) -> tuple[int, int | None]:
        """Return the whole epochs of the child."""
        size = max(1, self.size)
        return start // size * self._below, None if stop is None else -(-stop // size) * self._below

    def unroute(self, slot: int, positions: Int64s, within: Within) -> Int64s:
        """Search the kept rows."""
        if not self.size:
            return np.empty(0, dtype=np.int64)
        epochs, rows = np.divmod(positions, self._below)
        kept = self.rows.array
        places = np.searchsorted(kept, rows)
        found = kept[np.minimum(places, self.size - 1)] == rows
        own: Int64s = (epochs * self.size + places)[found]
        return own

    @property
    def _below(self) -> int:
        return known_size(self.child, "filter()")
