"""How many tokens each row has, in a dataset whose records hold lists of tokens: all rows are read once.

Lists of tables are counted from the offsets that Arrow has for them; no list is made. The lengths lie in a
temporary file, which is memory-mapped, as the rows that ``filter`` keeps.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.errors import IndexStale, WrongType
from seekable.nodes.columns.names import must_have
from seekable.nodes.display import describe_place
from seekable.nodes.evaluated import check_seen
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.saved_rows import keep_unnamed
from seekable.packing.nodes.lists import NotAList, lists_of
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.nodes.saved_rows import KeptRows
    from seekable.nodes.saving import Loading, Saving
    from seekable.parallel.progress import ProgressChoice

__all__ = ["RowLengths", "row_lengths"]

_PLANNED = 4096
"""The most rows whose reading is planned together."""

_BYTES = 64 << 20
"""About the bytes of files that are read at a time."""


@final
@dataclass(frozen=True, eq=False)
class RowLengths:
    """How many tokens each row of a dataset has, and the types of the arrays with them."""

    rows: KeptRows
    """The file of the lengths."""

    dtypes: tuple[tuple[str | None, str], ...]
    """The name of each array, and the type that holds the numbers of all rows (``"int64"``); tokens first."""

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the file of the lengths, and the types."""
        return {"rows": into.rows(self.rows), "dtypes": self.dtypes}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> RowLengths:
        """Return the lengths that `as_json` wrote; errors are those of `seekable.nodes.saving.Loading`."""
        said = given.checked(value, dict[str, Any], where)
        rows = given.rows(said.get("rows"), f"{where}.rows")
        dtypes = given.checked(said.get("dtypes"), tuple[tuple[str | None, str], ...], f"{where}.dtypes")
        return cls(rows, dtypes)

    @cached
    def lengths(self) -> Int64s:
        """The number of tokens of each row: int64, memory-mapped.

        Raises:
            IndexStale: the file is gone, because the process that made it has ended.
        """
        try:
            return self.rows.array
        except IndexStale as error:
            message = (
                f"the lengths of the rows in {self.rows.path!r} are gone: they lasted as long as the process "
                f"that found them; make the packed dataset again in this process"
            )
            raise IndexStale(message) from error

    @property
    def digest(self) -> str:
        """The xxh3_64 digest of the lengths as little-endian 64-bit numbers."""
        return self.rows.digest


def row_lengths(
    child: Node,
    key: str | None,
    *,
    align: tuple[str, ...] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
    call: str = "pack()",
) -> RowLengths:
    """Read the lists of a dataset once, and return how many tokens each row has.

    Of tables only the named columns are read. A hole has no tokens.

    Args:
        child: the dataset; it must be steady and have a length.
        key: the name of the list of tokens; None if the records are the lists.
        align: the names of lists that must be as long as those of the tokens.
        jobs: the most processes; None for as many as there are processors, where they are worth their start.
        executor: does the work instead.
        progress: a function that is called as it goes on; False for none. By default a bar on a terminal.
        call: the method that needs the lengths, for errors.

    Raises:
        EndlessDataset: the dataset has no length.
        InvalidArgument: the dataset is not steady.
        MissingColumn: there is no column of a name; of records the error names the file and the row.
        WrongType: a record has no flat list of integers there, or lists of other lengths; the error names
            the file and the row.
    """
    size = known_size(child, call)
    must_be_steady(child, call)
    names = (key, *align)
    columns = [name for name in names if name is not None]
    must_have(child, call, columns)
    narrowed = child.narrowed(frozenset(columns)) if key is not None else child
    job = _Lengths(narrowed, names, call)
    using = execution_options(jobs, executor, at_once=True)
    check_seen(executor, child)
    dtypes: list[set[str]] = [set() for _ in names]

    def lengths() -> Iterator[Int64s]:
        with contextlib.closing(map_ranges(job, size, using=using)) as found:
            for done, (some, kinds) in found:
                watch(done)
                for known, new in zip(dtypes, kinds, strict=True):
                    known.update(new)
                yield some
        if not size:
            watch(0)

    with watched(progress, task="reading lengths", rows=size) as watch:
        rows = keep_unnamed(lengths(), "pack")
    allowed = ["iub", *["iubf"] * len(align)]
    common = [_common(*each, call=call) for each in zip(names, dtypes, allowed, strict=True)]
    return RowLengths(rows, tuple(zip(names, common, strict=True)))


def _common(name: str | None, dtypes: set[str], allowed: str, *, call: str) -> str:
    """Return the type that holds the numbers of all rows; int64 where no row has any.

    Raises:
        WrongType: there is no such type.
    """
    common = np.result_type(*sorted(dtypes)) if dtypes else np.dtype(np.int64)
    if common.kind not in allowed:
        where = "the dataset" if name is None else repr(name)
        message = (
            f"{call}: no integer type holds arrays of {' and '.join(sorted(dtypes))}, as {where} has them: "
            f"convert them in a map() before"
        )
        raise WrongType(message)
    return str(common)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """A picklable job that finds the lengths and the types of arrays in a range of rows."""

    child: Node
    names: tuple[str | None, ...]
    call: str

    def __call__(self, start: int, stop: int) -> tuple[Int64s, list[frozenset[str]]]:
        found = [np.empty(0, dtype=np.int64)]
        dtypes: list[frozenset[str]] = [frozenset() for _ in self.names]
        for first in range(start, stop, _PLANNED):
            rows = np.arange(first, min(first + _PLANNED, stop), dtype=np.int64)
            plan = self.child.plan(rows)
            step = max(1, min(rows.size, rows.size * _BYTES // max(1, plan.bytes)))
            for at in range(0, rows.size, step):
                lengths, kinds = self._some(plan.slice(at, min(at + step, rows.size)), first + at)
                found.append(lengths)
                dtypes = [known | new for known, new in zip(dtypes, kinds, strict=True)]
        return np.concatenate(found), dtypes

    def _some(self, plan: Any, first: int) -> tuple[Int64s, list[set[str]]]:
        """Return the lengths of consecutive rows, and the types of arrays that are not empty."""
        try:
            lists = lists_of(plan, self.names, [name for name in self.names[1:] if name is not None])
        except NotAList as error:
            raise error.placed(self.child, first + error.record, self.call) from None
        lengths = lists[0].lengths
        for name, other in zip(self.names[1:], lists[1:], strict=True):
            if (wrong := np.flatnonzero(other.lengths != lengths)).size:
                row = int(wrong[0])
                message = (
                    f"{describe_place(self.child, first + row)}: {self.call} needs as many numbers in "
                    f"{name!r} as there are tokens, {lengths[row]:,} (got {other.lengths[row]:,})"
                )
                raise WrongType(message)
        return lengths, [each.dtypes for each in lists]
