"""The protocol of formats of tables for the index: they read the footer of a file, and none of its data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from seekable.storage.ranges import RangeSource

__all__ = ["TableIndexer", "TableLayout", "is_table_indexer"]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The groups and the columns of a table file, as the index keeps them.

    Example:
        >>> layout = TableLayout((2, 0, 3), b"id text")
        >>> layout.starts.tolist(), layout.records
        ([0, 2, 2], 5)
    """

    group_rows: tuple[int, ...]
    """The number of rows of each group, in the order of the file; groups without rows are included."""

    schema: bytes
    """The columns of the file, as the format itself reads them back: at least 1 byte, in few distinct values
    over many files. Of Parquet and Arrow by ``pyarrow.Schema.serialize``, without metadata of the schema."""

    def __post_init__(self) -> None:
        """Check the columns, by which the index knows a table.

        Raises:
            InvalidArgument: there is no byte.
        """
        if not self.schema:
            message = "the schema of a TableLayout must have at least 1 byte (got none)"
            raise InvalidArgument(message)

    @property
    def records(self) -> int:
        """The number of rows of the file."""
        return sum(self.group_rows)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The first row of each group."""
        return np.array([0, *accumulate(self.group_rows)][:-1], np.uint64)


class TableIndexer(Protocol):
    """Finds the groups of rows of a table file: a small value without handles, as a ``Scanner`` is.

    The result is a pure function of the bytes of the file. Only the list of the groups is read, in the footer
    for instance.
    """

    @property
    def name(self) -> str:
        """The name of the format in the index: lower-case letters, digits and ``-``."""

    def read_layout(self, source: RangeSource) -> TableLayout:
        """Return the groups and the columns of a file.

        Raises:
            UnsupportedFormat: the file is of another format, damaged, encrypted, or needs a codec that is not
                installed; the message says what was found, where, and what to do.
            MissingDependency: a package is needed that is not installed.
        """


def is_table_indexer(finder: object) -> TypeIs[TableIndexer]:
    """Return True for a format of tables."""
    return hasattr(finder, "read_layout")
