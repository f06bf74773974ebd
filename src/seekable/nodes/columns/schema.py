"""The columns of records and their types, declared by files or inferred from the first records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import BadValue, WrongType
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from seekable.nodes.node import Node
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["INFERRED_FROM", "LOOKED_AT", "columns_of", "schema_of"]

LOOKED_AT = 1000
"""The number of records that are read to infer a type that no file declares."""

INFERRED_FROM = b"seekable.inferred_from"
"""The key, in the metadata of a schema or a field, for the number of records its types are inferred from."""


def schema_of(dataset: Node) -> pa.Schema:
    """Return the names and the types of the columns of a dataset; see ``Dataset.schema``.

    Raises:
        WrongType: a type has to be inferred, and a record is not a dict.
        BadValue: the values of a column have no common type, or have lone surrogates.
    """
    declared = dataset.declared()
    if declared is not None and None not in declared.values():
        return pa.schema(list(declared.items()))
    seen, count = _seen(dataset, declared)
    inferred = {INFERRED_FROM: f"the first {count:,} records"}
    if declared is None:
        fields = [_field(name, values) for name, values in seen.items()]
        return pa.schema(fields, metadata=inferred)
    return pa.schema(
        [
            pa.field(name, kind)
            if kind is not None
            else _field(name, seen.get(name, ())).with_metadata(inferred)
            for name, kind in declared.items()
        ]
    )


def columns_of(dataset: Node) -> list[str]:
    """Return the names of the columns of a dataset; see ``Dataset.columns``.

    Raises:
        WrongType: a record has to be read, and is not a dict.
    """
    declared = dataset.declared()
    return list(_seen(dataset, None)[0] if declared is None else declared)


def _seen(dataset: Node, declared: Mapping[str, Any] | None) -> tuple[dict[str, list[Any]], int]:
    """Return the values of the first records by column, and the number of these records."""
    if declared is not None:
        dataset = dataset.narrowed(frozenset(name for name, kind in declared.items() if kind is None))
    count = LOOKED_AT if dataset.size is None else min(LOOKED_AT, dataset.size)
    columns: dict[str, list[Any]] = {}
    for record in dataset.fetch(np.arange(count, dtype=np.int64)):
        if record is HOLE:
            continue
        if not isinstance(record, dict):
            message = f"only records that are dicts have columns (got a {type(record).__name__})"
            raise WrongType(message)
        for name, value in record.items():
            columns.setdefault(name, []).append(value)
    return columns, count


def _field(name: str, values: Iterable[Any]) -> pa.Field[Any]:
    there = [value for value in values if value is not None]
    try:
        return pa.field(name, pa.array(there).type)
    except UnicodeEncodeError as error:
        message = (
            f"the column {name!r} has the text {json.dumps(error.object[:40])} with a lone surrogate, which "
            f"is no Unicode character and has no type in Arrow. Map it away, or drop the column, for a schema"
        )
        raise BadValue(message) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        kinds = sorted({type(value).__name__ for value in there})
        message = (
            f"the column {name!r} has values of no one type ({', '.join(kinds)}): {error}. Cast it, "
            f"cast({{{name!r}: str}}), or drop it, for a schema"
        )
        raise BadValue(message) from error
