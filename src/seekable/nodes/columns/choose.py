"""Nodes that choose columns, fill missing values, and add the file of a record as a column."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._cached import cached
from seekable.errors import BadValue, InvalidArgument
from seekable.nodes.columns.column_node import ByFile, ColumnNode, OneByOne
from seekable.nodes.columns.names import lacking
from seekable.state.canonical import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.columns.column_node import Making
    from seekable.nodes.node import Node


__all__ = ["DropColumns", "Fill", "Missing", "SelectColumns", "SourceColumn", "checked_missing"]


Missing = Literal["error", "none"]
"""The rule for a record that lacks a column: an error, or None as the value."""


def checked_missing(missing: Missing) -> Missing:
    """Return the rule for records that lack a column.

    Raises:
        InvalidArgument: there is no such rule.
    """
    if missing not in ("error", "none"):
        message = f"missing must be 'error' or 'none' (got {missing!r})"
        raise InvalidArgument(message)
    return missing


@final
@dataclass(frozen=True, eq=False, repr=False)
class SelectColumns(ColumnNode):
    """Each record with the named columns, in their order."""

    child: Node
    names: tuple[str, ...]
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "select_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names, and the rule for records that lack one."""
        return {"columns": list(self.names), "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.select_columns({list(self.names)!r}{missing})"

    @property
    def making(self) -> Making:
        """Each record is made by itself."""
        if self.missing == "none":
            return OneByOne(_or_none(self._taken))
        return OneByOne(_each_of(self._taken), _each_of_many(self._taken))

    def of_arrays(self, columns: dict[str, Any]) -> dict[str, Any] | None:
        """Return the named columns; None if one is missing."""
        return _each_of(self._taken)(columns) if columns.keys() >= set(self._taken) else None

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the missing columns."""
        return lacking(record, self._taken)

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns that are among the names."""
        return columns.intersection(self.names)

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the column is not among the names."""
        return column if column in self.names else None

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the named columns of the child."""
        return {name: below.get(name) for name in self.names}

    @cached
    def _taken(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if self.looked_at(name))


def _each_of(names: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that keeps some columns of a record, and raises ``KeyError`` if one is missing."""
    return lambda record: {name: record[name] for name in names}


def _each_of_many(names: tuple[str, ...]) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return a function that does what that of ``_each_of`` does, for each record of a list."""
    if len(names) == 1:
        only = names[0]
        return lambda records: [{only: record[only]} for record in records]
    return lambda records: [{name: record[name] for name in names} for record in records]


def _or_none(names: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that keeps some columns of a record, with None for those that the record lacks."""
    return lambda record: {name: record.get(name) for name in names}


@final
@dataclass(frozen=True, eq=False, repr=False)
class DropColumns(ColumnNode):
    """Each record without the named columns; it may lack them."""

    child: Node
    names: tuple[str, ...]
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "drop_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names of the dropped columns, sorted."""
        return {"columns": sorted(self.names)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        return f"{children[0]}.drop_columns({list(self.names)!r})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the columns that are not dropped."""
        dropped = self._dropped
        return {name: value for name, value in record.items() if name not in dropped}

    def of_arrays(self, columns: dict[str, Any]) -> dict[str, Any] | None:
        """Return the columns that are not dropped."""
        return self.made(columns)

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return all columns but the dropped ones."""
        return columns - self._dropped

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the column is dropped."""
        return None if column in self._dropped else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child that are not dropped."""
        return {name: kind for name, kind in below.items() if name not in self._dropped}

    @cached
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.names)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Fill(ColumnNode):
    """Each record with a value in the columns that it lacks, or where it has None."""

    child: Node
    values: tuple[tuple[str, Any], ...]
    nested: bool
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "fill"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the values by column, and True if they also fill lists and dicts."""
        values = {name: _described(value) for name, value in sorted(self.values, key=lambda pair: pair[0])}
        return {"values": values, "nested": self.nested}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        nested = ", nested=True" if self.nested else ""
        return f"{children[0]}.fill({dict(self.values)!r}{nested})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict with a value in place of each None, and of each column that the record lacks."""
        made = dict(record)
        for name, value, shared in self._taken:
            held = made.get(name)
            if held is None:
                made[name] = value if shared else copy.deepcopy(value)
            elif self.nested and isinstance(held, list | dict):
                made[name] = _filled(held, value)
        return made

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the column is filled, because the child has None there."""
        return None if any(column == name for name, _ in self.values) else column

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child, and the filled ones that it lacks."""
        below = self.child.declared()
        return (
            None
            if below is None
            else {**below, **{name: None for name, _ in self.values if name not in below}}
        )

    @cached
    def _taken(self) -> tuple[tuple[str, Any, bool], ...]:
        # A list or dict must not be the same one in all records: whoever changes it would change them all.
        return tuple(
            (name, value, not isinstance(value, list | dict | set))
            for name, value in self.values
            if self.looked_at(name)
        )


def _filled(held: Any, value: Any) -> Any:
    if held is None:
        return copy.deepcopy(value)
    if isinstance(held, dict):
        return {name: _filled(part, value) for name, part in held.items()}
    return [_filled(part, value) for part in held] if isinstance(held, list) else held


def _described(value: Any) -> Any:
    """Return a value for descriptions: the value itself if JSON can hold it; otherwise its ``repr``."""
    try:
        same = plain_json(value)
    except TypeError:
        same = None
    return value if type(same) is type(value) and same == value else {"value": repr(value)}


@final
@dataclass(frozen=True, eq=False, repr=False)
class SourceColumn(ColumnNode):
    """Each record with the path of its file, and with its row there if a column is named for that."""

    child: Node
    column: str
    row: str | None
    relative: bool
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "source_column"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names of the columns, and True if paths are relative."""
        return {"column": self.column, "row": self.row, "relative": self.relative}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        row = "" if self.row is None else f", row={self.row!r}"
        relative = ", relative=True" if self.relative else ""
        return f"{children[0]}.source_column({self.column!r}{row}{relative})"

    @property
    def making(self) -> Making:
        """Each record is made by itself, from its place too."""
        return ByFile(self.made)

    def made(self, record: dict[str, Any], path: str, name: str, row: int) -> dict[str, Any]:
        """Return a dict with the path, or the name if paths are relative, and the row.

        Raises:
            BadValue: the record has a column of that name.
        """
        if self.column in record or self.row in record:
            there = self.column if self.column in record else self.row
            message = f"there is a column {there!r} already: name another one for the file, or drop that one"
            raise BadValue(message)
        made = {**record, self.column: name if self.relative else path}
        if self.row is not None:
            made[self.row] = row
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error as it is: it names the column."""
        return error if isinstance(error, BadValue) else None

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns, the new names too, so that a clash with an existing column is found."""
        return columns

    def beneath(self, column: str) -> str | None:
        """Return the same name; None for the new columns."""
        return None if column in (self.column, self.row) else column

    def declared_over(self, below: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of the child, and the new ones with unknown types."""
        return {**below, **{name: None for name in (self.column, self.row) if name is not None}}
