"""The file that a record came from as a column of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable.errors import BadValue
from seekable.nodes.columns.node import OverColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.errors import SeekableError
    from seekable.nodes.contract import Node

__all__ = ["SourceColumn"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SourceColumn(OverColumns):
    """Each record with the path of its file, and with its row there if a column is named for that."""

    child: Node
    column: str
    row: str | None
    relative: bool
    only: frozenset[str] | None = None

    kind: ClassVar[str] = "source_column"
    by_file: ClassVar[bool] = True

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the names of the columns, and True if paths are relative."""
        return {"column": self.column, "row": self.row, "relative": self.relative}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of the method, over the shown child."""
        row = "" if self.row is None else f", row={self.row!r}"
        relative = ", relative=True" if self.relative else ""
        return f"{children[0]}.source_column({self.column!r}{row}{relative})"

    def made(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the record, which has no file."""
        return dict(record)

    def made_of(self, record: dict[str, Any], path: str, name: str, row: int) -> dict[str, Any]:
        """Return a dict with the path and the row."""
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

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the child, and the new ones with unknown types."""
        below = self.child.declared()
        if below is None:
            return None
        return {**below, **{name: None for name in (self.column, self.row) if name is not None}}
