"""The ranges of bytes that records need, and the units of the cache that hold them, as arrays.

The number of units that a whole epoch touches follows from the touches of a sample of its records: in a
full shuffle one of M nodes has touched ``1 - exp(-x r / M)`` of the units of ``r`` records each, after a
share ``x`` of an epoch. The number of times that a sample touches a unit follows Poisson's law; units that
it does not touch are not seen. From those that are seen the rate follows, and the number of all that can
be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.storage.object_key import UNIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s

__all__ = ["Reads", "UnitAxis", "joined_reads", "touched_units"]

_ROUNDS = 60
"""Rounds after which the rate of touches does not change any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Ranges of bytes in the order of need.

    Example:
        >>> first = Reads(*np.array([[0], [0], [0], [5]]))
        >>> joined_reads([first, Reads(*np.array([[1], [0], [5], [9]]))]).between(1, 2).starts.tolist()
        [5]
    """

    rows: Int64s
    """The number of the record that needs each range, counted in the order of reading; ascending."""
    files: Int64s
    """The number of each range's file."""
    starts: Int64s
    """Its first byte."""
    stops: Int64s
    """The byte after its last."""

    def between(self, first: int, stop: int) -> Reads:
        """Return the ranges of the records ``first`` to ``stop``."""
        here = slice(*np.searchsorted(self.rows, (first, stop)).tolist())
        return Reads(self.rows[here], self.files[here], self.starts[here], self.stops[here])


def joined_reads(parts: Sequence[Reads]) -> Reads:
    """Return the ranges of several reads, one after the other."""
    if not parts:
        return Reads(*np.zeros((4, 0), np.int64))
    columns = zip(*((part.rows, part.files, part.starts, part.stops) for part in parts), strict=True)
    return Reads(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, slots=True, eq=False)
class UnitAxis:
    """The units of all files behind each other, with a gap of one between files.

    Example:
        >>> axis = UnitAxis.of(np.array([600_000, 0, 10]))
        >>> axis.firsts.tolist(), axis.sizes(np.array([0, 2, 5])).tolist()
        ([0, 4, 5], [262144, 75712, 10])
    """

    file_sizes: Int64s
    """The number of bytes of each file."""
    firsts: Int64s
    """The number of the first unit of each file."""
    count: int
    """The number after the last unit."""

    @classmethod
    def of(cls, file_sizes: Int64s) -> UnitAxis:
        """Return the axis of files of these sizes."""
        # The gap keeps units of two files from being neighbours.
        counts = -(-file_sizes // UNIT_BYTES) + 1
        return cls(file_sizes, np.cumsum(counts) - counts, int(counts.sum()))

    def units(self, reads: Reads) -> tuple[Int64s, Int64s]:
        """Return the units of some ranges in the order of need, and the number of the range of each unit."""
        first, last = reads.starts // UNIT_BYTES, (reads.stops - 1) // UNIT_BYTES
        counts = np.where(reads.stops > reads.starts, last - first + 1, 0)
        owner = np.repeat(np.arange(counts.size), counts)
        within = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
        return (self.firsts[reads.files] + first)[owner] + within, owner

    def chunks(self, units: Int64s, rows: Int64s, width: int) -> tuple[Int64s, Int64s]:
        """Return all units of the chunks that some units are in, and the first record that needs each chunk.

        Args:
            units: numbers of units, ascending.
            rows: the first record that needs each of them.
            width: the units of a chunk, which begins at a multiple of them in its file.
        """
        files = self.files(units)
        first = self.firsts[files] + (units - self.firsts[files]) // width * width
        chunks, at = np.unique(first, return_inverse=True)
        needs = np.full(chunks.size, np.iinfo(np.int64).max)
        np.minimum.at(needs, at, rows)
        files = self.files(chunks)
        ends = self.firsts[files] - (-self.file_sizes[files] // UNIT_BYTES)
        counts = np.minimum(width, ends - chunks)
        owner = np.repeat(np.arange(chunks.size), counts)
        within = np.arange(owner.size) - (np.cumsum(counts) - counts)[owner]
        return chunks[owner] + within, needs[owner]

    def files(self, units: Int64s) -> Int64s:
        """Return the number of the file of each unit."""
        return np.searchsorted(self.firsts, units, side="right") - 1

    def sizes(self, units: Int64s) -> Int64s:
        """Return the number of bytes of each unit."""
        files = self.files(units)
        within = units - self.firsts[files]
        return np.minimum(UNIT_BYTES, self.file_sizes[files] - within * UNIT_BYTES)

    def cells(self, units: Int64s, width: int) -> Int64s:
        """Return numbers that are equal for units of one file in one cell of so many units.

        Args:
            units: numbers of units.
            width: the units of a cell, whose edges are at its multiples in each file.
        """
        files = self.files(units)
        # A file starts anew: its cells are numbered from its first unit on, which no other file reaches.
        return self.firsts[files] + (units - self.firsts[files]) // width


def touched_units(seen: int, touches: int, *, share: float, most: int) -> float:
    """Return the expected number of units that all records touch.

    Args:
        seen: the number of units that a sample of the records touches.
        touches: how often it touches them.
        share: the share of the records that are in the sample.
        most: the number of all units.

    Example:
        >>> round(touched_units(1000, 50_000, share=0.1, most=5000))
        1000
        >>> units, mean = 10_000, 0.5  # a tenth of a full shuffle on one node: 5 touches of each unit in all
        >>> seen = round(units * (1 - math.exp(-mean)))
        >>> round(touched_units(seen, round(units * mean), share=0.1, most=units) / units, 2)
        0.99
    """
    if not seen:
        return 0.0
    if touches <= seen:  # No unit was touched twice: each further record touches another one.
        return float(min(seen / share, most))
    mean = touches / seen
    rate = mean
    for _ in range(_ROUNDS):
        rate = mean * -math.expm1(-rate)
    units = min(seen / -math.expm1(-rate), most)
    return min(units * -math.expm1(-rate / share), most)
