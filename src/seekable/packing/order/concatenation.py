"""Documents one after another in the order of an epoch, cut into samples of one length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.order.arrays import united
from seekable.order.keys import U64, derive, derive_each, kind_key
from seekable.order.permutation import permute, permute_one, unpermute
from seekable.packing.order.axis import cut, cut_one, windows_over
from seekable.packing.order.fill_in_middle import SENTINELS, Rearranged
from seekable.packing.order.sample_pieces import LITERAL, NO_PIECES, Packing, Pieces, reordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.packing.order.axis import Axis
    from seekable.packing.order.fill_in_middle import Fim

    Uint64s = NDArray[np.uint64]

__all__ = ["Concatenation", "Filling", "keys_of_epochs"]

_PACK = kind_key("pack")


@dataclass(frozen=True, slots=True, eq=False)
class Filling(ABC):
    """The axis of one epoch or several, and the documents that fill its intervals."""

    axis: Axis
    seed: int

    @abstractmethod
    def begins(self, tokens: Int64s, epochs: Int64s) -> Int64s:
        """Return the place on the axis of each token.

        Args:
            tokens: indices of tokens, counted from the first one of their epoch.
            epochs: the epoch of each, or one epoch for all.
        """

    @abstractmethod
    def begin_one(self, token: int, epoch: int) -> int:
        """Return ``begins`` of one token, without arrays."""

    @abstractmethod
    def documents(self, intervals: Int64s, lengths: Int64s, epochs: Int64s) -> Int64s:
        """Return the documents in intervals.

        Args:
            intervals: indices of intervals.
            lengths: the length in tokens of the document in each.
            epochs: the epoch of each, or one epoch for all.
        """

    @abstractmethod
    def document_one(self, interval: int, length: int, epoch: int) -> int:
        """Return ``documents`` of one interval, without arrays."""

    @abstractmethod
    def interval_of(self, document: int, epoch: int) -> int:
        """Return the interval of a document."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Concatenation(Packing):
    """Base of the methods that concatenate documents.

    Window k of an epoch begins ``k * stride`` tokens after the start of the epoch. The samples are the
    windows, permuted. The tokens after the last window, fewer than ``stride``, are in no sample.
    """

    stride: int
    """The number of tokens from the start of a window to the start of the next one: L."""
    overlap: int = 0
    """The number of tokens that a window shares with the next one: 1 for the next token, else 0."""
    seed: int
    fim: Fim | None = None
    """The rearrangement of documents for fill-in-the-middle; None leaves documents as they are."""

    @property
    @abstractmethod
    def documents(self) -> int:
        """The number of documents of an epoch."""

    @property
    @abstractmethod
    def tokens(self) -> int:
        """The number of tokens of an epoch, sentinels included."""

    @abstractmethod
    def _fillings(self, epochs: Int64s) -> Sequence[tuple[NDArray[Any] | slice, Filling]]:
        """Return the axes of some epochs, each with the indices in ``epochs`` that lie on it."""

    @abstractmethod
    def _filling(self, epoch: int) -> Filling:
        """Return the axis of one epoch."""

    def concat_facts(self) -> dict[str, int | float | str]:
        """Return the documents, tokens and samples of an epoch, and the tokens of its tail."""
        used = self.samples * self.stride + self.overlap * (self.samples > 0)
        sizes = {"documents": self.documents, "tokens": self.tokens, "samples": self.samples}
        if self.fim:
            sizes["sentinels"] = self.fim.marks.sentinels_before(self.documents)
        return {**sizes, "tail": self.tokens - used}

    @property
    def samples(self) -> int:
        """The number of samples of an epoch."""
        return max(0, (self.tokens - self.overlap) // self.stride)

    @property
    def length(self) -> int:
        """The number of tokens of a sample."""
        return self.stride + self.overlap

    def pieces(self, rows: Int64s, epochs: Int64s) -> Pieces:
        """Return the pieces of several samples."""
        if not rows.size:
            return NO_PIECES
        windows = permute(rows, self.samples, keys_of_epochs(_PACK, self.seed, epochs))
        tokens = windows * self.stride
        groups = self._fillings(epochs)
        found = [self._pieces(filling, tokens[where], epochs[where]) for where, filling in groups]
        if len(found) == 1:
            return found[0]
        return reordered(found, np.concatenate([np.arange(rows.size)[where] for where, _ in groups]))

    def pieces_of_one(self, row: int, epoch: int) -> list[tuple[int, int, int, bool]]:
        """Return the pieces of one sample, without arrays."""
        window = permute_one(row, self.samples, derive(_PACK, self.seed, epoch))
        filling = self._filling(epoch)
        begin = filling.begin_one(window * self.stride, epoch)
        out: list[tuple[int, int, int, bool]] = []
        for interval, start, count, width in cut_one(filling.axis, begin, self.length):
            sentinels = self._sentinels_in(interval)
            document = filling.document_one(interval, width - sentinels, epoch)
            if self.fim and sentinels:
                rearranged = Rearranged(self.fim, self.seed)
                out += rearranged.pieces_of_one(document, width - sentinels, epoch, start, count)
            else:
                out.append((document, start, count, False))
        return out

    def samples_with(self, document: int, epoch: int) -> Int64s:
        """Return the rows of the samples with tokens of a document, ascending."""
        filling = self._filling(epoch)
        interval = filling.interval_of(document, epoch)
        edge, stop = filling.axis.edge_one(interval), filling.axis.edge_one(interval + 1)
        spans = self._spans(document, interval, stop - edge, epoch)
        begin = (edge - filling.begin_one(0, epoch)) % self.tokens if stop > edge else 0
        windows = [
            windows_over(low, high, stride=self.stride, length=self.length, windows=self.samples)
            for start, end in spans
            for low, high in self._unturned(begin + start, begin + end)
        ]
        rows = unpermute(np.concatenate(windows), self.samples, derive(_PACK, self.seed, epoch))
        return np.unique(rows)

    def _spans(self, document: int, interval: int, width: int, epoch: int) -> list[tuple[int, int]]:
        """Return the spans of an interval that hold its document, counted from its start."""
        sentinels = self._sentinels_in(interval)
        if not (self.fim and sentinels):
            return [(0, width)]
        segments = Rearranged(self.fim, self.seed).segments_of_one(document, width - sentinels, epoch)
        ends = list(accumulate(count for _, _, count in segments))
        return [
            (end - count, end)
            for (source, _, count), end in zip(segments, ends, strict=True)
            if source != LITERAL
        ]

    def _sentinels_in(self, interval: int) -> int:
        """Return the number of sentinels in an interval."""
        return self.fim.marks.sentinels_in(interval % self.documents) if self.fim else 0

    def _unturned(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return spans within an epoch; tokens from its end on are its first ones again."""
        tokens = self.tokens
        return [(start, min(stop, tokens)), (max(0, start - tokens), stop - tokens)]

    def _pieces(self, filling: Filling, tokens: Int64s, epochs: Int64s) -> Pieces:
        epochs = united(epochs)
        slices = cut(filling.axis, filling.begins(tokens, epochs), self.length)
        if epochs.size > 1:
            epochs = np.repeat(epochs, np.diff(slices.bounds))
        if not self.fim:
            documents = filling.documents(slices.intervals, slices.widths, epochs)
            return Pieces(slices.bounds, documents, slices.starts, slices.counts)
        marked = self.fim.marks.each(slices.intervals % self.documents)
        lengths = slices.widths - marked * SENTINELS
        documents = filling.documents(slices.intervals, lengths, epochs)
        pieces = Pieces(slices.bounds, documents, slices.starts, slices.counts)
        return Rearranged(self.fim, self.seed).pieces(pieces, lengths, marked, epochs)


def keys_of_epochs(kind: int, seed: int, epochs: Int64s) -> Uint64s:
    """Return ``derive(kind, seed, epoch)`` of each epoch; an array of one element if all are equal."""
    return derive_each(np.array([derive(kind, seed)], dtype=np.uint64), united(epochs).astype(U64))
