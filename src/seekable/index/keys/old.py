"""Taking over, from older key indexes, the keys of files that are as they were."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.index.keys.hashes import open_pairs
from seekable.index.keys.keyed import descriptions, read_files, read_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from seekable.index.keys.hashes import KeyIndex
    from seekable.index.keys.keyed import Keyed, KeyedFile

    Int64s = NDArray[np.int64]
    UInt64s = NDArray[np.uint64]
    Bools = NDArray[np.bool_]

__all__ = ["known_hashes"]

_WORD = np.dtype("<u8")
_ROWS_AT_ONCE = 1 << 20


def known_hashes(folders: Iterable[str], keyed: Keyed) -> tuple[UInt64s, Bools, Bools]:
    """Return the hashes of keys that older indexes hold, so that files are not read again.

    Returns:
        The hash of each row, which of the rows have a key, and which of the files are known.
    """
    starts = keyed.starts
    hashes, has_key = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.bool_)
    identities = list(zip(keyed.contents, keyed.records.tolist(), strict=True))
    wanted: dict[tuple[str, int], list[int]] = {}
    for number, identity in enumerate(identities):
        wanted.setdefault(identity, []).append(number)
    known: dict[tuple[str, int], int] = {}
    for files, index in _others(folders, keyed.made):
        shifts = np.full(len(files), -1, np.int64)
        for number, file in enumerate(files):
            identity = file.content, file.records
            if identity in wanted and identity not in known:
                known[identity] = wanted[identity][0]
                shifts[number] = starts[known[identity]]
        if (shifts >= 0).any():
            ends = np.cumsum([file.records for file in files])
            _take_over(index, ends, shifts, hashes=hashes, has_key=has_key)
    for identity, first in known.items():
        own = slice(starts[first], starts[first + 1])
        for number in wanted[identity][1:]:
            copy = slice(starts[number], starts[number + 1])
            hashes[copy], has_key[copy] = hashes[own], has_key[own]
    return hashes, has_key, np.array([identity in known for identity in identities], dtype=np.bool_)


def _others(folders: Iterable[str], made: dict[str, Any]) -> Iterator[tuple[tuple[KeyedFile, ...], KeyIndex]]:
    """Yield the indexes of keys that are made in this way, whatever files they are of."""
    for folder in folders:
        for path in descriptions(folder):
            head = read_head(path)
            if head is None or head.made != made:
                continue
            files, index = read_files(path), open_pairs(os.path.dirname(path), head)
            if files is not None and index is not None:
                yield files, index


def _take_over(index: KeyIndex, ends: Int64s, shifts: Int64s, *, hashes: UInt64s, has_key: Bools) -> None:
    """Put the hashes of an older index where its files' rows are now; of files of shift -1, nowhere."""
    if not index.count:
        return
    pairs = np.memmap(index.path, _WORD, "r", shape=(2, index.count))
    for start in range(0, index.count, _ROWS_AT_ONCE):
        some, rows = (
            pairs[0, start : start + _ROWS_AT_ONCE],
            pairs[1, start : start + _ROWS_AT_ONCE].view("<i8"),
        )
        files = np.searchsorted(ends, rows, side="right")
        before = np.where(files, ends[files - 1], 0)
        wanted = shifts[files] >= 0
        at = (rows - before + shifts[files])[wanted]
        hashes[at], has_key[at] = some[wanted], True
