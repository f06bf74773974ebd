"""What a format of tables must provide to be indexed: a look at each file's footer, and none at its data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xxhash

from seekable.errors import IndexStale

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

    from seekable.index.scanner import Scanner
    from seekable.storage.source import RangeSource

__all__ = ["Surveyor", "TableSurvey", "is_surveyor", "read_schema", "schema_digest", "schema_name"]


@dataclass(frozen=True, slots=True)
class TableSurvey:
    """What the index keeps of a file of a table format.

    Example:
        >>> survey = TableSurvey((2, 0, 3), b"")
        >>> survey.starts.tolist(), survey.records
        ([0, 2, 2], 5)
    """

    group_rows: tuple[int, ...]
    """How many rows each group has, in their order; groups without rows are among them."""

    schema: bytes
    """Its columns, as ``pyarrow.Schema.serialize`` has them, without metadata of the whole schema."""

    @property
    def records(self) -> int:
        """How many rows it has."""
        return sum(self.group_rows)

    @property
    def starts(self) -> NDArray[np.uint64]:
        """The first row of each group."""
        return np.array([0, *accumulate(self.group_rows)][:-1], np.uint64)


class Surveyor(Protocol):
    """Finds the groups of rows of a file: a small value without handles, as a ``Scanner`` is.

    What it finds is a pure function of the file's bytes. It reads the footer, or whatever tells of groups,
    and nothing of the data.
    """

    @property
    def name(self) -> str:
        """What the index calls the format: lower-case letters, digits and ``-``."""

    def survey(self, source: RangeSource) -> TableSurvey:
        """Look at a file.

        Raises:
            UnsupportedFormat: it is of another format, damaged, encrypted, or needs what is not there; the
                message says what was found, where, and what to do.
            MissingDependency: a package is needed.
        """


def is_surveyor(finder: Scanner | Surveyor) -> TypeIs[Surveyor]:
    """Tell whether a format is one of tables."""
    return hasattr(finder, "survey")


def schema_digest(schema: bytes) -> int:
    """Return the digest that a table's schema is known by; 0 is that of no table."""
    return xxhash.xxh3_64_intdigest(schema) or 1


def schema_name(digest: int) -> str:
    """Return what the file of a schema is called in the index folder."""
    return f"schema-{digest:016x}.bin"


def read_schema(folder: str, digest: int) -> bytes:
    """Return a schema that an index folder has.

    Raises:
        IndexStale: it is gone, or not what was written.
    """
    path = os.path.join(folder, schema_name(digest))
    try:
        with open(path, "rb") as file:
            schema = file.read()
    except FileNotFoundError:
        schema = b""
    if schema_digest(schema) != digest:
        message = (
            f"{path!r}, the schema of a table, is gone or damaged: remove it, and open the dataset again"
        )
        raise IndexStale(message)
    return schema
