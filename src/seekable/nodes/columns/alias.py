"""Nodes that add a column: the values of another column, or those of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.columns.column_node import ColumnNode
from seekable.nodes.columns.making import InGroups, OneByOne
from seekable.nodes.columns.names import lacking
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.columns.making import Making
    from seekable.nodes.node import Node

__all__ = ["Alias", "Computed"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Alias(ColumnNode):
    """Each record with one more column, which has the values of another."""

    child: Node
    new: str
    old: str
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "alias"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return both names, and the rule for records that lack the old one."""
        return {"new": self.new, "old": self.old, "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.alias({self.new!r}, {self.old!r}{missing})"

    @property
    def making(self) -> Making:
        """Each record is made by itself."""
        return OneByOne(self.made)

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict with the new column, if it is used.

        Raises:
            KeyError: the record lacks the old column, and ``missing`` is ``"error"``.
        """
        if not self.looked_at(self.new):
            return record
        return {**record, self.new: record.get(self.old) if self.missing == "none" else record[self.old]}

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the missing column; None if the record has it."""
        return lacking(record, [self.old])

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the old name in place of the new one."""
        return columns - {self.new} | {self.old} if self.new in columns else columns

    def beneath(self, column: str) -> str | None:
        """Return the old name for the new one; other names are the same."""
        return self.old if column == self.new else column

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child, and the new one with the type of the old one."""
        below = self.child.declared()
        return None if below is None else {**below, self.new: below.get(self.old)}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Computed(ColumnNode):
    """Each record with one more column, which a function makes of the record."""

    child: Node
    new: str
    fn: Callable[..., Any]
    most: int | None
    version: str | int | None
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "computed"

    def __post_init__(self) -> None:
        """Check that the function has a name.

        Raises:
            WrongType: the function cannot be called.
            InvalidArgument: the function has no name, and there is no version.
        """
        describe_function(self.fn, self.version)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the column and the function, by name; the number of records in a call changes no value."""
        return {"new": self.new, "fn": describe_function(self.fn, self.version)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        size = "" if self.most is None else f", size={self.most}"
        name = describe_function(self.fn, self.version)["name"]
        return f"{children[0]}.alias({self.new!r}, {name}{size})"

    @property
    def making(self) -> Making:
        """Records are made one by one, or in groups of ``most``; unchanged if the new column is not used."""
        if not self.looked_at(self.new):
            return OneByOne(_unchanged)
        return OneByOne(self._made) if self.most is None else InGroups(self._group, self.most)

    def _made(self, record: dict[str, Any]) -> dict[str, Any]:
        return {**record, self.new: self.fn(record)}

    def _group(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the records with the values that the function returns for all of them.

        Raises:
            WrongType: the function returns no list.
            InvalidArgument: the function returns more or fewer values than it gets records.
        """
        values = self.fn(records)
        name = describe_function(self.fn, self.version)["name"]
        if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
            message = f"{name} must return a list of values (got {type(values).__name__})"
            raise WrongType(message)
        if len(values) != len(records):
            given, got = len(records), len(values)
            message = f"{name} must return as many values as it is given records, {given} (got {got})"
            raise InvalidArgument(message)
        return [{**record, self.new: value} for record, value in zip(records, values, strict=True)]

    def needs(self, columns: frozenset[str]) -> frozenset[str] | None:
        """Return None, all columns, if the function is called; otherwise the same columns."""
        return None if self.new in columns else columns

    def beneath(self, column: str) -> str | None:
        """Return the same name; None for the new column."""
        return None if column == self.new else column

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child, and the new one with an unknown type."""
        below = self.child.declared()
        return None if below is None else {**below, self.new: None}


def _unchanged(record: dict[str, Any]) -> dict[str, Any]:
    return record
