"""Nodes that give columns as other types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._cached import cached
from seekable.errors import BadValue, WrongType
from seekable.nodes.columns.casting import Target, target_of
from seekable.nodes.columns.missing import lacking
from seekable.nodes.columns.node import OverColumns, checked_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.columns.choose import Missing
    from seekable.nodes.contract import Node

__all__ = ["Cast", "checked_targets"]


def checked_targets(types: object, version: str | int | None) -> tuple[tuple[str, Target], ...]:
    """Return what each column is cast to.

    Raises:
        WrongType: it is no dict of columns and types.
    """
    if not isinstance(types, Mapping):
        message = f'cast() takes a dict of columns and types, {{"n": int}} (got {types!r})'
        raise WrongType(message)
    return tuple((checked_name("cast()", name), target_of(to, version)) for name, to in types.items())


@final
@dataclass(frozen=True, eq=False, repr=False)
class Cast(OverColumns):
    """Each record with the values of some columns as another type; None stays None."""

    child: Node
    targets: tuple[tuple[str, Target], ...]
    missing: Missing
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "cast"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the types by column, and the rule for records that lack one."""
        types = {name: target.described for name, target in sorted(self.targets, key=lambda pair: pair[0])}
        return {"columns": types, "missing": self.missing}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        types = ", ".join(f"{name!r}: {target.name}" for name, target in self.targets)
        missing = "" if self.missing == "error" else f", missing={self.missing!r}"
        return f"{children[0]}.cast({{{types}}}{missing})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a dict with the values cast."""
        made = dict(record)
        for name, target in self._taken:
            value = made.get(name) if self.missing == "none" else made[name]
            made[name] = None if value is None else target.cast(value)
        return made

    def wrong(self, record: Any, error: Exception) -> SeekableError | None:
        """Return the error that names the column and the value."""
        if self.missing == "error" and (lacks := lacking(record, [name for name, _ in self._taken])):
            return lacks
        for name, target in self._taken:
            value = record.get(name)
            if value is None or target.way == "function":
                continue
            try:
                target.cast(value)
            except (ValueError, TypeError, OverflowError) as why:
                return BadValue(
                    f"the column {name!r} has {_short(value)}, which cannot be cast to {target.name}: {why}. "
                    f"Mend it, or say by a function what it shall be: cast({{{name!r}: fn}})"
                )
        return None

    def needs(self, columns: frozenset[str]) -> frozenset[str]:
        """Return the same columns."""
        return columns

    def beneath(self, column: str) -> str | None:
        """Return the same name; None if the values of the column are cast."""
        return None if any(column == name for name, _ in self.targets) else column

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child, with the target types."""
        below = self.child.declared()
        if below is None:
            return None
        types = {name: target.to if target.way == "arrow" else None for name, target in self.targets}
        return {**below, **types}

    @cached
    def _taken(self) -> tuple[tuple[str, Target], ...]:
        return tuple(pair for pair in self.targets if self.looked_at(pair[0]))


_MOST_CHARACTERS = 80


def _short(value: object) -> str:
    text = repr(value)
    shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    return f"{shown} ({type(value).__name__})"
