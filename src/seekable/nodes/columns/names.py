"""The columns of a dataset: names that a user gives, names that there are, and the schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import repeated
from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import BadValue, InvalidArgument, MissingColumn, WrongType
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    import difflib
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from seekable.nodes.node import Node
else:
    difflib = lazy("difflib")
    pa = optional("pyarrow", extra="parquet")

__all__ = [
    "LOOKED_AT",
    "By",
    "checked_name",
    "checked_names",
    "columns_of",
    "lacking",
    "must_have",
    "narrowed_to",
    "no_such_column",
    "schema_of",
    "value_by",
]

_MOST_SHOWN = 20
"""The largest number of columns that a message lists."""

_WAY_OUT = 'Where a column may be missing, say missing="none"'


def checked_names(what: str, columns: object) -> tuple[str, ...]:
    """Return the names of columns as a tuple.

    Args:
        what: the call that takes the names, for messages.
        columns: the argument of the user.

    Raises:
        WrongType: ``columns`` is not a list of strings.
        InvalidArgument: a name occurs twice.
    """
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        message = f"{what} takes a list of names of columns (got {columns!r})"
        raise WrongType(message)
    names = tuple(checked_name(what, column) for column in columns)
    if twice := repeated(names):
        message = f"{what} takes each column once (got {', '.join(map(repr, twice))} several times)"
        raise InvalidArgument(message)
    return names


def checked_name(what: str, column: object) -> str:
    """Return the name of a column; arguments as of `checked_names`.

    Raises:
        WrongType: ``column`` is not a string.
    """
    if not isinstance(column, str):
        message = f"{what}: the name of a column is a string (got {column!r} of type {type(column).__name__})"
        raise WrongType(message)
    return column


def lacking(record: dict[str, Any], columns: Sequence[str], way_out: str = _WAY_OUT) -> MissingColumn | None:
    """Return the error for a record that lacks some of the columns; None if the record has all of them.

    Args:
        record: the record.
        columns: the names of columns.
        way_out: ends the message: what to do where a column may be missing.


    Example:
        >>> str(lacking({"a": 1}, ["a", "b"])).partition(";")[0]
        "there is no column 'b'"
    """
    missing = [column for column in columns if column not in record]
    if not missing:
        return None
    return MissingColumn(
        f"there is no column {', '.join(map(repr, missing))}; the record has {_listed(record)}. {way_out}"
    )


def must_have(node: Node, what: str, columns: Iterable[str]) -> None:
    """Check that a dataset has some columns, if its files declare their columns.

    Args:
        node: the dataset.
        what: the call that names the columns, for messages.
        columns: the names.

    Raises:
        MissingColumn: the files declare their columns, and one of the names is not among them.
    """
    declared = node.declared()
    if declared is None:
        return
    for column in columns:
        if column not in declared:
            raise MissingColumn(f"{what}: {no_such_column(column, declared)}")


def no_such_column(column: str, columns: Iterable[str]) -> str:
    """Return the message for a column that is not among the existing ones.

    Example:
        >>> no_such_column("lnag", ["lang", "text"])
        "there is no column 'lnag', did you mean 'lang'? There are 'lang', 'text'"
    """
    columns = list(columns)
    near = difflib.get_close_matches(column, columns, n=1)
    meant = f", did you mean {near[0]!r}?" if near else "."
    return f"there is no column {column!r}{meant} There are {_listed(columns)}"


def _listed(columns: Iterable[str]) -> str:
    names = [repr(name) for name in columns]
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return (", ".join(names[:_MOST_SHOWN]) or "none") + more


By = str | Callable[[Any], Any]


def narrowed_to(child: Node, by: By, call: str) -> Node:
    """Return a node that reads of a table no more than ``by`` needs.

    Args:
        child: the node whose records are read.
        by: the name of a column, or a function of the record.
        call: the method that takes ``by``, for errors: ``"sort()"``.

    Raises:
        WrongType: ``by`` is neither.
        MissingColumn: the files declare their columns, and there is none of this name.
    """
    if isinstance(by, str):
        must_have(child, call, [by])
        return child.narrowed(frozenset([by]))
    if not callable(by):
        message = f"by must be the name of a column or a function of the record (got {by!r})"
        raise WrongType(message)
    return child


def value_by(record: Any, by: By) -> Any:
    """Return the value of a record's column, or what the function returns for the record.

    Raises:
        WrongType: ``by`` is a name, and the record is not a dict.
        MissingColumn: the record has no column of this name.
    """
    if not isinstance(by, str):
        return by(record)
    if not isinstance(record, dict):
        message = f"a record with columns is a dict (got a {type(record).__name__})"
        raise WrongType(message)
    way_out = f"Where it may be missing, give a function: by=lambda record: record.get({by!r})"
    if error := lacking(record, [by], way_out):
        raise error
    return record[by]


LOOKED_AT = 1000
"""The number of records that are read to infer a type that no file declares."""

_INFERRED_FROM = b"seekable.inferred_from"
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
    inferred = {_INFERRED_FROM: f"the first {count:,} records"}
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


def _with_named_fields(value: Any) -> Any:
    """Return an array with named fields, such as spans, as a list of dicts, which Arrow has a type for."""
    names = value.dtype.names if isinstance(value, np.ndarray) and value.ndim == 1 else None
    if names is None:
        return value
    return [dict(zip(names, each, strict=True)) for each in value.tolist()]


def _field(name: str, values: Iterable[Any]) -> pa.Field[Any]:
    there = [_with_named_fields(value) for value in values if value is not None]
    try:
        return pa.field(name, pa.array(there).type)
    except UnicodeEncodeError as error:
        message = (
            f"the column {name!r} has the text {json.dumps(error.object[:40])} with a lone surrogate, which "
            f"is no Unicode character and has no type in Arrow. Map it away, or drop the column, for a schema"
        )
        raise BadValue(message) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        kinds = sorted({type(value).__name__ for value in there})
        message = (
            f"the column {name!r} has values of no one type ({', '.join(kinds)}): {error}. Cast it, "
            f"cast({{{name!r}: str}}), or drop it, for a schema"
        )
        raise BadValue(message) from error
