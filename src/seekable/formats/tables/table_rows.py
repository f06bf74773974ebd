"""Reading of single rows of tables; an error names the row that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadValue, CorruptRecord
from seekable.nodes.columns.decode_column import DECODERS, Unconvertible, cast_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tables.table_files import RowPlaces
    from seekable.formats.tables.table_schema import Columns
    from seekable.nodes.columns.decode_column import DecodedRows, DecodeTable


__all__ = ["RowReader"]


@dataclass(frozen=True, slots=True, eq=False)
class RowReader:
    """Reads rows of one group at a time; an error names the bad row, and the other rows are read."""

    places: RowPlaces
    columns: tuple[Columns, ...]
    """The mapping of a file's columns to the wanted ones, for each schema."""

    schema_of: Int64s
    """The schema of each file."""

    errors: OnError | None
    """Replaces records that cannot be read; None raises the error."""

    def some(self, group: int, rows: Int64s, decode: DecodeTable) -> tuple[Any, Sequence[int] | None]:
        """Return rows of a group, and nothing else of it.

        Args:
            group: the group, counted over all files.
            rows: the rows, counted over all files, ascending; they may repeat.
            decode: the form of records.

        Returns:
            Decoded rows, and which of them are wanted; or a list of records, and None.

        Raises:
            CorruptRecord: the file is damaged at one of the rows.
            BadValue: a value of one of the rows cannot be given as it is wanted.
        """
        distinct, at = np.unique(rows - self.places.blocks.group_starts[group], return_inverse=True)
        try:
            return self._decoded(group, distinct, decode), at.tolist()
        except Unconvertible:
            pass
        except CorruptRecord:
            if self.errors is None:
                raise
        one_by_one = [self._one(group, row, decode) for row in distinct.tolist()]
        return [one_by_one[row] for row in at.tolist()], None

    def one(self, group: int, row: int, decode: DecodeTable) -> Any:
        """Return one record, or what ``errors`` returns instead of it.

        Args:
            group: the group of the row, counted over all files.
            row: counted over all files.
            decode: the form of the record.

        Raises:
            CorruptRecord, BadValue: as ``some``.
        """
        return self._one(group, row - int(self.places.blocks.group_starts[group]), decode)

    def _decoded(self, group: int, rows: Int64s, decode: DecodeTable) -> DecodedRows:
        file, number = self.places.blocks.group_in_file(group)
        columns = self.columns[self.schema_of[file]]
        batch = self.places.open.get(file).rows(number, rows, columns.there)
        return DECODERS[decode](columns.take(batch, cast_column))

    def _one(self, group: int, row: int, decode: DecodeTable) -> Any:
        try:
            return self._decoded(group, np.array([row], dtype=np.int64), decode).records((0,))[0]
        except CorruptRecord as error:
            if self.errors is None:
                raise
            return self.errors(error)
        except Unconvertible as error:
            file = int(self.places.blocks.file_of[group])
            start = int(self.places.blocks.group_starts[group] - self.places.files.starts[file])
            bad = self._bad_value(file, start + row, error)
            if self.errors is None:
                raise bad from error
            return self.errors(self._as_corrupt(group, file, start + row, bad))

    def _as_corrupt(self, group: int, file: int, row: int, bad: BadValue) -> CorruptRecord:
        """Return the error that a function of ``errors`` is called with for a bad value."""
        offset, length = self.places.span(group)
        path = self.places.path(file)
        corrupt = CorruptRecord(path, row, offset=offset, length=length, preview=b"", cause=bad)
        corrupt.__cause__ = bad
        return corrupt

    def _bad_value(self, file: int, row: int, error: Unconvertible) -> BadValue:
        """Return the error for a value of a file that cannot be converted.

        Args:
            file: the number of the file.
            row: the row in the file.
            error: the column, and the reason.
        """
        name, columns = error.column, self.columns[self.schema_of[file]]
        there, wanted = columns.file.field(name).type, columns.wanted.field(name).type
        where = f"{self.places.path(file)}: row {row}, column {name!r}"
        if not error.other:
            return BadValue(
                f"{where}: Python has no value for this {there}: {error}. Open the files with "
                f'decode="arrow" to get it as Arrow has it, or leave the column out with columns='
            )
        kinds = {
            number: each.file.field(name).type
            for number, each in enumerate(self.columns)
            if name in each.there and each.file.field(name).type != there
        }
        other = min(kinds, key=lambda number: (kinds[number] != wanted, number))
        path = self.places.path(int(np.flatnonzero(self.schema_of == other)[0]))
        return BadValue(
            f"{where}: the type is {there} here and {kinds[other]} in {path}, and this value does not fit "
            f"{wanted}, the type for both: {error}. Open the files apart, and cast the column of one: "
            f"sk.concat([a, b.cast({{{name!r}: ...}})])"
        )
