"""Names of columns: checks of those that a user gives, and errors for columns that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seekable._arguments import repeated
from seekable.errors import InvalidArgument, MissingColumn, WrongType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.nodes.node import Node

__all__ = [
    "By",
    "checked_name",
    "checked_names",
    "lacking",
    "must_have",
    "narrowed_to",
    "no_such_column",
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
        WrongType: ``by`` is a name, and the record is no dict.
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
