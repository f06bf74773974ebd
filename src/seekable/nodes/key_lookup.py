"""The search for the position of a record by its key, through nodes whose rows are equal in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import AmbiguousKey, InvalidArgument, KeyNotFound
from seekable.nodes.bases import leaves_of
from seekable.nodes.display import describe_place
from seekable.nodes.graph import SearchRange, known_size, must_be_steady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.node import Leaf, Node

__all__ = ["Lookup", "lookup_of"]

_MOST_SHOWN = 10


def lookup_of(node: Node) -> Lookup:
    """Return the lookup of a node; it walks the whole graph to find the sources with keys.

    Raises:
        EndlessDataset: the node has no length.
        InvalidArgument: the node is not steady, or none of its sources was opened with keys.
    """
    must_be_steady(node, "key()")
    return Lookup(node, known_size(node, "key()"))


@dataclass(frozen=True, slots=True)
class _Match:
    """A record of a source that has the key."""

    leaf: Leaf
    row: int
    record: Any

    def __str__(self) -> str:
        return describe_place(self.leaf, self.row)


class Lookup:
    """The lookup of records of one dataset by key."""

    def __init__(self, dataset: Node, size: int) -> None:
        """Create the lookup of a steady dataset of ``size`` records.

        Raises:
            InvalidArgument: none of the dataset's sources was opened with keys.
        """
        self._dataset = dataset
        self._within = SearchRange(0, size, range(1))
        self._leaves = leaves_of(dataset)
        self._keyed = [(leaf, leaf.keys) for leaf in self._leaves if leaf.keys is not None]
        if not self._keyed:
            message = (
                "key() needs to know what the key of a record is, and no source of this dataset was opened "
                'with one: sk.open(..., key="id"), or a function of the record'
            )
            raise InvalidArgument(message)

    def has(self, key: str | int) -> bool:
        """Return True if a record has the key, also if several records have it.

        Raises:
            CorruptRecord: none has it, and a damaged record may hide it.
        """
        return any(self._positions(match).size for match in self._matches(key))

    def record(self, key: str | int) -> Any:
        """Return the record with a key.

        Raises:
            KeyNotFound: no record has the key.
            CorruptRecord: no record has the key, and a damaged record may hide it.
            AmbiguousKey: several records have the key.
        """
        matches = self._matches(key)
        if len(matches) == 1 and self._dataset is matches[0].leaf:
            return matches[0].record
        return self._dataset.record(self._position(key, matches))

    def position(self, key: str | int) -> int:
        """Return the first position of the record with a key.

        Raises:
            KeyNotFound: no record has the key.
            CorruptRecord: no record has the key, and a damaged record may hide it.
            AmbiguousKey: several records have the key.
        """
        return self._position(key, self._matches(key))

    def positions(self, key: str | int) -> list[int]:
        """Return the first positions of all records with a key, in ascending order."""
        return sorted({int(at[0]) for match in self._matches(key) if (at := self._positions(match)).size})

    def _position(self, key: str | int, matches: list[_Match]) -> int:
        found = [(int(at[0]), match) for match in matches if (at := self._positions(match)).size]
        if len({position for position, _ in found}) > 1:
            raise AmbiguousKey(_ambiguous(key, [match for _, match in found]))
        if not found:
            raise KeyNotFound(self._not_found(key, matches))
        return found[0][0]

    def _matches(self, key: str | int) -> list[_Match]:
        found = [
            _Match(leaf, row, record if leaf.parts[0] is leaf else leaf.record(row))
            for leaf, keys in self._keyed
            for row, record in keys.matches(leaf.parts[0], key)
        ]
        if not found:
            for leaf, keys in self._keyed:
                keys.check_all_read(leaf.parts[0])
        return found

    def _positions(self, match: _Match) -> Any:
        def rows_of(leaf: Leaf) -> Sequence[int]:
            return [match.row] if leaf is match.leaf else ()

        return self._dataset.find_within(rows_of, self._within)

    def _not_found(self, key: str | int, matches: list[_Match]) -> str:
        if matches:
            return f"the record with the key {key!r}, {matches[0]}, is not among the rows of this dataset"
        count = sum(keys.index.count for _, keys in self._keyed)
        message = f"no record has the key {key!r}; there are {count:,} keys"
        if unread := sum(leaf.size for leaf, _ in self._keyed) - count:
            message += f", and {unread:,} records that were left out, whose keys are not known"
        if others := len(self._leaves) - len(self._keyed):
            message += f", and {others:,} of {len(self._leaves):,} sources were opened without key="
        other: str | int | None = str(key) if isinstance(key, int) else _number(key)
        if other is not None and self._matches(other):
            message += f". One has the key {other!r}: an int and a str are different keys"
        return message


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and str(int(text)) == text else None


def _ambiguous(key: str | int, matches: list[_Match]) -> str:
    shown = ", ".join(str(match) for match in matches[:_MOST_SHOWN])
    rest = f" and {len(matches) - _MOST_SHOWN:,} more" if len(matches) > _MOST_SHOWN else ""
    return (
        f"{len(matches):,} records have the key {key!r}: {shown}{rest}. Ask for the one you mean by its row "
        f"(find(path, row) tells its position), or make the keys unique"
    )
