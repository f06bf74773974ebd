"""The fields of a Shar that are read: their values are put into cuts, after a check that they belong there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._cached import cached
from seekable.errors import CorruptRecord
from seekable.formats.shar.cut import field_value, set_field
from seekable.index.keys.key_hash import key_hash
from seekable.nodes.sources.file_source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s

__all__ = ["Failed", "SharFields"]


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands for a record that cannot be read."""

    error: CorruptRecord


@dataclass(frozen=True, eq=False)
class SharFields:
    """The fields of a Shar that are read."""

    lines: FileSource
    """The source of the cuts."""

    named: tuple[tuple[str, Any], ...]
    """The name and the source of each field; a record that cannot be read is a `Failed`."""

    @cached
    def sources(self) -> list[Any]:
        """The source of each field."""
        return [source for _, source in self.named]

    def expected_one(self, row: int) -> list[int | None]:
        """Return for each field the hash of the id that a row of it has; None for JSON lines."""
        rows = np.array([row], np.int64)
        return [
            None if isinstance(source, FileSource) else int(source.key_hashes(rows)[0])
            for source in self.sources
        ]

    def expected(self, rows: Int64s) -> Iterable[Sequence[int | None]]:
        """Return for each row, and each field, the hash of the id that the field has there."""
        if not self.named:
            return repeat((), rows.size)
        columns = [
            repeat(None, rows.size) if isinstance(source, FileSource) else source.key_hashes(rows).tolist()
            for source in self.sources
        ]
        return zip(*columns, strict=True)

    def put(self, cut: Any, values: Sequence[Any], row: int, expected: Sequence[int | None]) -> Any:
        """Return a cut with the values of its fields, or the `Failed` of what is wrong.

        Args:
            cut: the cut, or a `Failed`.
            values: for each field the pair of members, the object of its line, or a `Failed`.
            row: the row of all of them, counted over all files.
            expected: what `expected` returns for the row.
        """
        if type(cut) is Failed:
            return cut
        if not values:
            return cut
        if not isinstance(cut, dict) or not isinstance(cut.get("id"), str):
            return self._failed(self.lines, row, f"expected a cut with an id (found {cut!r:.80})")
        name = cut["id"]
        hashed = key_hash(name)
        for (field, source), value, wanted in zip(self.named, values, expected, strict=True):
            if type(value) is Failed:
                return value
            try:
                if wanted is None:
                    self._put_line(cut, field, value)
                elif wanted == hashed:
                    if (found := field_value(value)) is not None:
                        set_field(cut, field, found)
                else:
                    return self._of_another(field, source, name, row)
            except ValueError as error:
                return self._failed(source, row, str(error))
        return cut

    def _put_line(self, cut: dict[str, Any], field: str, line: Any) -> None:
        """Put the value in a line of JSON into a cut; a line without a value changes nothing.

        Raises:
            ValueError: the line is of another cut.
        """
        name = cut["id"]
        of = line.get("cut_id") if isinstance(line, dict) else None
        if of != name:
            message = (
                f"the field {field!r} has a line of the cut {of!r}, and the cut of this row is {name!r}: the "
                f"files do not belong together, or lack a line"
            )
            raise ValueError(message)
        value = line.get(field)
        if value is not None:
            set_field(cut, field, value)

    def _of_another(self, field: str, source: Any, name: str, row: int) -> Failed:
        """Return the failure of a pair of members that are of another cut."""
        of = source.key_at(row)
        (place,) = self.lines.plan(np.array([row], np.int64)).locate()
        what = (
            f"the field {field!r} has a pair of the cut {of!r}, and the cut of this row is {name!r} "
            f"({place.path}: record {place.row} at byte {place.offset}): the files do not belong together, or "
            f"lack a pair"
        )
        return self._failed(source, row, what)

    def _failed(self, source: Any, row: int, what: str) -> Failed:
        (place,) = source.plan(np.array([row], np.int64)).locate()
        cause = ValueError(what)
        error = CorruptRecord(
            place.path, place.row, offset=place.offset, length=place.length, preview=b"", cause=cause
        )
        error.__cause__ = cause
        return Failed(error)
