"""Errors for columns that do not exist."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from seekable.errors import MissingColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.nodes.contract import Node

__all__ = ["lacking", "must_have", "no_such_column"]

_MOST_SHOWN = 20


def lacking(record: dict[str, Any], columns: Sequence[str]) -> MissingColumn | None:
    """Return the error for a record that lacks some columns; None if it has them.

    Example:
        >>> str(lacking({"a": 1}, ["a", "b"])).partition(";")[0]
        "there is no column 'b'"
    """
    missing = [column for column in columns if column not in record]
    if not missing:
        return None
    return MissingColumn(
        f"there is no column {', '.join(map(repr, missing))}; the record has {_listed(record)}. "
        f'Where a column may be missing, say missing="none"'
    )


def must_have(node: Node, what: str, columns: Iterable[str]) -> None:
    """Refuse columns that a dataset does not have, where its files tell that without a record.

    Raises:
        MissingColumn: one is not there.
    """
    declared = node.declared()
    if declared is None:
        return
    for column in columns:
        if column not in declared:
            raise MissingColumn(f"{what}: {no_such_column(column, declared)}")


def no_such_column(column: str, columns: Iterable[str]) -> str:
    """Return the message for a column that is none of those there are.

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
