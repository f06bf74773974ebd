"""The columns of packed samples, made for many samples at once: tokens, labels, masks, segments, positions.

A segment is what attention may stay within: a piece of a document, or all pieces of a rearranged one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._spans import is_spans, spans_in_pieces
from seekable.errors import InvalidArgument
from seekable.packing.nodes.sample_form import LOSS_MASK, OF_SEGMENTS, TOKENS
from seekable.packing.order.sample_pieces import LEFT_OUT, LITERAL, Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.files.leaf import SlicedAxis
    from seekable.nodes.node import Node
    from seekable.packing.document_lengths import Documents
    from seekable.packing.nodes.sample_form import Positions, SampleForm
    from seekable.packing.order.sample_pieces import Packing

    Array = NDArray[Any]
    Copy = Callable[[Mapping[str, Array]], None]
    Beside = Callable[[], Sequence[Mapping[str, Array]]]
    Int32s = NDArray[np.int32]

__all__ = ["PlacedPieces", "SampleMaker", "fitting", "placed", "records_of"]


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPieces:
    """Pieces of some samples with their places in these; a sample has ``width`` places."""

    bounds: Int64s
    """For each sample the index of its first piece, then the count of all pieces."""

    documents: Int64s
    """The row of each piece's document; -1 for a literal token, -2 for a document that is left out."""

    starts: Int64s
    """The first token of each piece in its document; of a literal token its id."""

    counts: Int64s
    """The number of tokens of each piece."""

    joined: NDArray[np.bool_] | None
    """True for each piece that goes on with the segment of the piece before it; None if none does."""

    at: Int64s
    """The place of each piece's first token in its sample."""

    width: int

    @property
    def samples(self) -> int:
        """The number of samples of the batch."""
        return self.bounds.size - 1

    @property
    def used(self) -> Int64s:
        """The number of tokens in each sample."""
        last = self.bounds[1:] - 1
        used: Int64s = self.at[last] + self.counts[last]
        return used

    @property
    def held(self) -> Int64s:
        """The number of tokens in each sample that belong to no document that is left out."""
        there = self.documents != LEFT_OUT
        held: Int64s = np.zeros(self.samples, dtype=np.int64)
        np.add.at(held, self.sample_of[there], self.counts[there])
        return held

    @property
    def sample_of(self) -> Int64s:
        """The sample that each piece is in."""
        return np.repeat(np.arange(self.samples, dtype=np.int64), np.diff(self.bounds))

    def slice(self, start: int, stop: int) -> PlacedPieces:
        """Return the pieces of the samples ``start`` to ``stop``."""
        first, last = int(self.bounds[start]), int(self.bounds[stop])
        return PlacedPieces(
            self.bounds[start : stop + 1] - first,
            self.documents[first:last],
            self.starts[first:last],
            self.counts[first:last],
            None if self.joined is None else self.joined[first:last],
            self.at[first:last],
            self.width,
        )


def placed(pieces: Pieces, width: int) -> PlacedPieces:
    """Return pieces with their places in samples of ``width`` tokens; tokens beyond these are cut off.

    Example:
        >>> from seekable.packing.order.axis import Pieces
        >>> columns = np.array([[0, 1, 2], [5, 0, 0], [3, 2, 4]])
        >>> some = placed(Pieces(np.array([0, 2, 3]), *columns), 4)
        >>> some.at.tolist(), some.counts.tolist()
        ([0, 3, 0], [3, 1, 4])
    """
    ends = np.cumsum(pieces.counts)
    begins = ends - pieces.counts
    bounds, counts = pieces.bounds, pieces.counts
    at = begins - np.repeat(begins[bounds[:-1]], np.diff(bounds))
    whole = PlacedPieces(bounds, pieces.documents, pieces.starts, counts, pieces.joined, at, width)
    return whole if not counts.size or int(whole.used.max()) <= width else _cut(whole, width)


def _cut(pieces: PlacedPieces, width: int) -> PlacedPieces:
    """Return the pieces of the first ``width`` tokens of each sample."""
    kept = pieces.at < width
    counts = np.minimum(pieces.counts, width - pieces.at)[kept]
    bounds = np.concatenate([[0], np.cumsum(kept)])[pieces.bounds]
    joined = None if pieces.joined is None else pieces.joined[kept]
    columns = pieces.documents[kept], pieces.starts[kept], counts, joined, pieces.at[kept]
    return PlacedPieces(bounds, *columns, width)


@dataclass(frozen=True, slots=True, eq=False)
class _Segments:
    """The segments of some samples; the unused places at the end of a sample are a segment with number 0."""

    bounds: Int64s
    """For each sample the index of its first segment, then the count of all segments."""

    numbers: Int32s
    """The number of each segment in its sample, from 1; 0 for unused places."""

    counts: Int64s
    """The number of places of each segment."""

    firsts: Int64s
    """The position of each segment's first token."""

    width: int

    out: NDArray[np.bool_]
    """True for each segment without a number in samples: of unused places, or of a document left out."""

    def ids(self) -> Int32s:
        """Return the segment number at each place: int32, shape (samples, width)."""
        numbers = np.where(self.out, np.int32(0), self.numbers)
        return np.repeat(numbers, self.counts).reshape(-1, self.width)

    def positions(self) -> Int32s:
        """Return the position of the token at each place, 0 at unused ones: int32, (samples, width)."""
        ends = np.cumsum(self.counts)
        begins = ends - self.counts
        # A position is a place in the sample less the place where position 0 of the segment would be.
        out: Int32s = np.repeat((begins % self.width - self.firsts).astype(np.int32), self.counts)
        places = out.reshape(-1, self.width)
        np.subtract(np.arange(self.width, dtype=np.int32), places, out=places)
        unused = np.flatnonzero(self.out)
        for start, stop in zip(begins[unused].tolist(), ends[unused].tolist(), strict=True):
            out[start:stop] = 0
        return places

    def cumulated(self) -> list[Int32s]:
        """Return, for each sample, 0 and then the end of each segment that is used: int32 arrays."""
        used = self.numbers > 0
        ends = np.cumsum(self.counts) % self.width
        ends[ends == 0] = self.width
        sizes = np.add.reduceat(used.astype(np.int64), self.bounds[:-1]) + 1
        edges = np.concatenate([[0], np.cumsum(sizes)])
        out = np.zeros(int(edges[-1]), dtype=np.int32)
        places = np.arange(int(edges[-1]))
        out[np.delete(places, edges[:-1])] = ends[used]
        lows, highs = edges[:-1].tolist(), edges[1:].tolist()
        return [out[low:high] for low, high in zip(lows, highs, strict=True)]

    def longest(self) -> Int64s:
        """Return how many tokens the longest segment in each sample has: int64."""
        longest: Int64s = np.maximum.reduceat(np.where(self.numbers > 0, self.counts, 0), self.bounds[:-1])
        return longest


def _segments_of(pieces: PlacedPieces, positions: Positions) -> _Segments:
    """Return the segments of at least one sample.

    Args:
        pieces: the pieces of the samples.
        positions: ``"piece"`` for positions from 0 in each segment, ``"document"`` for those in documents.
    """
    bounds, counts, firsts = pieces.bounds, pieces.counts, pieces.starts
    out = pieces.documents == LEFT_OUT
    if pieces.joined is not None:
        heads = ~pieces.joined
        heads[bounds[:-1]] = True
        begins = np.flatnonzero(heads)
        counts, firsts, out = np.add.reduceat(counts, begins), firsts[begins], out[begins]
        bounds = np.concatenate([[0], np.cumsum(heads)])[bounds]
    if positions == "piece":
        firsts = np.zeros(counts.size, dtype=np.int64)
    numbers = np.arange(1, counts.size + 1) - np.repeat(bounds[:-1], np.diff(bounds))
    made = _Segments(bounds, numbers.astype(np.int32), counts, firsts, pieces.width, out)
    unused = pieces.width - pieces.used
    return made if not unused.any() else _with_unused(made, unused)


def _with_unused(segments: _Segments, unused: Int64s) -> _Segments:
    """Return segments with one more for each sample of which some places are unused."""
    short = np.flatnonzero(unused)
    at = segments.bounds[1:][short]
    added: Any = np.zeros(segments.bounds.size, dtype=np.int64)
    added[1:][short] = 1
    return _Segments(
        segments.bounds + np.cumsum(added),
        np.insert(segments.numbers, at, 0),
        np.insert(segments.counts, at, unused[short]),
        np.insert(segments.firsts, at, 0),
        segments.width,
        np.insert(segments.out, at, True),
    )


def _sample_arrays(
    pieces: PlacedPieces,
    form: SampleForm,
    columns: Sequence[str],
    copy: Copy,
    beside: Beside,
    dtypes: Mapping[str, np.dtype[Any]],
) -> dict[str, Any]:
    """Return some columns of samples.

    Args:
        pieces: the pieces of one sample or more.
        form: what the columns hold.
        columns: the names of the columns to make, in their order.
        copy: copies the tokens of documents into arrays of shape (samples, width), which it gets by name:
            those of ``form.read_for(columns)``, but for spans.
        beside: returns the spans of the document of each piece that has one, by name.
        dtypes: the type of each of these arrays.

    Returns:
        For each column an array with a first axis of samples, or for ``"cu_seqlens"`` and spans a list of
        arrays.
    """
    out: dict[str, Any] = {}
    if any(name in OF_SEGMENTS for name in columns):
        shown = pieces if form.labels is None else _without_last(pieces)
        segments = _segments_of(shown, form.positions)
        makers: dict[str, Callable[[], Any]] = {
            "segment_ids": segments.ids,
            "positions": segments.positions,
            "cu_seqlens": segments.cumulated,
            "max_seqlen": segments.longest,
        }
        out |= {name: makers[name]() for name in columns if name in makers}
    named = [name for name in columns if name in form.align and is_spans(dtypes[name])]
    if named:
        # With labels the last token is none of the tokens.
        out |= _spans(pieces, named, beside(), pieces.width - (form.labels is not None))
    read = _read(pieces, form, columns, copy, dtypes)
    if form.labels is None:
        out |= read
    else:
        if "labels" in columns:
            out["labels"] = read[TOKENS][:, 1:].copy()
        if LOSS_MASK in columns:
            out[LOSS_MASK] = _loss_mask(pieces, form, read.pop(LOSS_MASK, None))
        out |= {name: np.ascontiguousarray(array[:, :-1]) for name, array in read.items() if name in columns}
    return {name: out[name] for name in columns}


def records_of(arrays: Mapping[str, Any], samples: int) -> list[dict[str, Any]]:
    """Return the records of samples; each owns its arrays.

    Args:
        arrays: what `_sample_arrays` returned.
        samples: the number of samples.
    """
    columns = [
        [int(value) for value in values] if name == "max_seqlen" else [value.copy() for value in values]
        for name, values in arrays.items()
    ]
    names = list(arrays)
    rows = zip(*columns, strict=True) if columns else [()] * samples
    return [dict(zip(names, row, strict=True)) for row in rows]


def fitting(name: str, value: int, dtype: np.dtype[Any]) -> Any:
    """Return a number as a value of a type.

    Raises:
        InvalidArgument: the type cannot hold the number.

    Example:
        >>> fitting("pad", 7, np.dtype(np.uint16)).dtype
        dtype('uint16')
    """
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not least <= value <= most:
        message = (
            f"{name}={value} does not fit {dtype}, the type of the tokens: it holds {least} to {most}. Give "
            f"another number, or write the tokens in a wider type"
        )
        raise InvalidArgument(message)
    return dtype.type(value)


def _read(
    pieces: PlacedPieces,
    form: SampleForm,
    columns: Sequence[str],
    copy: Copy,
    dtypes: Mapping[str, np.dtype[Any]],
) -> dict[str, Array]:
    """Return the tokens and aligned arrays of samples, each of shape (samples, width)."""
    shape = pieces.samples, pieces.width
    is_full = bool((pieces.used == pieces.width).all()) and not (pieces.documents == LEFT_OUT).any()
    out: dict[str, Array] = {}
    for name in form.read_for(columns):
        if is_spans(dtypes[name]):
            continue
        out[name] = np.empty(shape, dtypes[name])
        if not is_full:
            out[name].fill(fitting("pad", form.pad, dtypes[name]) if name == TOKENS else 0)
    if not out:
        return out
    copy(out)
    literal = np.flatnonzero(pieces.documents == LITERAL)
    if literal.size:
        where = pieces.sample_of[literal], pieces.at[literal]
        for name, array in out.items():
            array[where] = pieces.starts[literal] if name == TOKENS else 0
    return out


def _spans(
    pieces: PlacedPieces, names: Sequence[str], beside: Sequence[Mapping[str, Array]], width: int
) -> dict[str, list[Array]]:
    """Return the spans of each sample, counted in its tokens.

    Args:
        pieces: the pieces of the samples.
        names: the names of the spans.
        beside: the spans of the document of each piece that has one.
        width: the number of tokens of a sample.
    """
    stored = np.flatnonzero(pieces.documents >= 0)
    at = pieces.at[stored]
    counts = np.minimum(pieces.counts[stored], np.maximum(width - at, 0))
    sample_of = pieces.sample_of[stored]
    out = {}
    for name in names:
        found, of = spans_in_pieces([each[name] for each in beside], pieces.starts[stored], counts, at)
        edges = np.searchsorted(sample_of[of], np.arange(1, pieces.samples))
        out[name] = np.split(found, edges)
    return out


def _without_last(pieces: PlacedPieces) -> PlacedPieces:
    """Return the pieces without the last token of full samples, which is a label alone."""
    columns = pieces.documents, pieces.starts, pieces.counts, pieces.joined
    return placed(Pieces(pieces.bounds, *columns), pieces.width - 1)


def _loss_mask(pieces: PlacedPieces, form: SampleForm, aligned: Array | None) -> Array:
    """Return 1 for each label that counts in the loss: uint8, shape (samples, width - 1).

    Args:
        pieces: the pieces of the samples, those of the labels too.
        form: the rule between documents.
        aligned: 0 for each token that does not count; None if all do.
    """
    mask = np.ones((pieces.samples, pieces.width - 1), dtype=np.uint8)
    if form.labels == "within":
        heads = pieces.at > 0 if pieces.joined is None else (pieces.at > 0) & ~pieces.joined
        mask[pieces.sample_of[heads], pieces.at[heads] - 1] = 0
    used = pieces.used
    for short in np.flatnonzero(used < pieces.width).tolist():
        mask[short, max(0, int(used[short]) - 1) :] = 0
    for piece in np.flatnonzero(pieces.documents == LEFT_OUT).tolist():
        # The label of the token before the piece is its first token.
        sample = int(np.searchsorted(pieces.bounds, piece, side="right")) - 1
        first, count = int(pieces.at[piece]), int(pieces.counts[piece])
        mask[sample, max(0, first - 1) : first + count] = 0
    if aligned is not None:
        mask &= aligned[:, 1:] != 0
    return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMaker:
    """The parts of a node that a plan of its samples works with."""

    child: Node
    """The documents, with the columns alone that are read."""

    documents: Documents
    packing: Packing
    form: SampleForm
    columns: tuple[str, ...]
    """The columns that are made."""

    width: int
    """The number of tokens that a full sample is made of."""

    is_sliced: bool
    """True if pieces are read from token files without a document between."""

    call: str
    """The method that made the node, for errors."""

    stride: int
    """The number of tokens from one window to the next."""

    axis: SlicedAxis | None
    """The tokens of all documents end to end, where samples are windows of these; else None."""

    beside: Node | None
    """The documents with their spans alone; None where no samples have spans."""

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of the tokens, by the name ``"tokens"``, and of the aligned arrays."""
        return self.documents.dtypes

    @property
    def reads(self) -> tuple[str, ...]:
        """The arrays of documents that are copied: ``"tokens"``, and the names of aligned arrays."""
        return tuple(name for name in self.form.read_for(self.columns) if not is_spans(self.dtypes[name]))

    def key_of(self, name: str) -> str | None:
        """Return the name that an array has in the records of the child; None for the record itself."""
        return self.form.key if name == TOKENS else name

    mark: Callable[[PlacedPieces], PlacedPieces] | None = None
    """Marks the pieces of documents that are left out; None if there are none."""

    def pieces(self, rows: Int64s, epochs: Int64s) -> PlacedPieces:
        """Return the pieces of samples, given by int64 rows and the epoch of each."""
        return self.placed(self.packing.pieces(rows, epochs))

    def placed(self, pieces: Pieces) -> PlacedPieces:
        """Return pieces with their places in samples; those of documents that are left out are marked."""
        found = placed(pieces, self.width)
        return found if self.mark is None else self.mark(found)

    def arrays(self, pieces: PlacedPieces, copy: Copy, beside: Beside) -> dict[str, Any]:
        """Return the columns of one sample or more; see `_sample_arrays`."""
        return _sample_arrays(pieces, self.form, self.columns, copy, beside, self.dtypes)
