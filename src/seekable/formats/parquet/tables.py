"""The page tables of one open file: taken from where they are kept, made where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.formats.parquet.kept import as_bytes, from_bytes
from seekable.formats.parquet.walk import Unpaged, page_table

if TYPE_CHECKING:
    from seekable.formats.parquet.layout import Chunk, Leaf
    from seekable.formats.parquet.pages import PageTable
    from seekable.formats.table import PageStore, RangeSource

__all__ = ["PageTables"]


class PageTables:
    """Page tables by chunk; safe from threads."""

    def __init__(
        self, source: RangeSource, footer: bytes, shape: tuple[int, int], store: PageStore | None
    ) -> None:
        """Look at what is kept.

        Args:
            source: the file.
            footer: its footer.
            shape: how many groups it has, and how many leaves.
            store: where tables are kept; None keeps none.
        """
        self._source = source
        self._footer = footer
        self._leaves = shape[1]
        self._chunks = shape[0] * shape[1]
        self._store = store
        kept = store.load() if store is not None else None
        self._tables = (from_bytes(footer, kept) if kept is not None else None) or {}
        self._unpaged: set[int] = set()
        self._saved = len(self._tables)

    def table(self, group: int, chunk: Chunk, leaf: Leaf, rows: int) -> PageTable | None:
        """Return the table of a chunk, None if it can have none.

        Raises:
            BadThrift, OSError, pyarrow.ArrowException: the file is damaged there.
        """
        number = group * self._leaves + leaf.number
        if (known := self._tables.get(number)) is not None or number in self._unpaged:
            return known
        try:
            made = page_table(self._source, chunk, leaf, rows)
        except Unpaged:
            self._unpaged.add(number)
            return None
        self._tables[number] = made
        # Twice as many each time: what is written is then not much more than what there is in the end.
        have = len(self._tables)
        if have >= 2 * self._saved or have == self._chunks:
            self.save()
        return made

    def save(self) -> None:
        """Keep what there is."""
        if self._store is not None:
            self._saved = len(self._tables)
            self._store.save(self.as_bytes())

    def as_bytes(self) -> bytes:
        """Return all that there is."""
        return as_bytes(self._footer, dict(self._tables))
