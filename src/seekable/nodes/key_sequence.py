"""The keys of the records of a dataset, one by one, without their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from seekable._arguments import checked_rows
from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import replaced
from seekable.nodes.epoch import Epoch
from seekable.nodes.graph import known_size
from seekable.nodes.key import KeyIn, is_key, itself
from seekable.nodes.key_lookup import lookup_of
from seekable.nodes.map import Map
from seekable.nodes.readahead import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.nodes.key_lookup import Lookup
    from seekable.nodes.node import Node

__all__ = ["KeySequence", "keys_of"]

_PLANNED = 1 << 16


@final
class KeySequence(Sequence[Any]):
    """The key of each record of epoch 0, in their order. Nothing is kept in memory; safe from threads.

    The keys of Kaldi's tables are read without their objects. ``key in keys`` looks into the index of keys.
    """

    def __init__(self, node: Node, keys: Node) -> None:
        """Take a dataset and the same order of keys; callers use `keys_of`.

        Args:
            node: the dataset.
            keys: the same rows, whose records are the keys.
        """
        self._node = node
        self._keys = keys

    def __len__(self) -> int:
        """Return the number of records of an epoch."""
        return known_size(self._node, "keys()")

    def __repr__(self) -> str:
        """Show the number of keys and the dataset."""
        return f"<Keys, {self._node.in_words()}>"

    def __iter__(self) -> Iterator[Any]:
        """Yield the keys of epoch 0."""
        for start in range(0, len(self), _PLANNED):
            rows = np.arange(start, min(start + _PLANNED, len(self)), dtype=np.int64)
            for _, found in read_rows(self._keys, rows):
                yield from found

    @overload
    def __getitem__(self, rows: int) -> Any: ...

    @overload
    def __getitem__(self, rows: slice | Sequence[int] | Int64s) -> list[Any]: ...

    def __getitem__(self, rows: int | slice | Sequence[int] | Int64s) -> Any:
        """Return the key of a row, or a list of the keys of a slice or of a list of rows.

        Raises:
            OutOfRange: there is no such row.
            CorruptRecord: the record has no key.
        """
        if isinstance(rows, slice):
            return self._keys.fetch(np.arange(*rows.indices(len(self)), dtype=np.int64))
        if isinstance(rows, Sequence | np.ndarray):
            return self._keys.fetch(checked_rows(rows, len(self)))
        return self._keys.record(int(checked_rows([rows], len(self))[0]))

    def __contains__(self, key: object) -> bool:
        """Return True if a record has the key.

        Raises:
            CorruptRecord: none has it, and a damaged record may hide it.
        """
        # The record of a key alone is no object, so that damage is found by the records themselves.
        return is_key(key) and (self._lookup.has(key) or self._lookup_of_records.has(key))

    @cached
    def _lookup(self) -> Lookup:
        return lookup_of(self._keys if self._keys.steady else Epoch(self._keys, 0))

    @cached
    def _lookup_of_records(self) -> Lookup:
        return lookup_of(self._node if self._node.steady else Epoch(self._node, 0))


def keys_of(node: Node) -> KeySequence:
    """Return the keys of the records of a dataset.

    Raises:
        InvalidArgument: a source was opened without keys, or records are made of several.
        EndlessDataset: the dataset has no end.
    """
    known_size(node, "keys()")
    keys = replaced(node, _keys_in, past_records=True)
    if keys is None:
        message = f"keys() needs one key a record, and {node!r} makes records of several"
        raise InvalidArgument(message)
    return KeySequence(node, keys)


def _keys_in(node: Node) -> Node | None:
    """Return the keys of the records of a source; None for other nodes."""
    found = node.keys_alone()
    if found is None:
        return None
    source, of = found
    return source if of is itself else Map(source, KeyIn(of), None, "keys")
