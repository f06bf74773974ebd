"""Some of the columns, and all but some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._cached import cached
from seekable.nodes.columns.missing import lacking
from seekable.nodes.columns.node import OverColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.contract import Node

__all__ = ["DropColumns", "Missing", "SelectColumns"]

Missing = Literal["error", "none"]
"""The rule for a record that lacks a column: an error, or None as the value."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SelectColumns(OverColumns):
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

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the columns."""
        if self.missing == "none":
            return {name: record.get(name) for name in self._taken}
        return {name: record[name] for name in self._taken}

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the missing columns."""
        return lacking(record, self._taken)

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the columns that are among the names."""
        return columns.intersection(self.names)

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the column is not among the names."""
        return column if column in self.names else None

    def declared(self) -> Mapping[str, Any] | None:
        """Return the named columns of the child."""
        below = self.child.declared()
        return None if below is None else {name: below.get(name) for name in self.names}

    @cached
    def _taken(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if self.looked_at(name))


@final
@dataclass(frozen=True, eq=False, repr=False)
class DropColumns(OverColumns):
    """Each record without the named columns; it may lack them."""

    child: Node
    names: tuple[str, ...]
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "drop_columns"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names, sorted."""
        return {"columns": sorted(self.names)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        return f"{children[0]}.drop_columns({list(self.names)!r})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict of the others."""
        dropped = self._dropped
        return {name: value for name, value in record.items() if name not in dropped}

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return all columns but the dropped ones."""
        return columns - self._dropped

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the column is dropped."""
        return None if column in self._dropped else column

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child that are not dropped."""
        below = self.child.declared()
        if below is None:
            return None
        return {name: kind for name, kind in below.items() if name not in self._dropped}

    @cached
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.names)
