"""Records as a table of one schema: each value as it was, or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._cached import cached
from seekable.writing.columns.kinds import Unfit, merged, type_of
from seekable.writing.columns.loss import loss
from seekable.writing.misfit import Misfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

__all__ = ["Columns", "check_names"]


@dataclass(frozen=True, eq=False)
class Columns:
    """What records must have, and how they become a table; picklable."""

    schema: pa.Schema
    """The columns."""

    inferred: bool
    """Whether the schema was told by some of the records, so that a value must be of just its type; else a
    value is made what the schema says, if nothing of it is lost."""

    def table(self, records: Sequence[Any]) -> pa.Table:
        """Return the rows of a table.

        Raises:
            Misfit: a record is no dict, has a column that the schema does not have, or a value that does not
                fit into its column.
        """
        try:
            return self._table(records)
        except Unfit as error:
            for place, record in enumerate(records):
                try:
                    self._table([record])
                except Unfit as why:
                    raise Misfit(len(records) - place, str(why)) from why
            raise Misfit(len(records), str(error)) from error

    def of_batch(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the rows of a batch as those of a table; most columns are the ones that are wanted already.

        Raises:
            Misfit: as ``table``.
        """
        import pyarrow as pa

        found = {field.name: field.type for field in batch.schema}
        is_same = all(field.nullable and found.get(field.name) in (None, field.type) for field in self.schema)
        if not is_same or not found.keys() <= self._names:
            return self.table(batch.to_pylist())
        arrays = [
            batch.column(field.name) if field.name in found else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _table(self, records: Sequence[Any]) -> pa.Table:
        import pyarrow as pa

        check_names(records, self._names)
        arrays = [self._array(field, [record.get(field.name) for record in records]) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _array(self, field: pa.Field, values: list[Any]) -> pa.Array:
        try:
            self._check(values, field.type)
            array = converted(values, field.type)
        except Unfit as error:
            raise Unfit(f"column {field.name!r}: {error}") from None
        if array.null_count and not field.nullable:
            raise Unfit(f"column {field.name!r}: it has none, and the schema does not allow that")
        return array

    def _check(self, values: list[Any], kind: pa.DataType) -> None:
        if not self.inferred:
            if (lost := loss(values, kind)) is not None:
                raise Unfit(lost)
        elif merged(kind, found := type_of(values)) != kind:
            raise Unfit(f"it has {found}, and the column holds {kind}")

    @cached
    def _names(self) -> frozenset[str]:
        return frozenset(self.schema.names)

    def __getstate__(self) -> dict[str, Any]:
        """Return the description alone."""
        return {"schema": self.schema, "inferred": self.inferred}


def converted(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return values as an array of some type.

    Raises:
        Unfit: a value cannot be made that type.
    """
    import pyarrow as pa

    try:
        is_coarse = pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")
        if is_coarse and not any(isinstance(value, np.datetime64) for value in values):
            # Made of a datetime, such a timestamp would lose what it has no room for.
            return pa.array(values, type=pa.timestamp("us", kind.tz)).cast(kind)
        return pa.array(values, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Unfit(str(error)) from None


def check_names(records: Sequence[Any], names: frozenset[str] | None) -> None:
    """Refuse records that are no dicts, or whose names are not those of the columns.

    Args:
        records: the records.
        names: the columns; None for any.

    Raises:
        Unfit: there is such a record.
    """
    for kind in set(map(type, records)):
        if not issubclass(kind, Mapping):
            raise Unfit(
                f"it is a {kind.__name__}, and columns are made of dicts: make one of it first, as with "
                f'map(lambda record: {{"text": record}})'
            )
    found = set(chain.from_iterable(records))
    if names is not None and found <= names:
        return
    for name in found:
        if not isinstance(name, str):
            raise Unfit(f"the names of columns must be strings, and {name!r} is {type(name).__name__}")
    if names is not None:
        more = ", ".join(map(repr, sorted(found - names)))
        raise Unfit(f"it has {more}, and the schema has no column of that name")
