"""The dictionary pages of chunks; those that are used often are kept decompressed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seekable.formats.tables.parquet.encodings import unpacked
from seekable.formats.tables.parquet.pages import leading_header
from seekable.storage.memory import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.formats.tables.parquet.pages import PageHeader

__all__ = ["Dictionary"]

_KEPT: Cache[memoryview] = Cache(attrgetter("nbytes"), most_bytes=64 << 20)
os.register_at_fork(after_in_child=_KEPT.forget)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The dictionary page of one chunk of one open file."""

    key: tuple[int, int]
    """The number of the open file in this process, and the first byte of the page."""

    codec: int
    """The codec, as Parquet numbers it."""

    page: memoryview
    """The page, header and all."""

    def header(self) -> PageHeader:
        """Return the header of the page.

        Raises:
            ThriftError: the page begins with no header.
        """
        return leading_header(self.page)

    def values(
        self, last: int, header: PageHeader, until: Callable[[int, int, memoryview, int], memoryview]
    ) -> memoryview:
        """Return the page's bytes without its header, unpacked; up to a value at least.

        Args:
            last: the number of the value.
            header: the page's header.
            until: unpacks a page as far as a value.

        Raises:
            ThriftError, OSError, pyarrow.ArrowException: the page is damaged.
        """
        if (kept := _KEPT.get(self.key)) is not None:
            return kept
        body = self.page[header.length :]
        if not _KEPT.should_keep(self.key, header.unpacked):
            return until(last, header.values, body, header.unpacked)
        whole = memoryview(unpacked(self.codec, body, header.unpacked)).cast("B")
        _KEPT.put(self.key, whole)
        return whole
