"""Documents in the order of their lengths: the columns that exchange and best fit look documents up in.

They follow from the lengths alone, and are made once for the data. A large corpus is sorted in chunks, in any
number of processes: `length_classes` of each chunk, `merged` and `chunk_starts` of all, then `sorted_chunk`
of each chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

    Numbers = NDArray[np.unsignedinteger[Any]]

__all__ = [
    "COARSE",
    "LengthClasses",
    "LengthOrder",
    "chunk_starts",
    "length_classes",
    "length_order",
    "merged",
    "number_type",
    "offsets_of",
    "sorted_chunk",
]

COARSE = 256
"""The number of documents from one coarse offset to the next."""

_DENSE = 1 << 20
"""Lengths below this are counted in a table with an entry for each length, which is faster than sorting."""

_RADIX = 1 << 16
"""The most classes whose indices are sorted as 16-bit integers, which takes a tenth of the time."""


@dataclass(frozen=True, slots=True, eq=False)
class LengthClasses:
    """The classes of documents of equal length: a row for each length that occurs."""

    lengths: Int64s
    """The length of each class in tokens, ascending."""

    counts: Int64s
    """The number of its documents."""

    starts: Int64s
    """The number of documents that are shorter."""

    @property
    def documents(self) -> int:
        """The number of documents of all classes."""
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        """The number of tokens of all documents."""
        return int((self.lengths * self.counts).sum())

    def facts(self) -> dict[str, int | float | str]:
        """Return the number of classes, and the documents and tokens that have no other of equal length."""
        alone = (self.counts == 1) & (self.lengths > 0)
        unmoved = {"unmoved_documents": int(alone.sum()), "unmoved_tokens": int(self.lengths[alone].sum())}
        return {"classes": self.lengths.size, **unmoved}


@dataclass(frozen=True, slots=True, eq=False)
class LengthOrder:
    """The columns of a corpus of N documents; they may be memory maps.

    Example:
        >>> order = length_order(np.array([3, 5, 2, 3]))
        >>> order.offsets.tolist(), order.by_length.tolist(), order.place.tolist()
        ([0, 3, 8, 10, 13], [2, 0, 3, 1], [1, 3, 0, 2])
    """

    offsets: Int64s
    """The number of tokens before each document, then the number of all tokens: (N + 1,)."""

    by_length: Numbers
    """The documents by length, then by row: (N,), uint32 or uint64."""

    place: Numbers
    """The place of each document in ``by_length``: its inverse."""

    coarse: Int64s
    """Each 256th offset, from the first on: the first steps of a search touch no page of ``offsets``."""

    classes: LengthClasses
    """The classes of equal length; the documents of one are neighbours in ``by_length``."""

    @property
    def documents(self) -> int:
        """The number of documents of an epoch."""
        return self.offsets.size - 1


def length_order(lengths: Int64s) -> LengthOrder:
    """Return the columns of a corpus, made in memory.

    Args:
        lengths: the number of tokens of each document, at least 0.
    """
    offsets = offsets_of(lengths)
    classes = length_classes(lengths)
    by_length, _ = sorted_chunk(lengths, classes, classes.starts)
    place = np.empty_like(by_length)
    place[by_length] = np.arange(by_length.size)
    dtype = number_type(lengths.size)
    return LengthOrder(
        offsets, by_length.astype(dtype), place.astype(dtype), offsets[::COARSE].copy(), classes
    )


def offsets_of(lengths: Int64s) -> Int64s:
    """Return the number of tokens before each document, then the number of all tokens."""
    offsets = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def number_type(documents: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the type of ``by_length`` and ``place``: uint32 for fewer than 2**32 documents, else uint64."""
    return np.dtype(np.uint32) if documents < 1 << 32 else np.dtype(np.uint64)


def length_classes(lengths: Int64s) -> LengthClasses:
    """Return the classes of equal length in a corpus or a chunk.

    Example:
        >>> classes = length_classes(np.array([3, 5, 2, 3]))
        >>> classes.lengths.tolist(), classes.counts.tolist(), classes.starts.tolist()
        ([2, 3, 5], [1, 2, 1], [0, 1, 3])
    """
    if lengths.size and int(lengths.max()) < _DENSE:
        table = np.bincount(lengths)
        distinct = np.flatnonzero(table)
        return _classes(distinct, table[distinct])
    return _classes(*np.unique(lengths, return_counts=True))


def merged(chunks: Iterable[LengthClasses]) -> LengthClasses:
    """Return the classes of a corpus from those of its chunks.

    Example:
        >>> both = merged([length_classes(np.array([3, 5])), length_classes(np.array([5]))])
        >>> both.lengths.tolist(), both.counts.tolist()
        ([3, 5], [1, 2])
    """
    lengths = counts = np.zeros(0, dtype=np.int64)
    for chunk in chunks:
        lengths, at = np.unique(np.concatenate([lengths, chunk.lengths]), return_inverse=True)
        known, counts = counts, np.zeros(lengths.size, dtype=np.int64)
        np.add.at(counts, at, np.concatenate([known, chunk.counts]))
    return _classes(lengths, counts)


def chunk_starts(whole: LengthClasses, chunks: Sequence[LengthClasses]) -> Iterator[Int64s]:
    """Yield for each chunk the first place in ``by_length`` of each of its classes.

    Args:
        whole: the classes of the corpus.
        chunks: the classes of its chunks, in the order of the documents.
    """
    free = whole.starts.copy()
    for chunk in chunks:
        at = np.searchsorted(whole.lengths, chunk.lengths)
        yield free[at]
        free[at] += chunk.counts


def sorted_chunk(lengths: Int64s, classes: LengthClasses, starts: Int64s) -> tuple[Int64s, Int64s]:
    """Sort the documents of a chunk by length.

    Args:
        lengths: the lengths of the chunk's documents.
        classes: their classes.
        starts: the first place in ``by_length`` of the chunk's documents of each class.

    Returns:
        The documents by length, numbered from 0 in the chunk, and the place in ``by_length`` of each of them.
    """
    documents = np.argsort(_ranks(lengths, classes.lengths), kind="stable")
    places = np.arange(lengths.size) + np.repeat(starts - classes.starts, classes.counts)
    return documents, places


def _ranks(lengths: Int64s, distinct: Int64s) -> NDArray[np.integer]:
    """Return the index of each length among the distinct ones, in a type that is sorted fast."""
    dtype = np.uint16 if distinct.size <= _RADIX else np.int64
    if not distinct.size or distinct[-1] >= _DENSE:
        return np.searchsorted(distinct, lengths).astype(dtype)
    table = np.zeros(distinct[-1] + 1, dtype=dtype)
    table[distinct] = np.arange(distinct.size)
    return table[lengths]


def _classes(lengths: Int64s, counts: Int64s) -> LengthClasses:
    return LengthClasses(lengths.astype(np.int64), counts.astype(np.int64), np.cumsum(counts) - counts)
