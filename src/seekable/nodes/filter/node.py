"""Rows chosen by what is in their records, which is looked at once, when the dataset is made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.ascending import Ascending
from seekable.nodes.contract import Node
from seekable.nodes.filter.choice import Choice, kept_rows
from seekable.nodes.filter.kept import KeptRows, keep_unnamed
from seekable.nodes.filter.saved import Origin, saved_rows
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.routers import EachRouter
from seekable.parallel.map_ranges import execution_options
from seekable.parallel.progress import watched
from seekable.state.functions import python_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Router
    from seekable.parallel.progress import ProgressHook


__all__ = ["Filter", "filter_rows", "row_files_of"]


def filter_rows(
    child: Node,
    choice: Choice,
    *,
    save: str | os.PathLike[str] | None,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Node:
    """Keep the rows whose records pass; see ``Dataset.filter``."""
    size = known_size(child, "filter()")
    must_be_steady(child, "filter()")
    if choice.fn is not None and not callable(choice.fn):
        message = f"filter() needs a function (got {choice.fn!r} of type {type(choice.fn).__name__})"
        raise WrongType(message)
    using = execution_options(jobs, executor, at_once=True)
    path, origin = None, None
    if save is not None:
        path = _checked_path(save)
        origin = Origin(child.fingerprint, size, choice.function, choice.code, python_version())
    with watched(progress, task="filtering", rows=size) as watch:

        def keep() -> Iterator[Int64s]:
            return kept_rows(child, choice, size, using=using, watch=watch)

        if path is None or origin is None:
            rows = keep_unnamed(keep())
        else:
            notice = f"another process is filtering into {path!r}: waiting for it"
            rows = saved_rows(path, origin, keep, waiting=lambda: watch(0, notice=notice))
    return Filter(child, rows, choice.name)


def _checked_path(save: object) -> str:
    if not isinstance(save, str | os.PathLike):
        message = f"save must be the path of a file (got {save!r} of type {type(save).__name__})"
        raise WrongType(message)
    path = os.fsdecode(save)
    if not os.path.basename(path):
        message = f"save must name a file (got {path!r})"
        raise InvalidArgument(message)
    return os.path.abspath(path)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Filter(Ascending):
    """Row ``r`` is the ``r``-th row of the child that was kept."""

    child: Node
    rows: KeptRows
    name: str

    kind: ClassVar[str] = "filter"

    @property
    def size(self) -> int:
        """The number of kept rows."""
        return self.rows.count

    @property
    def chosen(self) -> Int64s:
        """The kept rows."""
        return self.rows.array

    def chosen_one(self, row: int) -> int:
        """Return one kept row."""
        return self.rows.view[row]

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


def row_files_of(node: Node) -> dict[str, str]:
    """Return the paths of the files that ``filter(save=)`` wrote for a graph, by the digest of their rows."""
    found = {} if not isinstance(node, Filter) or not node.rows.named else {node.rows.digest: node.rows.path}
    for child in node.children:
        found |= row_files_of(child)
    return found
