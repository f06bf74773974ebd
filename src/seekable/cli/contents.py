"""The lengths of records, and the compression of files: for ``seekable info``."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.cli.output import in_words
from seekable.index.digest import digest_number, digest_text, unread_content_digest
from seekable.index.offsets import drop_read_pages
from seekable.storage.compression import compression_of
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import open_points, points_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.fileset import FileSet


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


_KINDS = {"gz": "gzip", "zst": "zstd"}


def unread_files(files: FileSet) -> int:
    """Return the number of files that were never read as a whole: another index had their offsets."""
    return sum(
        entry.content_digest
        == digest_text(
            unread_content_digest(
                head_tail=digest_number(entry.head_tail_digest),
                offsets=digest_number(entry.offsets_digest),
                size=entry.size,
                mtime_ns=mtime_ns,
            )
        )
        for entry, mtime_ns in zip(map(files.entry, range(len(files))), files.mtimes_ns.tolist(), strict=True)
    )


def compression_found(files: FileSet) -> dict[str, Any] | None:
    """Return the number of files, blocks and bytes for each compression; None if all files are plain.

    Returns:
        ``files`` maps ``"gz"``, ``"zst"`` and ``"plain"`` to numbers of files; ``blocks`` is the number of
        seek points, ``content_bytes`` the decompressed size, ``points_bytes`` the size of the seek points.
    """
    kinds: Counter[str] = Counter()
    blocks = content = points_bytes = 0
    folders = itertools.chain.from_iterable(itertools.repeat(run[1], run[2]) for run in files.runs)
    for folder, name, digest in zip(folders, files.names(), files.contents.tolist(), strict=True):
        kind = compression_of(name)
        kinds[kind or "plain"] += 1
        if kind is not None:
            path = os.path.join(folder, points_name(digest))
            points = open_points(path)
            blocks, content = blocks + points.count, content + points.size
            points_bytes += os.path.getsize(path)
    if set(kinds) <= {"plain"}:
        return None
    return {"files": dict(kinds), "blocks": blocks, "content_bytes": content, "points_bytes": points_bytes}


def compression_in_words(found: dict[str, Any]) -> str:
    """Return the result of ``compression_found`` as one line for people."""
    kinds = ", ".join(f"{count:,} {_KINDS.get(kind, kind)}" for kind, count in sorted(found["files"].items()))
    return (
        f"{kinds}; {bytes_in_words(found['content_bytes'])} of content, entered at "
        f"{in_words(found['blocks'], 'point')} ({bytes_in_words(found['points_bytes'])})"
    )
