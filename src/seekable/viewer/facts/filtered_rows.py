"""The rows that meet conditions, in the order of the files or sorted, while all rows are read once.

Memory is bounded: the first 100,000 rows of the order are kept, and all are counted.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptRecord, SeekableError
from seekable.nodes.bases import leaves_of
from seekable.nodes.conditions import checked_where
from seekable.nodes.graph import HOLE, known_size
from seekable.viewer.facts.data_survey import files_of
from seekable.viewer.facts.reading import ResultPace, from_sample, read_rows, row_pieces
from seekable.viewer.facts.row_conditions import RowTest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.viewer.facts.row_conditions import RowCondition, RowOrder

MOST_KEPT = 100_000
"""The most rows that are kept: the first of the order."""

_SMALL_BYTES = 8_000_000
_SMALL_ROWS = 100_000
_QUICK_VALUES = 100_000
_SMALL_MADE = 10_000
"""Rows that are made and not read from files, such as those of a list, may each take long."""

_KINDS = ("number", "text")


@dataclass(frozen=True, slots=True)
class FilteredRows:
    """The rows that were found; while the work goes on, among the first rows."""

    done: int
    """The number of rows that were looked at."""

    of: int
    """The number of rows that are to be looked at: all but those that the statistics of tables rule out."""

    size: int
    """The number of all rows."""

    found: int
    """The number of rows that meet the conditions."""

    rows: Int64s
    """The first of them in the order that was asked for, at most 100,000; int64."""

    others: int
    """The rows with a value of another kind than the one that it is compared with; they are not found."""

    corrupt: int
    """The rows that could not be decoded; they are not found."""

    made_of: str

    def document(self) -> dict[str, Any]:
        """Return the counts, JSON-safe; without the rows."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": "rows",
            "rows": self.size,
            "found": self.found,
            "kept": int(self.rows.size),
            "of_another_type": self.others,
            "corrupt": self.corrupt,
        }


def is_small(node: Node) -> bool:
    """Return True if figures are of all records at once: those of files of 8 MB together."""
    size = node.size
    if size is None:
        return False
    files = files_of([leaf for leaf in leaves_of(node) if hasattr(leaf, "parts")])
    if not files:
        return size <= _SMALL_MADE
    return size <= _SMALL_ROWS and sum(int(each.data_sizes.sum()) for each in files) <= _SMALL_BYTES


def is_quick(node: Node) -> bool:
    """Return True if all records of small data can be read while a page is made.

    Those of wide tables take longer: compressed numbers are more values than as many bytes of lines.
    """
    if not is_small(node):
        return False
    with suppress(SeekableError):
        schemas = [getattr(leaf, "schema", None) for leaf in leaves_of(node)]
        widest = max((len(schema.names) for schema in schemas if schema is not None), default=0)
        return (node.size or 0) * widest <= _QUICK_VALUES
    return True


def filtered_rows(
    node: Node, conditions: Sequence[RowCondition] = (), order: RowOrder | None = None
) -> Generator[FilteredRows]:
    """Yield the rows that meet all conditions while the rows are read; the last result covers all.

    Args:
        node: the data, with a length.
        conditions: what a row has to meet.
        order: how rows are sorted, those without a value last; equal ones, and all if it is None, are in the
            order of the files.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.
        InvalidArgument: a condition has no regular expression, or one that takes too long.

    Example:
        >>> import seekable as sk
        >>> from seekable.viewer.facts.row_conditions import conditions_of, order_of
        >>> numbers = sk.from_sequence([{"n": 3}, {"n": 1}, {}, {"n": 2}])._node
        >>> *_, found = filtered_rows(numbers, conditions_of("n > 1"), order_of("n"))
        >>> found.rows.tolist(), found.found
        ([3, 0], 2)
    """
    size, test = known_size(node, "a filter"), RowTest(tuple(conditions))
    narrowed = _narrowed(node, conditions, order)
    runs = _runs(node, conditions, size)
    of, done, corrupt = int((runs[:, 1] - runs[:, 0]).sum()), 0, 0
    kept: _Kept | _Sorted = _Kept() if order is None else _Sorted(order)
    pace = ResultPace()

    def result(made_of: str) -> FilteredRows:
        return FilteredRows(done, of, size, kept.found, kept.rows(), test.others, corrupt, made_of)

    try:
        for rows in itertools.chain.from_iterable(row_pieces(*run) for run in runs.tolist()):
            records = read_rows(narrowed, rows)
            whole = [at for at, each in enumerate(records) if not isinstance(each, CorruptRecord)]
            corrupt += len(records) - len(whole)
            there = [at for at in whole if records[at] is not HOLE]
            for place in test.passing([records[at] for at in there]):
                kept.add(int(rows[there[place]]), records[there[place]])
            done += rows.size
            if done < of and pace.due():
                yield result(f"from the first {done:,} of {of:,} rows")
                pace.made()
    finally:
        test.close()
    yield result(from_sample(size, of=size, seed=0))


def _narrowed(node: Node, conditions: Iterable[RowCondition], order: RowOrder | None) -> Node:
    """Return the node that reads the columns alone that are asked about."""
    paths = [each.path for each in conditions] + ([] if order is None else [order.path])
    columns = [path[0] if path else None for path in paths]
    names = [name for name in columns if name is not None]
    known = node.declared()
    if len(names) < len(columns) or known is None or not set(names) <= set(known):
        return node
    return node.narrowed(frozenset(names))


def _runs(node: Node, conditions: Sequence[RowCondition], size: int) -> Int64s:
    """Return which runs of rows may pass, by the tables' statistics: int64, shape (runs, 2)."""
    known = node.declared()
    simple = [
        (each.path[0], each.operator, each.value)
        for each in conditions
        if known is not None
        and len(each.path) == 1
        and each.path[0] in known
        and not each.of_length
        and each.operator in ("==", "<", "<=", ">", ">=", "in")
    ]
    return node.may_match(checked_where(simple)) if simple else np.array([[0, size]], np.int64)


class _Kept:
    """The first rows in their order."""

    def __init__(self) -> None:
        self.found = 0
        self._rows: list[int] = []

    def add(self, row: int, _: Any) -> None:
        self.found += 1
        if self.found <= MOST_KEPT:
            self._rows.append(row)

    def rows(self) -> Int64s:
        return np.array(self._rows, np.int64)


class _Sorted:
    """The first rows of an order: numbers, then texts, then rows without a value."""

    def __init__(self, order: RowOrder) -> None:
        self.found = 0
        self._order = order
        self._kinds: dict[str, list[tuple[Any, int]]] = {kind: [] for kind in _KINDS}
        self._rest: list[int] = []

    def add(self, row: int, record: Any) -> None:
        self.found += 1
        key = self._order.key_of(record)
        if key is None:
            if len(self._rest) < MOST_KEPT:
                self._rest.append(row)
            return
        kind, value = key
        rows = self._kinds[kind]
        rows.append((value, row))
        if len(rows) >= 2 * MOST_KEPT:
            self._sort(rows)

    def rows(self) -> Int64s:
        out: list[int] = []
        for kind in reversed(_KINDS) if self._order.descending else _KINDS:
            self._sort(self._kinds[kind])
            out += [row for _, row in self._kinds[kind]]
        return np.array([*out, *self._rest][:MOST_KEPT], np.int64)

    def _sort(self, rows: list[tuple[Any, int]]) -> None:
        # Sorting is stable in reverse too, so equal rows stay in the order in which they came.
        rows.sort(key=lambda each: each[0], reverse=self._order.descending)
        del rows[MOST_KEPT:]
