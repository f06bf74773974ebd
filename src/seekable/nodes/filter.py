"""Filters: rows chosen by their records, which are read once, when the dataset is made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import Ascending, EachRouter
from seekable.nodes.concat import Concat
from seekable.nodes.contract import Node
from seekable.nodes.filter_rows import Choice, kept_rows
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.saved_rows import KeptRows, Origin, keep_unnamed, saved_rows
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


__all__ = ["Filter", "filtered", "merged", "row_files_of"]

_ROWS_AT_ONCE = 1 << 16

_ROW_BITS = 40
"""A row is a number of 23 bits for its file and one of 40 bits in the file."""


def filtered(
    child: Node,
    choice: Choice,
    *,
    save: str | os.PathLike[str] | None,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Node:
    """Return a node of the rows whose records pass; see ``Dataset.filter``."""
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
        """The numbers of the kept rows: int64, ascending."""
        return self.rows.array

    def chosen_one(self, row: int) -> int:
        """Return the number of one kept row in the child."""
        return self.rows.view[row]

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the count and digest of the kept rows; the function has no effect on the records."""
        return {"count": self.size, "rows": self.rows.digest}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``filter``."""
        return f"{children[0]}.filter({self.name})"

    @classmethod
    def router(cls, nodes: Sequence[Filter]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)


def row_files_of(node: Node) -> dict[str, str]:
    """Return the paths of the files that ``filter(save=)`` wrote for a graph, by the digest of their rows."""
    found = {} if not isinstance(node, Filter) or not node.rows.named else {node.rows.digest: node.rows.path}
    for child in node.children:
        found |= row_files_of(child)
    return found


def merged(one: Node, other: Node) -> Node:
    """Return the rows of two datasets, each row of a file once; see ``Dataset.merge``."""
    files: dict[str, int] = {}
    codes = []
    for side in (one, other):
        must_be_steady(side, "merge()")
        some = list(_row_codes(side, known_size(side, "merge()"), files))
        codes.append(np.concatenate([np.empty(0, dtype=np.int64), *some]))
    together = np.concatenate(codes)
    _, first = np.unique(together, return_index=True)
    kept = np.sort(first).astype(np.int64)
    size = codes[0].size
    parts = [
        _with_rows(side, rows)
        for side, rows in ((one, kept[kept < size]), (other, kept[kept >= size] - size))
        if rows.size or side is one
    ]
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _with_rows(side: Node, rows: Int64s) -> Node:
    return side if rows.size == side.size else Filter(side, keep_unnamed([rows]), "not merged before")


def _row_codes(side: Node, size: int, files: dict[str, int]) -> Iterator[Int64s]:
    """Yield arrays of one number for each row, equal for equal rows of equal files: int64."""
    for start in range(0, size, _ROWS_AT_ONCE):
        origins = side.plan(np.arange(start, min(start + _ROWS_AT_ONCE, size), dtype=np.int64)).origins()
        numbers = np.array([files.setdefault(path, len(files)) for path in origins.paths], dtype=np.int64)
        if len(files) >= 1 << (63 - _ROW_BITS) or (origins.rows >> _ROW_BITS).any():
            message = f"merge() takes fewer than 2**23 files of fewer than 2**{_ROW_BITS} rows"
            raise InvalidArgument(message)
        yield (numbers[origins.files] << _ROW_BITS) | origins.rows
