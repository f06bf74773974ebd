"""The lengths of all records in bytes, from the offsets of the index: means and percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.index.offsets import drop_read_pages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.fileset import FileSet
    from seekable.nodes.files.byte_source import FileSource

__all__ = ["PERCENTILES", "RecordLengths", "bin_of", "bytes_of_records", "least_of", "record_lengths"]

PERCENTILES = (50, 95, 99)

_RECORDS_AT_ONCE = 1 << 18

_EXACT_BITS = 14

_HALF = 1 << (_EXACT_BITS - 1)

_BINS = (64 - _EXACT_BITS + 2) * _HALF


@dataclass(frozen=True, slots=True)
class RecordLengths:
    """The lengths in bytes of at least one record, line ends included."""

    mean: float
    shortest: int
    longest: int

    percentiles: dict[int, int]
    """For each number of PERCENTILES the length that this percentage of records does not exceed; above 16 KiB
    it may be up to 0.01 % too small."""


def record_lengths(files: FileSet) -> RecordLengths | None:
    """Return the lengths of the records of some files in bytes, or None if there is no record.

    Lengths are counted in bins, so that memory does not grow with the number of records.
    """
    counts = np.zeros(_BINS, np.int64)
    records, total, shortest, longest = int(files.starts[-1]), 0, np.iinfo(np.int64).max, 0
    for first in range(0, records, _RECORDS_AT_ONCE):
        rows = np.arange(first, min(first + _RECORDS_AT_ONCE, records))
        numbers = np.searchsorted(files.starts, rows, side="right") - 1
        starts, ends = files.ranges(numbers, rows - files.starts[numbers])
        lengths = (ends - starts).astype(np.int64)
        total += int(lengths.sum())
        shortest = min(shortest, int(lengths.min()))
        longest = max(longest, int(lengths.max()))
        counts += np.bincount(bin_of(lengths), minlength=_BINS)
        drop_read_pages()
    if not records:
        return None
    below = np.cumsum(counts)
    ranks = {percent: -(-records * percent // 100) for percent in PERCENTILES}
    found = {percent: least_of(int(np.searchsorted(below, rank))) for percent, rank in ranks.items()}
    return RecordLengths(
        total / records,
        shortest,
        longest,
        {percent: max(length, shortest) for percent, length in found.items()},
    )


def bytes_of_records(source: FileSource) -> int:
    """Return the bytes from the first record to the end of the last one, over all files of a source."""
    numbers = np.flatnonzero(source.files.records)
    starts, _ = source.files.ranges(numbers, np.zeros_like(numbers))
    _, ends = source.files.ranges(numbers, source.files.records[numbers] - 1)
    return int(ends.astype(np.int64).sum() - starts.astype(np.int64).sum())


def bin_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each length's bin.

    Up to 2**14 a length has a bin of its own; from there on each power of two has 2**13 bins.

    Example:
        >>> bin_of(np.array([0, 1, 16383, 16384, 16385, 16386, 32768])).tolist()
        [0, 1, 16383, 16384, 16384, 16385, 24576]
    """
    # Exact: a float64 holds every integer up to 2**53, and no file is longer.
    _, bits = np.frexp(lengths.astype(np.float64))
    shift = np.maximum(bits.astype(np.int64) - _EXACT_BITS, 0)
    bins: NDArray[np.int64] = shift * _HALF + (lengths >> shift)
    return bins


def least_of(number: int) -> int:
    """Return the least length that is in a bin.

    Example:
        >>> [least_of(number) for number in (16383, 16384, 16385, 24576)]
        [16383, 16384, 16386, 32768]
    """
    shift = max(number // _HALF - 1, 0)
    return (number - shift * _HALF) << shift
