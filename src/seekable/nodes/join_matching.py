"""The matching of rows for joins: a hash of every key of the right first, then the keys themselves."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xxhash

from seekable.errors import AmbiguousKey, BadKey, KeyNotFound, WrongType
from seekable.index.digest import key_hash
from seekable.nodes.columns.names import must_have
from seekable.nodes.display import describe_place
from seekable.nodes.hole import HOLE
from seekable.nodes.key import is_key
from seekable.nodes.readahead import read_rows
from seekable.parallel.map_ranges import map_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.parallel.map_ranges import ExecutionOptions

    UInt64s = NDArray[np.uint64]

__all__ = ["Duplicates", "How", "Matching", "RightKeys", "right_keys"]

How = Literal["inner", "left"]
Duplicates = Literal["error", "first", "all"]
Key = tuple[str | int, ...]

_AT_ONCE = 4096
"""The number of keys that are looked up together."""


@dataclass(frozen=True, slots=True)
class RightKeys:
    """The keys of the right dataset, sorted by hash."""

    hashes: UInt64s
    """The hash of each key: uint64, ascending."""

    rows: Int64s
    """The row of each key: int64, ascending among equal hashes."""

    columns: tuple[str, ...]
    """All columns of the right's records, in the order of their first appearance."""


def right_keys(
    right: Node, on: tuple[str, ...], size: int, *, using: ExecutionOptions, columns: bool
) -> RightKeys:
    """Read the keys of all records of the right and return them sorted by hash.

    Args:
        right: the right dataset.
        on: the columns of the key.
        size: the number of records of ``right``.
        using: the processes or executor that read the records.
        columns: True to collect the names of all columns too.

    Raises:
        BadKey: a key is neither a str nor an int.
    """
    must_have(right, "join()", on)
    declared = right.declared()
    job = _Hashing(right if columns and declared is None else right.narrowed(frozenset(on)), on)
    hashes, rows, names = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)], dict[str, None]()
    with contextlib.closing(map_ranges(job, size, using=using)) as runs:
        for _, (some_hashes, some_rows, some_names) in runs:
            hashes.append(some_hashes)
            rows.append(some_rows)
            names |= dict.fromkeys(some_names)
    together, of_rows = np.concatenate(hashes), np.concatenate(rows)
    order = np.argsort(together, kind="stable")
    return RightKeys(together[order], of_rows[order], tuple(names if declared is None else declared))


@dataclass(frozen=True, slots=True)
class _Hashing:
    """A picklable job that hashes the keys of a range of rows and leaves out records without a key."""

    dataset: Node
    on: tuple[str, ...]

    def __call__(self, start: int, stop: int) -> tuple[UInt64s, Int64s, tuple[str, ...]]:
        hashes: list[int] = []
        rows: list[int] = []
        names: dict[str, None] = {}
        for first, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for row, record in enumerate(records, start=start + first):
                key = _key(self.dataset, record, self.on, row)
                if record is not HOLE:
                    names.update(dict.fromkeys(record))
                if key is not None:
                    hashes.append(_hash(key))
                    rows.append(row)
        return np.array(hashes, dtype=np.uint64), np.array(rows, dtype=np.int64), tuple(names)


@dataclass(frozen=True, slots=True)
class Matching:
    """A picklable job that finds the pairs for a range of rows of the left.

    A row of the left without a match has -1. Rows of the left ascend, repeated once for each match.
    """

    left: Node
    right: Node
    """The left and right datasets, narrowed to the columns of the key."""

    on: tuple[str, ...]
    keys: RightKeys
    how: How
    duplicates: Duplicates
    must_match: bool

    def __call__(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        """Return the rows of the left and their matches on the right, for rows ``start`` to ``stop``."""
        left: list[int] = []
        right: list[int] = []
        for row, key, rows in self._candidates(start, stop):
            if not rows:
                if self.must_match and key is not HOLE:
                    raise KeyNotFound(self._not_found(row, key))
                if self.how == "left" or key is HOLE:
                    left.append(row)
                    right.append(-1)
                continue
            if len(rows) > 1 and self.duplicates == "error":
                raise AmbiguousKey(self._ambiguous(row, key, rows))
            matched = rows if self.duplicates == "all" else rows[:1]
            left += [row] * len(matched)
            right += matched
        return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    def _candidates(self, start: int, stop: int) -> Iterator[tuple[int, Any, list[int]]]:
        """Yield each row of the left, its key, and the rows of the right that have it.

        The key is None for a record without one, and ``HOLE`` for a hole.
        """
        for at in range(start, stop, _AT_ONCE):
            read = read_rows(self.left, np.arange(at, min(at + _AT_ONCE, stop), dtype=np.int64))
            records = [record for _, some in read for record in some]
            keys = [_key(self.left, record, self.on, row) for row, record in enumerate(records, start=at)]
            hashes = np.array([0 if key is None else _hash(key) for key in keys], dtype=np.uint64)
            lows = np.searchsorted(self.keys.hashes, hashes, side="left").tolist()
            highs = np.searchsorted(self.keys.hashes, hashes, side="right").tolist()
            rows = [
                [] if key is None else self.keys.rows[low:high].tolist()
                for key, low, high in zip(keys, lows, highs, strict=True)
            ]
            found = self._right_keys(sorted({row for some in rows for row in some}))
            for i, (key, some) in enumerate(zip(keys, rows, strict=True)):
                matched = HOLE if records[i] is HOLE else key
                yield at + i, matched, [row for row in some if found[row] == key]

    def _right_keys(self, rows: list[int]) -> dict[int, Key | None]:
        found: dict[int, Key | None] = {}
        for first, records in read_rows(self.right, np.array(rows, dtype=np.int64)):
            for row, record in zip(rows[first : first + len(records)], records, strict=True):
                found[row] = _key(self.right, record, self.on, row)
        return found

    def _not_found(self, row: int, key: Key | None) -> str:
        place = describe_place(self.left, row)
        if key is None:
            return f"{place} has no {self._names}, and join(missing='error') wants a match for each record"
        return f"{place}: no record of the right side has {self._names} {_shown(key)}"

    def _ambiguous(self, row: int, key: Key, rows: Sequence[int]) -> str:
        places = ", ".join(describe_place(self.right, some) for some in rows[:2])
        more = f" and {len(rows) - 2:,} more" if len(rows) > 2 else ""  # noqa: PLR2004 - two were named
        return (
            f"{describe_place(self.left, row)}: {len(rows):,} records of the right side have {self._names} "
            f"{_shown(key)}: {places}{more}. Say duplicates='first' to take the first of them, or 'all' for "
            f"a record with each"
        )

    @property
    def _names(self) -> str:
        return " and ".join(map(repr, self.on))


def _key(dataset: Node, record: Any, on: tuple[str, ...], row: int) -> Key | None:
    """Return the key of a record; None if one of its columns is absent or None."""
    if record is HOLE:
        return None
    if not isinstance(record, dict):
        message = (
            f"{describe_place(dataset, row)}: join() takes records that are dicts "
            f"(got a {type(record).__name__})"
        )
        raise WrongType(message)
    key = []
    for name in on:
        value = record.get(name)
        if value is None:
            return None
        if isinstance(value, np.integer):
            value = int(value)
        if not is_key(value):
            message = (
                f"{describe_place(dataset, row)}: the column {name!r} has {value!r} of type "
                f"{type(value).__name__}, and join() needs a str or an int there: cast it first"
            )
            raise BadKey(message)
        key.append(value)
    return tuple(key)


def _hash(key: Key) -> int:
    if len(key) == 1:
        return key_hash(key[0])
    return xxhash.xxh3_64_intdigest(b"".join(key_hash(part).to_bytes(8, "little") for part in key))


def _shown(key: Key) -> str:
    return " and ".join(map(repr, key))
