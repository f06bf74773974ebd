"""Parquet as a format of tables: reads layouts for the index, and opens files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import UnsupportedFormat
from seekable.formats.tables.parquet.footer import read_footer
from seekable.formats.tables.parquet.table import ParquetTable
from seekable.formats.tables.table_format import TableLayout

if TYPE_CHECKING:
    from seekable.formats.tables.table_format import PageStore, RangeSource

__all__ = ["ParquetFormat", "page_tables"]


def page_tables(source: RangeSource, pages: PageStore | None = None) -> bytes:
    """Return the page tables of all columns that can have them, as a `PageStore` keeps them.

    Args:
        source: the file.
        pages: the store that they are saved in, and loaded from as far as it has them.

    Raises:
        UnsupportedFormat: the file cannot be opened.
        CorruptRecord: it is damaged.
        MissingDependency: pyarrow is not installed.
    """
    table = ParquetFormat().open(source, pages)
    table.walk()
    return table.page_tables()


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Parquet files; needs pyarrow.

    Example:
        >>> ParquetFormat().name
        'parquet'
    """

    name: str = "parquet"
    """The name of the format in the index."""

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return a file's groups and columns, from its footer.

        Raises:
            UnsupportedFormat: it is of another format, damaged or encrypted.
            MissingDependency: pyarrow is not installed.
        """
        footer = read_footer(source)
        metadata = footer.metadata
        rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        # Some writers leave the number of rows of the whole file at 0; readers go by the groups.
        if metadata.num_rows not in (0, sum(rows)) or min(rows, default=0) < 0:
            raise UnsupportedFormat(
                f"{source.path}: the footer at byte {footer.start} says {metadata.num_rows} rows, "
                f"and its groups have {sum(rows)}: the file is damaged, write it again"
            )
        return TableLayout(rows, footer.schema.serialize().to_pybytes())

    def open(self, source: RangeSource, pages: PageStore | None) -> ParquetTable:
        """Return an open file.

        Raises:
            UnsupportedFormat: as ``read_layout``.
            MissingDependency: pyarrow is not installed.
        """
        return ParquetTable(source, read_footer(source), pages)
