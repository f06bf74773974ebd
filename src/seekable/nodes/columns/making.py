"""The three ways in which a node over columns makes the records of a batch: one by one, by file, in groups.

A way replaces records of a list in place, and leaves holes as they are. When a record cannot be made, the way
calls ``failed`` with the index of the record and the error, and raises the error unless ``failed`` raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from seekable.errors import WrongType
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seekable.nodes.provenance import Origins

    Record = dict[str, Any]
    Failed = Callable[[int, Exception], None]

__all__ = ["ByFile", "InGroups", "Making", "OneByOne", "checked_record"]


class Making(ABC):
    """Replaces records by the records of one node."""

    @abstractmethod
    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace the records at some indices of a list, except holes.

        Args:
            records: the records of the child.
            at: the indices of the records of this node, ascending.
            origins: returns the file and the row of each record of the list.
            failed: called with the index of a record that cannot be made, and the error.

        Raises:
            WrongType: a record is not a dict, and ``failed`` raised nothing.
        """


@final
@dataclass(frozen=True, slots=True)
class OneByOne(Making):
    """Makes each record from the record alone."""

    make: Callable[[Record], Record]
    """Returns the new record; it does not change the given one."""

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace each record by ``make(record)``."""
        make, i = self.make, -1
        try:
            for i in at:
                record = records[i]
                if type(record) is dict:
                    records[i] = make(record)
                elif record is not HOLE:
                    records[i] = make(checked_record(record))
        except Exception as error:
            failed(i, error)
            raise


@final
@dataclass(frozen=True, slots=True)
class ByFile(Making):
    """Makes each record from the record and its place in its file."""

    make: Callable[[Record, str, str, int], Record]
    """Returns the new record of a record, the path of its file, the file's name below the folder that was
    opened, and the row in the file."""

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace each record by ``make(record, path, name, row)``."""
        places, make, i = origins(), self.make, -1
        files, rows = places.files.tolist(), places.rows.tolist()
        try:
            for i in at:
                record = records[i]
                if record is not HOLE:
                    file = files[i]
                    path, name = places.paths[file], places.names[file]
                    records[i] = make(checked_record(record), path, name, rows[i])
        except Exception as error:
            failed(i, error)
            raise


@final
@dataclass(frozen=True, slots=True)
class InGroups(Making):
    """Makes several records with one call."""

    make: Callable[[list[Record]], list[Record]]
    """Returns the new records of up to ``size`` records, as many as it takes."""

    size: int

    def replace(
        self, records: list[Any], at: Iterable[int], *, origins: Callable[[], Origins], failed: Failed
    ) -> None:
        """Replace the records by those of ``make``; an error of a group counts for its first record."""
        there, i = [i for i in at if records[i] is not HOLE], -1
        try:
            for first in range(0, len(there), self.size):
                group = there[first : first + self.size]
                i = group[0]
                made = self.make([checked_record(records[i]) for i in group])
                for place, record in zip(group, made, strict=True):
                    records[place] = record
        except Exception as error:
            failed(i, error)
            raise


def checked_record(record: object) -> Record:
    """Return a record that is a dict.

    Raises:
        WrongType: the record is of another type.
    """
    if isinstance(record, dict):
        return record
    kind = type(record).__name__
    way = (
        'open them with decode="python" or "numpy"'
        if kind == "RecordBatch"
        else "map the records to dicts first"
    )
    message = f"a record with columns is a dict (got a {kind}): {way}"
    raise WrongType(message)
