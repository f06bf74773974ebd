"""Keys of records: their form, their hash, and the rows of a source that have one.

A key is a str or an int; ``"1"`` and ``1`` are different keys. The index (`seekable.index.keys`) holds
the hash of each key; a look-up reads the records with equal hashes and compares their keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from seekable.errors import WrongType
from seekable.index.keys.key_hash import key_hash
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from seekable.index.keys.hashes import KeyIndex

__all__ = ["SAMPLE_KEY", "KeyOf", "Keys", "KnowsKeys", "asked_key", "entry_key", "is_key", "key_in"]

KeyOf = str | Callable[[Any], Any]
"""The definition of a record's key: the name of a field, or a function of the record."""


SAMPLE_KEY = "__key__"
"""The column with the key of a sample of a tar file."""


class ReadsRecords(Protocol):
    """A source as keys use it."""

    def record(self, position: int) -> Any:
        """Return the record at a position."""


@runtime_checkable
class KnowsKeys(ReadsRecords, Protocol):
    """A source that has the key of a row without its record, which may lack it."""

    def key_at(self, row: int) -> str:
        """Return the key of a row."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a source: their definition and their index."""

    of: KeyOf
    index: KeyIndex

    @property
    def name(self) -> str:
        """The definition of the keys as text: the field, or the name of the function."""
        return repr(self.of) if isinstance(self.of, str) else getattr(self.of, "__qualname__", repr(self.of))

    def matches(self, leaf: ReadsRecords, key: str | int) -> list[tuple[int, Any]]:
        """Return the rows of a source with a key, ascending, each with its record."""
        rows = self.index.rows(key_hash(key))
        if self.of == SAMPLE_KEY and isinstance(leaf, KnowsKeys):
            return [(row, leaf.record(row)) for row in rows if leaf.key_at(row) == key]
        read = [(row, leaf.record(row)) for row in rows]
        return [(row, record) for row, record in read if self._has(record, key)]

    def _has(self, record: Any, key: str | int) -> bool:
        if record is HOLE:
            return False
        try:
            found = key_in(record, self.of)
        except (KeyError, TypeError):
            return False
        return bool(found == key) and isinstance(found, str) == isinstance(key, str)


def entry_key(record: Any) -> Any:
    """Return the key of an entry of Kaldi's tables, the first of the pair that is its record."""
    return record[0]


def key_in(record: Any, of: KeyOf) -> Any:
    """Return the value that a record has as its key, which may be of any type.

    Raises:
        KeyError: the record has no field of this name.
        TypeError: the record is no dict.
    """
    if not isinstance(of, str):
        key = of(record)
        return int(key) if isinstance(key, np.integer) else key
    if not isinstance(record, dict):
        message = f"a {type(record).__name__} has no fields"
        raise TypeError(message)
    return record[of]


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
