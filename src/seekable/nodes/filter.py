"""Filters: rows chosen by their records, which are read once, when the dataset is made."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, MissingColumn, SeekableError, WrongType
from seekable.nodes.bases import ChosenRows
from seekable.nodes.columns.column_node import ColumnNode
from seekable.nodes.columns.names import checked_names, no_such_column
from seekable.nodes.concat import Concat
from seekable.nodes.conditions import Where, checked_where, passing
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.evaluated import Evaluated, Evaluation, evaluated_rows
from seekable.nodes.flatten import FlattenNode
from seekable.nodes.graph import HOLE, ColumnarPlan, file_matches, known_size, must_be_steady, nodes_of
from seekable.nodes.node import LeafNode
from seekable.nodes.readahead import read_rows
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.parallel.map_ranges import map_ranges
from seekable.state.functions import code_digest, describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.evaluated import EvaluationOptions
    from seekable.nodes.node import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch

__all__ = ["Filter", "choice", "filtered", "kept_rows", "merged"]

_MOST_ROWS = 1 << 16
"""The number of rows whose plan is made at a time."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The conditions of a filter; a record is kept if it meets all that are given."""

    fn: Callable[..., Any] | None
    """The function that returns True for a record to keep."""

    together: int | None
    """The number of records in the list that the function takes; None if it takes one record."""

    where: Where | None
    files: tuple[str, ...] | None
    """Patterns of files; a record is kept if one of them matches its file."""

    limit: int | None
    """The largest number of rows to keep: the first that pass."""

    version: str | int | None

    columns: tuple[str, ...] | None = None
    """The columns that the function reads; nothing else is read for it. None for all."""

    @property
    def name(self) -> str:
        """The arguments of the call of ``filter``, as text."""
        parts = []
        if self.fn is not None:
            parts.append(getattr(self.fn, "__qualname__", type(self.fn).__qualname__))
        if self.columns is not None:
            parts.append(f"columns={list(self.columns)!r}")
        if self.where is not None:
            parts.append(f"where={self.where.written!r}")
        if self.files is not None:
            parts.append(f"files={list(self.files)!r}")
        if self.limit is not None:
            parts.append(f"limit={self.limit}")
        return ", ".join(parts)

    @property
    def function(self) -> dict[str, Any]:
        """The conditions as JSON-safe values, without the code of the function."""
        described: dict[str, Any] = {"name": "conditions"}
        if self.fn is not None:
            described = describe_function(self.fn, self.version)
        if self.columns is not None:
            described["columns"] = list(self.columns)
        if self.where is not None:
            described["where"] = repr(self.where.written)
        if self.files is not None:
            described["files"] = list(self.files)
        if self.limit is not None:
            described["limit"] = self.limit
        return described

    @property
    def code(self) -> str | None:
        """The digest of the function's code; None without a function, or where a version replaces it."""
        return code_digest(self.fn) if self.fn is not None and self.version is None else None


def choice(
    fn: Callable[..., Any] | None,
    *,
    together: int | None = None,
    where: object = None,
    files: object = None,
    limit: object = None,
    version: str | int | None = None,
    columns: object = None,
) -> _Choice:
    """Return the conditions that the arguments of ``Dataset.filter`` state, after checks.

    Raises:
        InvalidArgument: no condition is given, or an argument is out of its range.
        WrongType: an argument has another type than documented.
    """
    if fn is None and where is None and files is None:
        message = "filter() needs a function, where= or files= (got none of them)"
        raise InvalidArgument(message)
    if fn is None and columns is not None:
        message = (
            "columns= is what a function reads, and no function is given; where= reads its columns alone"
        )
        raise InvalidArgument(message)
    patterns = (files,) if isinstance(files, str) else files
    if patterns is not None and not (
        isinstance(patterns, list | tuple) and all(isinstance(pattern, str) for pattern in patterns)
    ):
        message = f"files takes a pattern of files, or a list of them (got {files!r})"
        raise WrongType(message)
    return _Choice(
        fn,
        together,
        None if where is None else checked_where(where),
        None if patterns is None else tuple(patterns),
        None if limit is None else checked_count("limit", limit, least=0),
        version,
        None if columns is None else checked_names("columns", columns),
    )


def kept_rows(
    dataset: Node, criteria: _Choice, size: int, *, using: ExecutionOptions, watch: Watch
) -> Iterator[Int64s]:
    """Yield the rows that pass in int64 arrays, ascending over all of them.

    Raises:
        MissingColumn: no evaluated record has a column of the conditions, or one that the function reads.
    """
    runs = _runs(dataset, criteria, size)
    narrowed = _narrowed(dataset, criteria)
    job = _Passing(
        dataset,
        criteria,
        _read_by(dataset, criteria),
        narrowed,
        _bare(narrowed, criteria.where),
        runs,
        _before(runs),
    )
    unseen = _undeclared(dataset, criteria)
    looked, left = 0, criteria.limit
    if left == 0:
        watch(size)
        return
    with contextlib.closing(map_ranges(job, int(job.before[-1]), using=using)) as answers:
        for done, (passed, seen) in answers:
            watch(done if done < job.before[-1] else size)
            rows = job.rows(looked, done)[np.unpackbits(passed, count=done - looked).view(np.bool_)][:left]
            looked, unseen = done, unseen.difference(seen)
            left = None if left is None else left - rows.size
            yield rows
            if left == 0:
                watch(size)
                return
    if size and not job.before[-1]:
        watch(size)
    if unseen and looked:
        message = (
            f"none of the {looked:,} records that were looked at has a column {min(unseen)!r}, which "
            f"filter({criteria.name}) asks about"
        )
        raise MissingColumn(message)


def _undeclared(dataset: Node, criteria: _Choice) -> set[str]:
    """Return the columns that are asked about and that no file declares, so that only records show them."""
    named = set() if criteria.where is None else set(criteria.where.columns)
    known = dataset.declared()
    if known is None:
        return named.union(criteria.columns or ())
    if missing := named.difference(known):
        raise MissingColumn(no_such_column(min(missing), known))
    return set()


def _narrowed(dataset: Node, criteria: _Choice) -> Node:
    return dataset if criteria.where is None else dataset.narrowed(criteria.where.columns)


def _read_by(dataset: Node, criteria: _Choice) -> Node:
    """Return the dataset whose records the function takes.

    Raises:
        MissingColumn: the files declare their columns, and one that the function reads is not among them.
    """
    if criteria.columns is None:
        return dataset
    known = dataset.declared()
    if known is not None and (missing := [name for name in criteria.columns if name not in known]):
        raise MissingColumn(no_such_column(missing[0], known))
    return dataset.narrowed(frozenset(criteria.columns))


def _bare(dataset: Node, where: Where | None) -> tuple[Node, Where | None]:
    """Return the dataset and conditions below all nodes that only rename or drop columns of tables."""
    if where is None or not isinstance(dataset, ColumnNode) or dataset.child.declared() is None:
        return dataset, where
    if None in map(dataset.beneath, where.columns):
        return dataset, where
    return _bare(dataset.child, where.below(dataset.beneath))


def _runs(dataset: Node, criteria: _Choice, size: int) -> Int64s:
    """Return the runs of rows to evaluate, an int64 array of starts and stops: shape (runs, 2)."""
    runs = (
        np.array([[0, size]], dtype=np.int64) if criteria.where is None else dataset.may_match(criteria.where)
    )
    if criteria.files is not None:
        runs = _common(runs, _runs_of_files(dataset, criteria.files, size))
    return runs


def _before(runs: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(runs[:, 1] - runs[:, 0])]).astype(np.int64)


def _runs_of_files(dataset: Node, patterns: tuple[str, ...], size: int) -> Int64s:
    """Return the runs of rows whose files match one of the patterns."""
    # Each block of a source lies in one file, so its first row decides for the whole block.
    edges = dataset.blocks if isinstance(dataset, LeafNode) else None
    count = size if edges is None else edges.size - 1
    runs = [np.empty((0, 2), dtype=np.int64)]
    for start in range(0, count, _MOST_ROWS):
        stop = min(start + _MOST_ROWS, count)
        some = np.arange(start, stop + 1, dtype=np.int64) if edges is None else edges[start : stop + 1]
        origins = dataset.plan(some[:-1]).origins()
        of_files = [
            any(file_matches(pattern, path=path, name=name) for pattern in patterns)
            for path, name in zip(origins.paths, origins.names, strict=True)
        ]
        meant = np.array([False, *of_files, False])[np.concatenate([[0], origins.files + 1, [0]])]
        runs.append(some[np.flatnonzero(meant[1:] != meant[:-1])].reshape(-1, 2))
    return np.concatenate(runs)


def _common(some: Int64s, others: Int64s) -> Int64s:
    """Return the intersection of two ascending lists of runs."""
    if not some.size or not others.size:
        return np.empty((0, 2), dtype=np.int64)
    edges = np.unique(np.concatenate([some.ravel(), others.ravel()]))
    starts, stops = edges[:-1], edges[1:]
    both = np.ones(starts.size, dtype=np.bool_)
    for runs in (some, others):
        at = np.searchsorted(runs[:, 0], starts, side="right") - 1
        both &= (at >= 0) & (starts < runs[np.maximum(at, 0), 1])
    return np.stack([starts[both], stops[both]], axis=1)


@dataclass(frozen=True, slots=True)
class _Passing:
    """A picklable job that evaluates a range of the rows; its answer has a bit for each, 1 if it passes."""

    dataset: Node
    choice: _Choice
    called: Node
    """The dataset, narrowed to the columns that the function reads."""

    narrowed: Node
    """The dataset, narrowed to the columns of the conditions."""

    bare: tuple[Node, Where | None]
    """The same without nodes that only rename columns, and the conditions in its names."""

    runs: Int64s
    before: Int64s
    """The number of rows before each of the runs, then the number of all rows: int64."""

    def __call__(self, start: int, stop: int) -> tuple[NDArray[np.uint8], frozenset[str]]:
        rows, seen = self.rows(start, stop), frozenset[str]()
        if self.choice.where is not None:
            rows, seen = self._where(self.choice.where, rows)
        if self.choice.fn is not None:
            rows, found = self._called(self.choice.fn, rows)
            seen |= found
        return np.packbits(np.isin(self.rows(start, stop), rows, assume_unique=True)), seen

    def rows(self, start: int, stop: int) -> Int64s:
        """Return the rows with the given numbers among those to evaluate."""
        numbers = np.arange(start, stop, dtype=np.int64)
        run = np.searchsorted(self.before, numbers, side="right") - 1
        rows: Int64s = self.runs[run, 0] + numbers - self.before[run]
        return rows

    def _where(self, where: Where, rows: Int64s) -> tuple[Int64s, frozenset[str]]:
        kept: list[int] = []
        seen, unseen = set[str](), set(where.columns)
        together = self._of_tables(rows)
        if together is not None:
            return rows[together], frozenset(where.columns)
        for first, records in read_rows(self.narrowed, rows):
            i = 0
            try:
                for i, record in enumerate(records):
                    if record is HOLE or where.passes(record):
                        kept.append(first + i)
                    if unseen and record is not HOLE and not unseen.isdisjoint(record):
                        seen.update(unseen.intersection(record))
                        unseen -= seen
            except (AttributeError, TypeError) as error:
                raise self._type_error(error, records[i], int(rows[first + i])) from error
        return rows[kept], frozenset(seen)

    def _of_tables(self, rows: Int64s) -> NDArray[np.bool_] | None:
        """Return a bool array of the rows that pass, or None if columns of one table cannot decide it."""
        dataset, bare = self.bare
        found = [np.empty(0, dtype=np.bool_)]
        for start in range(0, rows.size, _MOST_ROWS):
            plan = dataset.plan(rows[start : start + _MOST_ROWS])
            if not isinstance(plan, ColumnarPlan) or not plan.columnar:
                return None
            passed = None if bare is None else passing(bare, plan.table())
            if passed is None:
                return None
            found.append(passed)
        return np.concatenate(found)

    def _type_error(self, error: Exception, record: Any, row: int) -> SeekableError:
        at = describe_place(self.dataset, row)
        if not isinstance(record, dict):
            kind = type(record).__name__
            return WrongType(f"{at}: conditions are asked of records that are dicts (got a {kind})")
        return WrongType(f"{at}: {error}")

    def _called(self, fn: Callable[..., Any], rows: Int64s) -> tuple[Int64s, frozenset[str]]:
        """Return the rows that pass, and the columns that there are: all of them where there is no record."""
        kept: list[int] = []
        columns = frozenset(self.choice.columns or ())
        seen: set[str] = set()
        for first, found in read_rows(self.called, rows):
            at, records = first, self._in_columns(found, rows, first)
            if seen < columns:
                seen.update(*(columns if record is HOLE else record for record in records))
            try:
                if self.choice.together is not None:
                    kept += [first + i for i in self._together(fn, records)]
                    continue
                for at, record in enumerate(records, start=first):
                    if record is HOLE or fn(record):
                        kept.append(at)
            except Exception as error:
                add_place(
                    error, f"filter({self.choice.name}) of {self.dataset!r}", self.dataset, int(rows[at])
                )
                raise
        return rows[kept], frozenset(seen) if rows.size else columns

    def _in_columns(self, records: list[Any], rows: Int64s, first: int) -> list[Any]:
        """Return records with the columns that the function reads, as far as they have them."""
        columns = self.choice.columns
        if columns is None:
            return records
        for at, record in enumerate(records, start=first):
            if record is not HOLE and not isinstance(record, dict):
                place, kind = describe_place(self.dataset, int(rows[at])), type(record).__name__
                message = f"{place}: columns= is for records that are dicts (got a {kind})"
                raise WrongType(message)
        return [
            record if record is HOLE else {name: record[name] for name in columns if name in record}
            for record in records
        ]

    def _together(self, fn: Callable[..., Any], records: list[Any]) -> list[int]:
        """Return the indices of the records for which a function of lists returns True."""
        passed = [i for i, record in enumerate(records) if record is HOLE]
        there = [i for i, record in enumerate(records) if record is not HOLE]
        most = self.choice.together or 1
        for start in range(0, len(there), most):
            some = there[start : start + most]
            answers = list(fn([records[i] for i in some]))
            if len(answers) != len(some):
                message = (
                    f"filter({self.choice.name}, size={most}) must return as many answers as it is given "
                    f"records, {len(some)} (got {len(answers)})"
                )
                raise InvalidArgument(message)
            passed += [i for i, answer in zip(some, answers, strict=True) if answer]
        return sorted(passed)


_ROW_BITS = 40
"""A row is a number of 23 bits for its file and one of 40 bits in the file."""


def filtered(child: Node, choice: _Choice, running: EvaluationOptions) -> Node:
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
class Filter(Evaluated, ChosenRows):
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


def merged(parts: Sequence[Node]) -> Node:
    """Return the rows of several datasets, each row of a file once; see ``sk.concat(distinct=True)``."""
    files: dict[str, int] = {}
    codes, starts = [np.empty(0, dtype=np.int64)], [0]
    for side in parts:
        must_be_steady(side, "concat(distinct=True)")
        _must_not_flatten(side)
        codes += _row_codes(side, known_size(side, "concat(distinct=True)"), files)
        starts.append(sum(some.size for some in codes))
    _, first = np.unique(np.concatenate(codes), return_index=True)
    kept = np.sort(first).astype(np.int64)
    edges = np.searchsorted(kept, starts)
    chosen = [
        _with_rows(side, kept[edges[i] : edges[i + 1]] - starts[i])
        for i, side in enumerate(parts)
        if i == 0 or edges[i] < edges[i + 1]
    ]
    return chosen[0] if len(chosen) == 1 else Concat(tuple(chosen))


def _must_not_flatten(node: Node) -> None:
    if any(isinstance(each, FlattenNode) for each in nodes_of(node)):
        message = (
            f"concat(distinct=True) compares the rows of files, and {node!r} makes several records of one "
            f"row: concatenate first, then flatten()"
        )
        raise InvalidArgument(message)


def _with_rows(side: Node, rows: Int64s) -> Node:
    return side if rows.size == side.size else Filter(side, keep_unnamed([rows]), "not merged before")


def _row_codes(side: Node, size: int, files: dict[str, int]) -> Iterator[Int64s]:
    """Yield arrays of one number for each row, equal for equal rows of equal files: int64."""
    for start in range(0, size, _MOST_ROWS):
        origins = side.plan(np.arange(start, min(start + _MOST_ROWS, size), dtype=np.int64)).origins()
        numbers = np.array([files.setdefault(path, len(files)) for path in origins.paths], dtype=np.int64)
        if len(files) >= 1 << (63 - _ROW_BITS) or (origins.rows >> _ROW_BITS).any():
            message = f"concat(distinct=True) takes fewer than 2**23 files of fewer than 2**{_ROW_BITS} rows"
            raise InvalidArgument(message)
        yield (numbers[origins.files] << _ROW_BITS) | origins.rows
