"""Keys of records: what they are, and which rows of a source have one.

A key is a str or an int; ``"1"`` and ``1`` are different keys. The index (`seekable.index.keys`) knows the
hash of each; the records that have the hash of a key are read and their real keys are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import xxhash

from seekable.errors import WrongType
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from seekable.index.keys.hashes import KeyIndex

__all__ = ["KeyOf", "Keys", "asked_key", "is_key", "key_hash", "key_in"]

KeyOf = str | Callable[[Any], Any]
"""How a user says what a record's key is: the name of a field, or a function of the record."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a source: how they are made, and where their index is."""

    of: KeyOf
    index: KeyIndex

    @property
    def name(self) -> str:
        """What makes the keys, for people."""
        return repr(self.of) if isinstance(self.of, str) else getattr(self.of, "__qualname__", repr(self.of))

    def matches(self, record: Callable[[int], Any], key: str | int) -> list[tuple[int, Any]]:
        """Return the rows whose records have a key, ascending, and the records, which are read by row."""
        read = [(row, record(row)) for row in self.index.rows(key_hash(key))]
        return [(row, record) for row, record in read if self._has(record, key)]

    def _has(self, record: Any, key: str | int) -> bool:
        if record is HOLE:
            return False
        try:
            found = key_in(record, self.of)
        except (KeyError, TypeError):
            return False
        return bool(found == key) and isinstance(found, str) == isinstance(key, str)


def key_hash(key: str | int) -> int:
    """Return the hash of a key: xxh3_64 of ``s`` and its UTF-8, or of ``i`` and its decimal digits.

    Example:
        >>> key_hash("1") == key_hash(1)
        False
    """
    if not isinstance(key, str):
        return xxhash.xxh3_64_intdigest(b"i%d" % key)
    try:
        return xxhash.xxh3_64_intdigest(f"s{key}".encode())
    except UnicodeEncodeError:
        return xxhash.xxh3_64_intdigest(b"s" + key.encode("utf-8", "surrogatepass"))


def key_in(record: Any, of: KeyOf) -> Any:
    """Return what a record has as its key, which may be no key.

    Raises:
        KeyError: it has no such field.
        TypeError: it has no fields.
    """
    if not isinstance(of, str):
        key = of(record)
        return int(key) if isinstance(key, np.integer) else key
    if not isinstance(record, dict):
        message = f"a {type(record).__name__} has no fields"
        raise TypeError(message)
    return record[of]


def is_key(value: object) -> TypeGuard[str | int]:
    """Tell whether a value can be a key; True and False are no numbers here."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def asked_key(key: object) -> str | int:
    """Return a key that a user asks for.

    Raises:
        WrongType: it is neither a str nor an int.
    """
    if isinstance(key, np.integer):
        return int(key)
    if not is_key(key):
        message = f"a key is a str or an int, or a list of those (got {key!r} of type {type(key).__name__})"
        raise WrongType(message)
    return key
