"""Nodes that fill missing values."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import msgspec

from seekable._cached import cached
from seekable.nodes.columns.node import OverColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.nodes.contract import Node

__all__ = ["Fill"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Fill(OverColumns):
    """Each record with a value in the columns that it lacks, or where it has None."""

    child: Node
    values: tuple[tuple[str, Any], ...]
    nested: bool
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "fill"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the values by column, and True if they also fill lists and dicts."""
        values = {name: _told(value) for name, value in sorted(self.values, key=lambda pair: pair[0])}
        return {"values": values, "nested": self.nested}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        nested = ", nested=True" if self.nested else ""
        return f"{children[0]}.fill({dict(self.values)!r}{nested})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict without what is missing."""
        made = dict(record)
        for name, value, shared in self._taken:
            held = made.get(name)
            if held is None:
                made[name] = value if shared else copy.deepcopy(value)
            elif self.nested and isinstance(held, list | dict):
                made[name] = _filled(held, value)
        return made

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the same columns."""
        return columns

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


def _told(value: Any) -> Any:
    """Return a value as descriptions have it: itself where JSON has it, else its text."""
    try:
        same: Any = msgspec.json.decode(msgspec.json.encode(value))
    except TypeError:
        same = None
    return value if type(same) is type(value) and same == value else {"value": repr(value)}
