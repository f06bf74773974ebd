"""Packing by best fit: no document is cut that is not longer than a sample.

The contents of the bins, as lengths, follow from how many pieces have each length, and are the same in every
epoch. Each epoch permutes the pieces of equal length, and the bins.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.order.arrays import numbered
from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute
from seekable.packing.order.concat import keys_of_epochs
from seekable.packing.order.patterns import best_fit_patterns
from seekable.packing.order.piece_table import piece_table
from seekable.packing.order.pieces import NO_PIECES, Packing, Pieces

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.packing.order.length_order import LengthOrder
    from seekable.packing.order.patterns import Patterns
    from seekable.packing.order.piece_table import Long, PieceTable

__all__ = ["BestFit", "best_fit"]

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
    table: PieceTable
    patterns: Patterns
    bins: Int64s
    """The number of bins before each pattern, then the number of all bins."""
    bases: Int64s
    """The number of the first piece of each run of the patterns."""
    by_base: Int64s
    """The runs of the patterns, by the numbers of their pieces."""

    @property
    def samples(self) -> int:
        """The number of samples of an epoch: one for each bin."""
        return int(self.bins[-1])

    @property
    def length(self) -> int:
        """The number of tokens of a full sample."""
        return self.capacity

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several samples, as the contract says."""
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
        """Return the pieces of one sample, as the contract says."""
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
