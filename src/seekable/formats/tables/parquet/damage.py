"""Damage of a file as an error that names the file, the group, the column and the byte."""

from __future__ import annotations

import binascii
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._optional import optional
from seekable.errors import CorruptRecord, SeekableError
from seekable.formats.tables.parquet.thrift import ThriftError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from seekable.formats.tables.parquet.footer import Footer
    from seekable.formats.tables.parquet.layout import Layout, NamedFields
    from seekable.formats.tables.table_format import RangeSource
else:
    pa = optional("pyarrow", extra="parquet")

__all__ = ["Damage", "damage_errors"]

_PREVIEW_BYTES = 80


def damage_errors() -> tuple[type[Exception], ...]:
    """Return the errors that damaged bytes raise; those of seekable, which may be such, are others."""
    return pa.ArrowException, ThriftError, binascii.Error, OSError, ValueError, MemoryError


@dataclass(frozen=True, slots=True)
class Damage:
    """Names the damage of one file."""

    source: RangeSource
    footer: Footer
    layout: Layout
    fields: NamedFields

    @contextmanager
    def named(self, group: int, row: int, column: str | None) -> Iterator[None]:
        """Raise what damaged bytes raise as a `CorruptRecord`.

        Args:
            group: the group that is read.
            row: the row of it that is wanted.
            column: the column; None for all of them.
        """
        try:
            yield
        except SeekableError:
            raise
        except damage_errors() as error:
            raise self.corrupt(group, row, column, error) from error

    def corrupt(self, group: int, row: int, column: str | None, error: Exception) -> CorruptRecord:
        """Return the error; arguments as of ``named``."""
        start, stop = self.footer.start, self.source.size
        try:
            leaf = self.fields.field(column).leaves[0].number if column is not None else 0
            chunk = self.layout.chunk(group, leaf, start)
            start, stop = chunk.start, chunk.stop
        except (ThriftError, IndexError):
            pass  # then it is the footer that is damaged
        where = f"group {group}" if column is None else f"column {column!r} of group {group}"
        before = (self.footer.metadata.row_group(number).num_rows for number in range(group))
        return CorruptRecord(
            self.source.path,
            sum(before) + row,
            offset=start,
            length=stop - start,
            preview=bytes(self.source.range(start, min(stop, start + _PREVIEW_BYTES))),
            cause=ValueError(f"{where}: {error}"),
        )
