"""Filters: rows chosen by their records, which are read once, when the dataset is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import Ascending, EachRouter
from seekable.nodes.concat import Concat
from seekable.nodes.evaluated import Evaluated, Evaluation, evaluated_rows
from seekable.nodes.filter_rows import Choice, kept_rows
from seekable.nodes.flatten import Flatten
from seekable.nodes.graph import known_size, must_be_steady, nodes_of
from seekable.nodes.saved_rows import KeptRows, keep_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.evaluated import Running
    from seekable.nodes.graph import Router
    from seekable.nodes.node import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch


__all__ = ["Filter", "filtered", "merged"]

_ROWS_AT_ONCE = 1 << 16

_ROW_BITS = 40
"""A row is a number of 23 bits for its file and one of 40 bits in the file."""


def filtered(child: Node, choice: Choice, running: Running) -> Node:
    """Return a node of the rows whose records pass; see ``Dataset.filter``."""
    known_size(child, "filter()")
    must_be_steady(child, "filter()")
    if choice.fn is not None and not callable(choice.fn):
        message = f"filter() needs a function (got {choice.fn!r} of type {type(choice.fn).__name__})"
        raise WrongType(message)

    def find(size: int, using: ExecutionOptions, watch: Watch) -> Iterator[Int64s]:
        return kept_rows(child, choice, size, using=using, watch=watch)

    # Names of functions are needed only where rows are compared with those of an earlier run.
    named = running.save is not None
    question = Evaluation(
        "filter", "filtering", choice.function if named else {}, choice.code if named else None
    )
    return Filter(child, evaluated_rows(child, question, find, running), choice.name)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Filter(Evaluated, Ascending):
    """Row ``r`` is the ``r``-th row of the child that was kept."""

    child: Node
    rows: KeptRows
    name: str

    kind: ClassVar[str] = "filter"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = "the description has a digest of the rows that were kept, and not the rows"

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


def merged(one: Node, other: Node) -> Node:
    """Return the rows of two datasets, each row of a file once; see ``Dataset.merge``."""
    files: dict[str, int] = {}
    codes = []
    for side in (one, other):
        must_be_steady(side, "merge()")
        _must_not_flatten(side)
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


def _must_not_flatten(node: Node) -> None:
    if any(isinstance(each, Flatten) for each in nodes_of(node)):
        message = (
            f"merge() compares the rows of files, and {node!r} makes several records of one row: merge "
            f"first, then flatten()"
        )
        raise InvalidArgument(message)


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
