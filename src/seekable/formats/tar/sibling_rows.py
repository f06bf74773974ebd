"""The rows of sibling archives that go together: those of equal keys, shard by shard, by the index alone.

Shard ``n`` of one side goes with shard ``n`` of every other. Where the keys of a shard are the same in the
same order on all sides, row ``r`` goes with row ``r``; else rows are matched by key, in the order of the
first side, and rows of other sides that it lacks come behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import UnsupportedFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tar.sample_source import SampleSource

    UInt64s = NDArray[np.uint64]

__all__ = ["SiblingRows", "matched_rows"]

_WAY_OUT = "sk.join(sk.open(...), sk.open(...), on='__key__') matches samples by key between any shards"


@dataclass(frozen=True, slots=True, eq=False)
class SiblingRows:
    """The rows of all sides that make each record."""

    counts: Int64s
    """The number of records of each shard: int64."""

    of_side: tuple[Int64s, ...] | None
    """For each side the row of each record, -1 where it lacks the record; None if row ``r`` is row ``r`` of
    every side."""


def matched_rows(sides: Sequence[SampleSource], names: Sequence[str], *, fills: bool) -> SiblingRows:
    """Return the rows that go together; no data file is read, but for the keys that an error names.

    Args:
        sides: the archives.
        names: the name of each side, for messages.
        fills: True if a side may lack a record.

    Raises:
        UnsupportedFormat: the numbers of shards differ, a side lacks a record, or a shard whose rows are
            matched by key has a key twice.
    """
    _check_shards(sides, names)
    first, others = sides[0], sides[1:]
    if all(np.array_equal(side.files.records, first.files.records) for side in others) and all(
        np.array_equal(side.words.key_hashes_of(shard), first.words.key_hashes_of(shard))
        for shard in range(len(first.files))
        for side in others
    ):
        return SiblingRows(first.files.records, None)
    found: list[list[Int64s]] = [[np.empty(0, np.int64)] for _ in sides]
    counts = np.zeros(len(first.files), np.int64)
    for shard in range(len(first.files)):
        matched = _matched_in_shard(sides, names, shard, fills=fills)
        counts[shard] = len(matched[0])
        for side, rows, all_rows in zip(sides, matched, found, strict=True):
            all_rows.append(np.where(rows < 0, rows, rows + int(side.files.starts[shard])))
    return SiblingRows(counts, tuple(np.concatenate(rows) for rows in found))


def _check_shards(sides: Sequence[SampleSource], names: Sequence[str]) -> None:
    shards = [len(side.files) for side in sides]
    if len(set(shards)) > 1:
        counts = ", ".join(f"{name!r} has {count:,}" for name, count in zip(names, shards, strict=True))
        message = (
            f"sibling archives go together shard by shard, and their numbers of shards differ: {counts}. "
            f"{_WAY_OUT}"
        )
        raise UnsupportedFormat(message)


def _matched_in_shard(
    sides: Sequence[SampleSource], names: Sequence[str], shard: int, *, fills: bool
) -> list[Int64s]:
    """Return the rows of one shard for each side, counted in the shard; -1 where a side lacks a record."""
    hashes = [side.words.key_hashes_of(shard) for side in sides]
    if all(np.array_equal(each, hashes[0]) for each in hashes[1:]):
        return [np.arange(len(hashes[0]), dtype=np.int64)] * len(sides)
    for number, each in enumerate(hashes):
        _check_unique(sides[number], names[number], shard, each)
    together = hashes[0]
    for each in hashes[1:]:
        together = np.concatenate([together, each[~np.isin(each, together, kind="sort")]])
    matched = [_rows_of(together, each) for each in hashes]
    for number, rows in enumerate(matched):
        if not fills and (rows < 0).any():
            raise UnsupportedFormat(_lacking(sides, names, shard, matched, number))
    return matched


def _check_unique(side: SampleSource, name: str, shard: int, hashes: UInt64s) -> None:
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not again.size:
        return
    rows = sorted(order[again[0] : again[0] + 2].tolist())
    key = side.key_at(int(side.files.starts[shard]) + rows[0])
    message = (
        f"{side.files.shown_path(shard)} ({name!r}): rows {rows[0]} and {rows[1]} have the key {key!r}. The "
        f"archives have other keys in this shard, or another order of them, so that samples are matched by "
        f"key: make the keys unique, or write the samples of all archives in one order"
    )
    raise UnsupportedFormat(message)


def _rows_of(wanted: UInt64s, hashes: UInt64s) -> Int64s:
    """Return the row of each wanted hash, -1 where there is none."""
    if not hashes.size:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    places = np.minimum(np.searchsorted(hashes[order], wanted), len(hashes) - 1)
    return np.where(hashes[order[places]] == wanted, order[places], -1)


def _lacking(
    sides: Sequence[SampleSource], names: Sequence[str], shard: int, matched: Sequence[Int64s], number: int
) -> str:
    """Return the message for a side that lacks records of a shard."""
    lacks = np.flatnonzero(matched[number] < 0)
    other = next(at for at, rows in enumerate(matched) if rows[lacks[0]] >= 0)
    row = int(matched[other][lacks[0]])
    key = sides[other].key_at(int(sides[other].files.starts[shard]) + row)
    return (
        f"{sides[number].files.shown_path(shard)} ({names[number]!r}) lacks {len(lacks):,} "
        f"sample{'s' * (len(lacks) != 1)} of {sides[other].files.shown_path(shard)} ({names[other]!r}); the "
        f"first is row {row}, key {key!r}. sk.formats.Tar(missing='none') delivers None for the fields of a "
        f"sample that is missing; {_WAY_OUT}"
    )
