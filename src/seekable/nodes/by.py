"""The argument ``by=``: the name of a column, or a function of the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seekable.errors import WrongType
from seekable.nodes.columns.names import lacking, must_have

if TYPE_CHECKING:
    from seekable.nodes.node import Node

__all__ = ["By", "narrowed_to", "value_by"]

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
