"""The node that gives records the columns of several sources: in common types, None where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable._optional import optional
from seekable.errors import BadValue
from seekable.nodes.columns.column_node import ColumnarNode
from seekable.nodes.columns.record_batches import batch_of_records, is_columnar, table_of, with_rows
from seekable.nodes.columns.unified_type import fitted_array, fitting, is_unchanged
from seekable.nodes.conditions import Bounds
from seekable.nodes.display import describe_place, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from seekable._typing import Int64s
    from seekable.errors import SeekableError
    from seekable.nodes.conditions import Where
    from seekable.nodes.node import Node
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["UnifyColumns"]

_MOST_CHARACTERS = 80

_MISFITS = (ValueError, TypeError, OverflowError)


@final
@dataclass(frozen=True, eq=False, repr=False)
class UnifyColumns(ColumnarNode):
    """Each record with the given columns, in their order and types; a column that it lacks is None."""

    child: Node
    columns: tuple[tuple[str, Any], ...]
    """The columns of records, each with its Arrow type; None for a type that is not known."""
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "unify_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the columns with their types."""
        return {"columns": [[name, None if kind is None else str(kind)] for name, kind in self.columns]}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the child, and the names of the columns."""
        return f"unify_columns({children[0]}, [{listed([repr(name) for name, _ in self.columns])}])"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the columns.

        Raises:
            KeyError: the record has a column more than these.
            ValueError, TypeError, OverflowError: a value does not fit the type of its column.
        """
        if self.only is None and not self._types.keys() >= record.keys():
            raise KeyError
        made = {}
        for name, fit in self._taken:
            value = record.get(name)
            made[name] = value if value is None or fit is None else fit(value)
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the column which is not known, or the value that does not fit."""
        if self.only is None and (more := [name for name in record if name not in self._types]):
            return BadValue(
                f'columns="union" found no column {listed([repr(name) for name in more])} in the records '
                f"that it looked at, and this record has it: name the columns of this source first, with "
                f'select_columns([...], missing="none")'
            )
        for name, fit in self._taken:
            value = record.get(name)
            if value is not None and fit is not None and (why := _misfit(fit, value)) is not None:
                return self._bad_value(name, value, why)
        return None

    def _bad_value(self, name: str, value: Any, why: object) -> BadValue:
        text = repr(value)
        short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
        return BadValue(
            f"the column {name!r} is {self._types[name]} in all sources together, and a value does not fit: "
            f"{short}: {why}. Cast the column in its source first, with cast({{{name!r}: ...}})"
        )

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return those of the columns that the child may have."""
        return columns.intersection(self._types if self._below is None else self._below)

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the child lacks the column, or has other values there."""
        if self._below is None:
            return column
        there = self._below.get(column) is not None and self._types.get(column) is not None
        return column if there and is_unchanged(self._below[column], self._types[column]) else None

    def may_match(self, where: Where) -> Int64s:
        """Return the runs of the child; none if the columns that it lacks rule out all of its rows."""
        lacking = [name for name in self._types if self._below is not None and name not in self._below]
        nulls = Bounds(None, None, nulls=True, values=False)
        if not where.may_pass(dict.fromkeys(lacking, nulls)):
            return np.empty((0, 2), dtype=np.int64)
        return super().may_match(where)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their types."""
        return self._types

    def is_columnar(self, positions: Int64s) -> bool:
        """Return True if the child reads columns of Arrow."""
        return is_columnar(self.child.plan(positions))

    def without_child(self, positions: Int64s) -> list[Any] | None:
        """Return None: records are made of the child's."""
        return None

    def table(self, positions: Int64s) -> pa.RecordBatch:
        """Return some records as one record batch of the columns' types.

        Raises:
            BadValue: a value does not fit its column.
            InvalidArgument: a record is not a dict.
        """
        plan = self.child.plan(positions)
        if not is_columnar(plan):
            types = {name: self._types[name] for name, _ in self._taken}
            return batch_of_records(self.plan(positions).read(), types)
        batch = table_of(plan)
        there = {name: batch.column(name) for name in batch.schema.names}
        arrays = []
        for name, _ in self._taken:
            kind, array = self._types[name], there.get(name)
            if array is None:
                arrays.append(pa.nulls(len(batch), pa.null() if kind is None else kind))
            else:
                arrays.append(array if kind is None else self._fitted(name, array, kind, positions))
        return with_rows([name for name, _ in self._taken], arrays, len(batch))

    def _fitted(self, name: str, array: pa.Array, kind: pa.DataType, positions: Int64s) -> pa.Array:
        """Return a column in the common type.

        Raises:
            BadValue: a value does not fit; the error names its file and row.
        """
        try:
            return fitted_array(array, kind)
        except (*_MISFITS, pa.ArrowException):
            for row, position in enumerate(positions.tolist()):
                try:
                    fitted_array(array.slice(row, 1), kind)
                except (*_MISFITS, pa.ArrowException) as why:
                    bad = self._bad_value(name, array[row].as_py(), why)
                    raise BadValue(f"{describe_place(self.child, position)}: {self.kind}: {bad}") from why
            raise

    @cached
    def _types(self) -> dict[str, Any]:
        return dict(self.columns)

    @cached
    def _below(self) -> Mapping[str, Any] | None:
        """The columns that the child declares; None if only records show them."""
        return self.child.declared()

    @cached
    def _taken(self) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
        """The columns of records, each with the function that makes its values fit, if they may not."""
        return tuple((name, self._fit(name, kind)) for name, kind in self.columns if self.looked_at(name))

    def _fit(self, name: str, kind: Any) -> Callable[[Any], Any] | None:
        source = None if self._below is None else self._below.get(name)
        if kind is None or (self._below is not None and name not in self._below):
            return None
        return None if source is not None and is_unchanged(source, kind) else fitting(kind)


def _misfit(fit: Callable[[Any], Any], value: Any) -> Exception | None:
    """Return the error of a function that makes a value fit; None if it raises none."""
    try:
        fit(value)
    except _MISFITS as error:
        return error
    return None
