"""Packing by best fit: no document is cut that is not longer than a sample.

A document of l tokens becomes l // C full pieces of C tokens, from its start on, and a rest of l modulo C
tokens. Pieces are put into bins from the longest to the shortest, each into the open bin with the least space
that holds it, and pieces of equal length at once. Bins of equal content are one pattern, so the time depends
on the number of patterns, not of documents.

The contents of the bins, as lengths, follow from how many pieces have each length, and are the same in every
epoch. Each epoch permutes the pieces of equal length, and the bins.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from seekable.order.arrays import numbered
from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute
from seekable.packing.order.concatenation import keys_of_epochs
from seekable.packing.order.sample_pieces import NO_PIECES, Packing, Pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.packing.order.length_order import LengthClasses, LengthOrder

__all__ = ["BestFit", "Long", "best_fit", "best_fit_patterns", "piece_table"]


@dataclass(frozen=True, slots=True, eq=False)
class _Patterns:
    """The contents of bins: the lengths of their pieces, and how many bins have these.

    A pattern is some runs of pieces; the pieces of one run have one length. Lengths descend within a pattern.
    """

    times: Int64s
    """The number of bins of each pattern: (patterns,)."""
    bounds: Int64s
    """For each pattern the index of its first run, then the count of all runs: (patterns + 1,)."""
    lengths: Int64s
    """The length of the pieces of each run: (runs,)."""
    repeats: Int64s
    """The number of pieces of each run, in one bin: (runs,)."""

    @property
    def bins(self) -> int:
        """The number of bins of all patterns."""
        return int(self.times.sum())

    @property
    def members(self) -> int:
        """The number of pieces in one bin of each pattern, added up over the patterns."""
        return int(self.repeats.sum())


def best_fit_patterns(
    lengths: Int64s, counts: Int64s, *, capacity: int, most: int | None = None
) -> _Patterns:
    """Pack pieces of known lengths into bins.

    Args:
        lengths: the distinct lengths of pieces, ascending, from 1 to ``capacity``.
        counts: the number of pieces of each length, at least 1.
        capacity: the number of tokens that a bin holds.
        most: the most pieces of a bin, at least 1; None for no limit.

    Returns:
        The patterns in the order of their bins: those that are full or have ``most`` pieces, in the order in
        which they were closed; then the others, those with the least space first; last, the pieces that fill
        a bin alone.

    Example:
        >>> found = best_fit_patterns(np.array([1, 3, 4]), np.array([2, 5, 2]), capacity=4)
        >>> found.bins, found.times.tolist(), found.lengths.tolist(), found.repeats.tolist()
        (7, [2, 3, 2], [3, 1, 3, 4], [1, 1, 1, 1])
    """
    groups = _Groups(capacity, capacity if most is None else most)
    alone = 0
    for length, count in zip(lengths[::-1].tolist(), counts[::-1].tolist(), strict=True):
        if length == capacity:
            alone = count
        else:
            groups.put(length, count)
    found = list(groups.all())
    if alone:
        found.append(_Group((None, capacity, 1), 1, alone))
    flat = array("q")
    bounds = array("q", [0])
    for group in found:
        for run in group.runs():
            flat.extend(run)
        bounds.append(len(flat) // 2)
    runs = np.array(flat, dtype=np.int64).reshape(-1, 2)
    times = np.array([group.times for group in found], dtype=np.int64)
    return _Patterns(times, np.array(bounds, dtype=np.int64), runs[:, 0].copy(), runs[:, 1].copy())


_Chain = tuple["_Chain | None", int, int]
"""The runs before the last one, and the length and the number of pieces of the last one."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Some bins of equal content."""

    chain: _Chain | None
    pieces: int
    """The number of pieces of each bin."""
    times: int
    """The number of bins."""

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the length and the number of pieces of each run, the longest first."""
        found = []
        chain = self.chain
        while chain:
            chain, length, repeats = chain
            found.append((length, repeats))
        yield from reversed(found)


class _Groups:
    """The groups of bins that are open, by the space that is left in them, and those that are closed."""

    def __init__(self, capacity: int, most: int) -> None:
        self._capacity, self._most = capacity, most
        self._closed: list[_Group] = []
        self._open: dict[int, list[_Group]] = {}
        """The groups with each space; the one that was added last is filled first."""
        self._spaces = 0
        """A set of bits: bit s is set if there is a group with space s."""

    def put(self, length: int, count: int) -> None:
        """Put pieces of one length, less than that of a bin, into bins; no shorter ones were put before."""
        while count:
            space, group = self._taken(length, count)
            each = min(space // length, self._most - group.pieces)
            filled = min(group.times, count // each)
            self._add(space, group, length, each, filled)
            count -= filled * each
            left = group.times - filled
            if count and left:
                # Too few pieces are left for another full share: one bin gets them all.
                self._add(space, group, length, count, 1)
                count, left = 0, left - 1
            if left:
                self._open_up(space, _Group(group.chain, group.pieces, left))

    def all(self) -> Iterator[_Group]:
        """Yield all groups, the closed ones first."""
        yield from self._closed
        for space in sorted(self._open):
            yield from self._open[space]

    def _taken(self, length: int, count: int) -> tuple[int, _Group]:
        """Take out the group with the least space for a piece; or return new bins for all pieces."""
        fitting = self._spaces >> length
        if not fitting:
            each = min(self._capacity // length, self._most)
            return self._capacity, _Group(None, 0, -(-count // each))
        space = length + (fitting & -fitting).bit_length() - 1
        group = self._open[space].pop()
        if not self._open[space]:
            del self._open[space]
            self._spaces ^= 1 << space
        return space, group

    def _add(self, space: int, group: _Group, length: int, each: int, times: int) -> None:
        """Put ``each`` pieces into each of ``times`` bins of a group, which is taken out."""
        if not times:
            return
        filled = _Group((group.chain, length, each), group.pieces + each, times)
        left = space - each * length
        if left and filled.pieces < self._most:
            self._open_up(left, filled)
        else:
            self._closed.append(filled)

    def _open_up(self, space: int, group: _Group) -> None:
        self._open.setdefault(space, []).append(group)
        self._spaces |= 1 << space


Long = Literal["split", "truncate", "drop"]
"""The fate of documents longer than a sample: cut into pieces, cut off after the first piece, left out."""


@dataclass(frozen=True, slots=True, eq=False)
class _PieceTable:
    """The pieces of all documents, numbered by their length, then by document and place in it.

    A row stands for all pieces of one length of documents of one length.
    """

    distinct: Int64s
    """The distinct lengths of pieces, ascending."""
    counts: Int64s
    """The number of pieces of each of these lengths."""
    begins: Int64s
    """The index of the first piece of each of these lengths."""
    firsts: Int64s
    """The index of the first piece of each row."""
    places: Int64s
    """The place in ``by_length`` of the first document of each row."""
    each: Int64s
    """The number of pieces of each document of the row: 1, or all full pieces of a long document."""
    tokens: Int64s
    """The token of its document that the first piece of each begins with."""
    capacity: int

    @property
    def packed(self) -> int:
        """The number of tokens of all pieces."""
        return int((self.distinct * self.counts).sum())

    def classes_of(self, lengths: Int64s) -> tuple[Int64s, Int64s]:
        """Return for each length the first piece of that length, and how many there are."""
        at = np.searchsorted(self.distinct, lengths)
        return self.begins[at], self.counts[at]

    def class_of(self, length: int) -> tuple[int, int]:
        """Return ``classes_of`` of one length, without arrays."""
        at = bisect_left(self.distinct.data, length)
        return int(self.begins[at]), int(self.counts[at])

    def found(self, order: LengthOrder, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return the document of each piece, and the token of it that the piece begins with."""
        row = np.searchsorted(self.firsts, numbers, side="right") - 1
        each = self.each[row]
        document, piece = np.divmod(numbers - self.firsts[row], each)
        documents: Int64s = order.by_length[self.places[row] + document].astype(np.int64)
        return documents, self.tokens[row] + piece * self.capacity

    def found_one(self, order: LengthOrder, number: int) -> tuple[int, int]:
        """Return ``found`` of one piece, without arrays."""
        row = bisect_right(self.firsts.data, number) - 1
        document, piece = divmod(number - int(self.firsts[row]), int(self.each[row]))
        document = int(order.by_length[int(self.places[row]) + document])
        return document, int(self.tokens[row]) + piece * self.capacity

    def pieces_of(self, order: LengthOrder, document: int) -> tuple[Int64s, Int64s]:
        """Return the indices of a document's pieces, and their lengths."""
        place = int(order.place[document])
        first = order.classes.starts[np.searchsorted(order.classes.starts, place, side="right") - 1]
        numbers = [
            self.firsts[row] + (place - first) * self.each[row] + np.arange(self.each[row])
            for row in np.flatnonzero(self.places == first)
        ]
        found = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        return found, self.distinct[np.searchsorted(self.begins, found, side="right") - 1]


def piece_table(classes: LengthClasses, capacity: int, long: Long) -> _PieceTable:
    """Return the pieces of documents, given by their classes of equal length.

    Example:
        >>> from seekable.packing.order.length_order import length_classes
        >>> table = piece_table(length_classes(np.array([3, 9, 3, 7])), 4, "split")
        >>> table.distinct.tolist(), table.counts.tolist()
        ([1, 3, 4], [1, 3, 3])
    """
    lengths, counts = classes.lengths, classes.counts
    full = lengths // capacity
    rest = lengths - full * capacity
    if long != "split":
        too_long = lengths > capacity
        full = np.where(too_long, int(long == "truncate"), full)
        rest = np.where(too_long, 0, rest)
    rests, fulls = np.flatnonzero(rest), np.flatnonzero(full)
    rests = rests[np.argsort(rest[rests], kind="stable")]
    rows = np.concatenate([rests, fulls])
    each = np.concatenate([np.ones_like(rests), full[fulls]])
    pieces = counts[rows] * each
    distinct, at = np.unique(
        np.concatenate([rest[rests], np.full(fulls.size, capacity)]), return_inverse=True
    )
    sizes = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sizes, at, pieces)
    return _PieceTable(
        distinct=distinct,
        counts=sizes,
        begins=np.cumsum(sizes) - sizes,
        firsts=np.cumsum(pieces) - pieces,
        places=classes.starts[rows],
        each=each,
        tokens=np.concatenate([full[rests] * capacity, np.zeros_like(fulls)]),
        capacity=capacity,
    )


_PACK = kind_key("pack")
_LENGTH = kind_key("pack-length")


@final
@dataclass(frozen=True, slots=True, eq=False)
class BestFit(Packing):
    """Bins that hold whole documents, and rests of long ones; `best_fit` makes one.

    Bins are numbered pattern after pattern. The places for pieces of one length are numbered run after run:
    in a run of several pieces a bin, first those of the first piece of each bin, then those of the second.
    """

    order: LengthOrder
    capacity: int
    """The number of tokens of a full sample."""
    seed: int
    long: Long
    table: _PieceTable
    patterns: _Patterns
    bins: Int64s
    """The number of bins before each pattern, then the number of all bins."""
    bases: Int64s
    """The index of the first piece of each run of the patterns."""
    by_base: Int64s
    """The runs of the patterns, in the order of their pieces."""

    @property
    def samples(self) -> int:
        """The number of samples of an epoch: one for each bin."""
        return int(self.bins[-1])

    @property
    def length(self) -> int:
        """The number of tokens of a full sample."""
        return self.capacity

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several samples."""
        if not rows.size:
            return NO_PIECES
        patterns = self.patterns
        bins = permute(rows, self.samples, keys_of_epochs(_PACK, self.seed, epochs))
        pattern = np.searchsorted(self.bins, bins, side="right") - 1
        # First the runs of each sample, then the pieces of each run.
        which, nth = numbered(np.diff(patterns.bounds)[pattern])
        run = patterns.bounds[pattern][which] + nth
        of_run, nth = numbered(patterns.repeats[run])
        sample, run = which[of_run], run[of_run]
        numbers = (
            self.bases[run] + nth * patterns.times[pattern][sample] + (bins - self.bins[pattern])[sample]
        )
        counts = patterns.lengths[run]
        documents, starts = self._moved(numbers, counts, epochs[sample])
        sizes = np.bincount(sample, minlength=rows.size)
        return Pieces(np.append(0, np.cumsum(sizes)), documents, starts, counts)

    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one sample, without arrays."""
        number = permute_one(row, self.samples, derive(_PACK, self.seed, epoch))
        pattern = bisect_right(self.bins.data, number) - 1
        number -= int(self.bins[pattern])
        times = int(self.patterns.times[pattern])
        out = []
        for run in range(int(self.patterns.bounds[pattern]), int(self.patterns.bounds[pattern + 1])):
            count, base = int(self.patterns.lengths[run]), int(self.bases[run])
            for nth in range(int(self.patterns.repeats[run])):
                document, start = self._moved_one(base + nth * times + number, count, epoch)
                out.append((document, start, count, False))
        return out

    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the rows of the samples with tokens of a document, ascending."""
        numbers, counts = self.table.pieces_of(self.order, document)
        if not numbers.size:
            return np.empty(0, dtype=np.int64)
        first, total = self.table.classes_of(counts)
        keys = derive_each(keys_of_epochs(_LENGTH, self.seed, np.array([epoch])), counts.astype(U64))
        numbers = first + unpermute(numbers - first, total, keys)
        run = self.by_base[np.searchsorted(self.bases[self.by_base], numbers, side="right") - 1]
        pattern = np.searchsorted(self.patterns.bounds, run, side="right") - 1
        bins = self.bins[pattern] + (numbers - self.bases[run]) % self.patterns.times[pattern]
        return np.unique(unpermute(bins, self.samples, derive(_PACK, self.seed, epoch)))

    def facts(self) -> dict[str, int | float | str]:
        """Return the padding, the patterns, what is lost of long documents, and what never moves."""
        classes, table = self.order.classes, self.table
        alone = table.counts == 1
        return {
            "documents": self.order.documents,
            "tokens": classes.tokens,
            "samples": self.samples,
            "padding": self.samples * self.capacity - table.packed,
            "long_documents": int(classes.counts[classes.lengths > self.capacity].sum()),
            "lost_tokens": classes.tokens - table.packed,
            "patterns": self.patterns.times.size,
            "classes": table.distinct.size,
            "unmoved_pieces": int(alone.sum()),
            "unmoved_tokens": int(table.distinct[alone].sum()),
        }

    def _moved(self, numbers: Int64s, counts: Int64s, epochs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the documents and first tokens of the pieces that an epoch puts at the places of others."""
        first, total = self.table.classes_of(counts)
        keys = derive_each(keys_of_epochs(_LENGTH, self.seed, epochs), counts.astype(U64))
        return self.table.found(self.order, first + permute(numbers - first, total, keys))

    def _moved_one(self, number: int, count: int, epoch: int) -> tuple[int, int]:
        """Return ``_moved`` of one piece, without arrays."""
        first, total = self.table.class_of(count)
        number = first + permute_one(number - first, total, derive(_LENGTH, self.seed, epoch, count))
        return self.table.found_one(self.order, number)


def best_fit(
    order: LengthOrder, *, capacity: int, seed: int, most: int | None = None, long: Long = "split"
) -> BestFit:
    """Pack documents by best fit.

    Args:
        order: the documents by length.
        capacity: the number of tokens of a full sample, that of the next token included if there is one.
        seed: the seed of the order of pieces and bins.
        most: the most pieces of a sample; None for no limit.
        long: the fate of documents that are longer than ``capacity``.

    Example:
        >>> from seekable.packing.order.length_order import length_order
        >>> packing = best_fit(length_order(np.array([3, 5, 2, 9, 1])), capacity=5, seed=7)
        >>> packing.samples, packing.facts()["padding"], packing.samples_with(3, epoch=0).size
        (4, 0, 2)
    """
    table = piece_table(order.classes, capacity, long)
    patterns = best_fit_patterns(table.distinct, table.counts, capacity=capacity, most=most)
    sizes = np.repeat(patterns.times, np.diff(patterns.bounds)) * patterns.repeats
    by_base = np.argsort(patterns.lengths, kind="stable")
    bases = np.empty_like(sizes)
    bases[by_base] = np.cumsum(sizes[by_base]) - sizes[by_base]
    bins = np.append(0, np.cumsum(patterns.times))
    return BestFit(order, capacity, seed, long, table, patterns, bins, bases, by_base)
