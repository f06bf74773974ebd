"""Keys of records: their form, their hash, and the rows of a source that have one.

A key is a str or an int; ``"1"`` and ``1`` are different keys. The index (`seekable.index.key_files`) holds
the hash of each key; a look-up reads the records with equal hashes and compares their keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeGuard, TypeVar, cast, runtime_checkable

import numpy as np

from seekable._typing import Value
from seekable.errors import WrongType
from seekable.index.digest import key_hash
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    from seekable.index.key_files import KeyIndex

__all__ = [
    "SAMPLE_KEY",
    "KeyIn",
    "KeyOf",
    "Keys",
    "asked_key",
    "entry_key",
    "is_key",
    "itself",
    "key_in",
    "source_of_keys",
]

KeyOf = str | Callable[[Any], Any]
"""The definition of a record's key: the name of a field, or a function of the record."""


SAMPLE_KEY = "__key__"
"""The column with the key of a sample of a tar file."""


class _ReadsRecords(Protocol):
    """A source as keys use it."""

    def record(self, position: int) -> Any:
        """Return the record at a position."""


@runtime_checkable
class _KnowsKeys(_ReadsRecords, Protocol):
    """A source that has the key of a row without its record, which may lack it."""

    def key_at(self, row: int) -> str:
        """Return the key of a row."""


@runtime_checkable
class _HasColumns(_ReadsRecords, Protocol):
    """A source whose records may have only some of its columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that the user named; None for all."""

    @property
    def needed(self) -> frozenset[str] | None:
        """The columns that are used above; None for all."""

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer columns to read."""


_Source = TypeVar("_Source", bound=_ReadsRecords)


def source_of_keys(source: _Source, of: KeyOf) -> _Source:
    """Return a source of the same rows whose records have what their key is made of.

    A key that is a field is among the columns, whatever columns the user named; a function gets the columns
    that the user named when the source was opened.
    """
    if not isinstance(source, _HasColumns):
        return source
    columns = source.columns
    if isinstance(of, str) and columns is not None and of not in columns:
        columns = None
    if source.needed is None and columns is source.columns:
        return source
    return cast("_Source", replace(source, columns=columns, needed=None))


class Keys(Value, frozen=True):
    """The keys of a source: their definition and their index."""

    of: KeyOf
    index: KeyIndex

    @property
    def name(self) -> str:
        """The definition of the keys as text: the field, or the name of the function."""
        return repr(self.of) if isinstance(self.of, str) else getattr(self.of, "__qualname__", repr(self.of))

    def matches(self, leaf: _ReadsRecords, key: str | int) -> list[tuple[int, Any]]:
        """Return the rows of a source with a key, ascending, each with its record."""
        rows = self.index.rows(key_hash(key))
        if self.of == SAMPLE_KEY and isinstance(leaf, _KnowsKeys):
            return [(row, leaf.record(row)) for row in rows if leaf.key_at(row) == key]
        source = source_of_keys(leaf, self.of)
        if source is not leaf and isinstance(self.of, str) and isinstance(source, _HasColumns):
            source = source.narrowed(frozenset([self.of]))
        read = [(row, source.record(row)) for row in rows]
        found = [(row, record) for row, record in read if self._has(record, key)]
        return found if source is leaf else [(row, leaf.record(row)) for row, _ in found]

    def check_all_read(self, leaf: _ReadsRecords) -> None:
        """Read a record that has no key, if there is one: a damaged one may hide any key.

        Raises:
            CorruptRecord: it cannot be read, and the source does not leave such records out.
        """
        row = self.index.row_without_key
        if row is not None:
            leaf.record(row)

    def _has(self, record: Any, key: str | int) -> bool:
        if record is HOLE:
            return False
        try:
            found = key_in(record, self.of)
        except (KeyError, TypeError):
            if isinstance(self.of, str):
                return False
            raise
        return bool(found == key) and isinstance(found, str) == isinstance(key, str)


def entry_key(record: Any) -> Any:
    """Return the key of an entry in Kaldi's tables, the first of the pair that is its record."""
    return record[0]


def itself(key: Any) -> Any:
    """Return a record that is a key itself."""
    return key


def key_in(record: Any, of: KeyOf) -> Any:
    """Return the value that a record has as its key, which may be of any type.

    Raises:
        KeyError: the record has no field of this name.
        TypeError: the record is not a dict.
    """
    if not isinstance(of, str):
        key = of(record)
        return int(key) if isinstance(key, np.integer) else key
    if not isinstance(record, dict):
        message = f"a {type(record).__name__} has no fields"
        raise TypeError(message)
    return record[of]


class KeyIn(Value, frozen=True):
    """Returns the key of a record."""

    of: KeyOf

    def __call__(self, record: Any) -> Any:
        """Return the key; the hole itself where a record is left out."""
        return record if record is HOLE else key_in(record, self.of)


def is_key(value: object) -> TypeGuard[str | int]:
    """Return True if a value is a str or an int; a bool is not."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def asked_key(key: object) -> str | int:
    """Return the key of a look-up after a check, as a str or an int.

    Raises:
        WrongType: the key is neither a str nor an int.
    """
    if isinstance(key, np.integer):
        return int(key)
    if not is_key(key):
        message = f"a key is a str or an int, or a list of those (got {key!r} of type {type(key).__name__})"
        raise WrongType(message)
    return key
