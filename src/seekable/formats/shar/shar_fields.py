"""The fields of a Shar that are read: their values are put into the cuts that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import CorruptRecord
from seekable.formats.shar.cut import set_field
from seekable.formats.shar.shar_pairs import Failed, PairReader
from seekable.index.digest import key_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.files.byte_source import FileSource

__all__ = ["LineReader", "SharFields"]


@final
class LineReader:
    """Reads the lines of one field; a value is the object of a line, or a `Failed`."""

    def __init__(self, field: str, source: FileSource) -> None:
        """Take the source of a field; nothing is read."""
        self.field = field
        self.source = replace(source, errors=Failed)

    def one(self, row: int) -> tuple[Any, None]:
        """Return the object of a row, counted over all files, and None: the object has the id itself."""
        return self.source.record(row), None

    def values(self, rows: Int64s) -> list[Any]:
        """Return the objects of some rows."""
        return self.source.fetch(rows)


@dataclass(frozen=True, eq=False)
class SharFields:
    """The fields of a Shar that are read."""

    lines: FileSource
    """The source of the cuts."""

    readers: tuple[PairReader | LineReader, ...]
    """The reader of each field."""

    def one(self, row: int) -> list[tuple[Any, int | None]]:
        """Return the value of each field in a row, and the hash of the id that it has there."""
        return [reader.one(row) for reader in self.readers]

    def values(self, rows: Int64s) -> Iterable[Sequence[tuple[Any, int | None]]]:
        """Return what `one` does, for each of some rows."""
        if not self.readers:
            return repeat((), rows.size)
        columns = [
            zip(
                reader.values(rows),
                reader.hashes(rows) if isinstance(reader, PairReader) else repeat(None, rows.size),
                strict=True,
            )
            for reader in self.readers
        ]
        return zip(*columns, strict=True)

    def put(self, cut: Any, values: Sequence[tuple[Any, int | None]], row: int) -> Any:
        """Return a cut with the values of its fields, or the `Failed` of what is wrong.

        Args:
            cut: the cut, or a `Failed`.
            values: what `one` returns for the row.
            row: the row of all of them, counted over all files.
        """
        if not values or type(cut) is Failed:
            return cut
        if not isinstance(cut, dict) or not isinstance(cut.get("id"), str):
            return self.failed(self.lines, row, ValueError(f"expected a cut with an id (found {cut!r:.80})"))
        hashed = key_hash(cut["id"])
        for reader, (value, wanted) in zip(self.readers, values, strict=True):
            if wanted is not None and wanted != hashed:
                return self._of_another(reader, cut["id"], row)
            if type(value) is Failed:
                return value
            try:
                if wanted is None:
                    self._put_line(cut, reader.field, value)
                elif value is not None:
                    set_field(cut, reader.field, value)
            except ValueError as error:
                return self.failed(reader.source, row, error)
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

    def _of_another(self, reader: Any, name: str, row: int) -> Failed:
        """Return the failure of a pair of members that are of another cut."""
        of = reader.source.key_at(row)
        (place,) = self.lines.plan(np.array([row], np.int64)).locate()
        what = (
            f"the field {reader.field!r} has a pair of the cut {of!r}, and the cut of this row is {name!r} "
            f"({place.path}: record {place.row} at byte {place.offset}): the files do not belong "
            f"together, or lack a pair"
        )
        return self.failed(reader.source, row, ValueError(what))

    def failed(self, source: Any, row: int, cause: Exception) -> Failed:
        """Return the failure of a record of one source, with its place."""
        (place,) = source.plan(np.array([row], np.int64)).locate()
        error = CorruptRecord(
            place.path, place.row, offset=place.offset, length=place.length, preview=b"", cause=cause
        )
        error.__cause__ = cause
        return Failed(error)
