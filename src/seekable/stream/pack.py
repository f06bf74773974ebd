"""Documents packed into sequences of one length."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import BadToken, InvalidArgument, WrongType
from seekable.order.open_bins import OpenBins
from seekable.stream.shapes import OneInput, add_token, rebuilt
from seekable.stream.stall import CHECK_EVERY, StallDetector
from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["Document", "PackBestFit", "PackConcat", "PackOptions", "Piece", "aligned_keys"]

_PIECE = 3
"""The values of a piece in a token: the token of the document, start and stop."""

_COUNT = np.arange(1 << 16, dtype=np.int32)
"""Positions in a segment: longer segments get an array of their own."""


@dataclass(frozen=True, slots=True)
class Document:
    """The arrays of one item: first the document's tokens, then the aligned arrays, all of one length."""

    arrays: tuple[NDArray[Any], ...]

    @property
    def size(self) -> int:
        """The number of tokens, a separator included."""
        return len(self.arrays[0])


@dataclass(frozen=True, slots=True)
class Piece:
    """The tokens ``start <= t < stop`` of a document."""

    token: Token
    """The stream's token of the item that the document comes from."""

    document: Document
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of tokens in the piece."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class PackOptions:
    """The arguments of ``pack()`` that say how documents become sequences."""

    length: int
    key: str | None
    align: tuple[str, ...]
    """The keys of the aligned arrays."""
    ends: tuple[int, ...]
    """The value of each aligned array at a separator."""
    separator: int | None
    pad: int
    long: Literal["split", "truncate", "drop"]
    end: Literal["pad", "drop"]
    """The fate of sequences that are not full when there are no more documents."""

    def described(self) -> dict[str, Any]:
        """Return the options for the fingerprint; some are in it only where they are not the default."""
        described: dict[str, Any] = {
            "length": self.length,
            "key": self.key,
            "align": list(self.align),
            "separator": self.separator,
            "pad": self.pad,
            "long": self.long,
        }
        if any(self.ends):
            described["separator_align"] = list(self.ends)
        if self.end != "pad":
            described["end"] = self.end
        return described

    def document(self, item: Any) -> Document:
        """Return the arrays of an item, with the separator at their end.

        Raises:
            InvalidArgument: the item lacks an array, or the arrays are not flat, not of integers or not of
                one length.
        """
        arrays = [self._array(item, name) for name in (self.key, *self.align)]
        sizes = [len(array) for array in arrays]
        if len(set(sizes)) > 1:
            message = f"aligned arrays must be as long as the tokens (got lengths {sizes} for {self._names})"
            raise InvalidArgument(message)
        if self.separator is not None:
            names = ("separator", *(f"align[{name!r}]" for name in self.align))
            arrays = [
                np.append(array, _fitting(name, end, array.dtype))
                for array, name, end in zip(arrays, names, (self.separator, *self.ends), strict=True)
            ]
        return Document(tuple(arrays))

    def sequence(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return one sequence: a dict of arrays of ``length``, as ``Stream.pack`` documents it."""
        segments = np.zeros(self.length, dtype=np.int32)
        positions = np.zeros(self.length, dtype=np.int32)
        out: list[NDArray[Any]] = []
        for number in range(1 + len(self.align)):
            dtype = _common({piece.document.arrays[number].dtype for piece in pieces})
            fill = 0 if number or sum(piece.size for piece in pieces) == self.length else self.pad
            out.append(np.full(self.length, _fitting("pad", fill, dtype), dtype=dtype))
        at = 0
        for segment, piece in enumerate(pieces, start=1):
            end = at + piece.size
            for target, array in zip(out, piece.document.arrays, strict=True):
                target[at:end] = array[piece.start : piece.stop]
            segments[at:end] = segment
            positions[at:end] = _COUNT[: piece.size] if piece.size <= _COUNT.size else np.arange(piece.size)
            at = end
        aligned = dict(zip(self.align, out[1:], strict=True))
        return {"tokens": out[0], "segment_ids": segments, "positions": positions, **aligned}

    @property
    def _names(self) -> str:
        return ", ".join(["the item itself" if self.key is None else repr(self.key), *map(repr, self.align)])

    def _array(self, item: Any, name: str | None) -> NDArray[Any]:
        try:
            array = np.asarray(item if name is None else item[name])
        except (KeyError, TypeError, IndexError) as error:
            message = f"pack(key={name!r}) needs items with that key (got {item!r:.200})"
            raise InvalidArgument(message) from error
        if array.ndim != 1 or (array.dtype.kind not in "iub" and array.size):
            raise InvalidArgument(
                f"pack() needs a flat array of integers in {self._names} (got {array.dtype} of shape "
                f"{array.shape})"
            )
        return array if array.size else array.astype(np.int64)


def aligned_keys(align: Iterable[str] | Mapping[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the keys of aligned arrays, and the value of each array at a separator.

    Raises:
        WrongType: ``align`` is a str, a key in it is not a str, or a value not an integer.

    Example:
        >>> aligned_keys(["loss_mask"]), aligned_keys({"loss_mask": 1})
        ((('loss_mask',), (0,)), (('loss_mask',), (1,)))
    """
    if isinstance(align, str) or not isinstance(align, Iterable):
        raise WrongType(f"align must be a list of keys, or a dict of keys and integers (got {align!r})")
    values = align if isinstance(align, Mapping) else dict.fromkeys(align, 0)
    if wrong := [key for key in values if not isinstance(key, str)]:
        raise WrongType(f"a key of align must be a str (got {wrong[0]!r})")
    least = np.iinfo(np.int64).min
    return tuple(values), tuple(
        checked_count(f"align[{key!r}]", value, least=least) for key, value in values.items()
    )


def _common(dtypes: set[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the integer type that holds the numbers of all documents of a sequence."""
    if len(dtypes) == 1:
        return dtypes.pop()
    common = np.result_type(*dtypes)
    if common.kind not in "iub":
        raise InvalidArgument(
            f"documents of types {sorted(map(str, dtypes))} have no integer type in common: convert them"
        )
    return common


def _fitting(name: str, value: int, dtype: np.dtype[Any]) -> Any:
    """Return a number in the type of the arrays that it goes into.

    Raises:
        InvalidArgument: the type cannot hold the number.
    """
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not least <= value <= most:
        raise InvalidArgument(
            f"{name}={value} is no {dtype}, which is the type of the arrays that it goes into: give another "
            f"number, or convert the arrays in a map() before"
        )
    return dtype.type(value)


@dataclass(frozen=True, eq=False, repr=False)
class _Pack(OneInput):
    """Base of both methods. A token is the tuple of its pieces, each (the document's token, start, stop)."""

    options: PackOptions

    holds: ClassVar[bool] = True
    splits: ClassVar[bool] = True

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the documents of the pieces.

        Raises:
            BadToken: the token is not a tuple of pieces.
        """
        if not isinstance(token, tuple) or not token or not all(map(_is_piece, token)):
            raise BadToken(f"a token of pack() is a tuple of (token, start, stop) (got {token!r})")
        return [(0, piece[0]) for piece in token]

    @staticmethod
    def held(state: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return the document of which a part was delivered, if there is one."""
        return [(0, as_token(state["document"]))] if "document" in state else []

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the sequence of the pieces.

        Raises:
            BadToken: a document is shorter than its piece says, or the pieces are longer than a sequence.
        """
        pieces = [
            Piece(origin, self.options.document(item), start, stop)
            for (origin, start, stop), item in zip(token, items, strict=True)
        ]
        sizes = [piece.size for piece in pieces]
        if any(piece.stop > piece.document.size for piece in pieces) or sum(sizes) > self.options.length:
            raise BadToken(f"the documents of token {token!r} do not have these pieces: they are others now")
        return self.options.sequence(pieces)

    def documents(self, lane: Lane) -> Iterator[tuple[Token, Document, int]]:
        """Yield the documents to pack: token, document, and the position in it to begin at.

        The first one is the document that the state names, if part of it was delivered.
        """
        options = self.options
        stall, dropped = StallDetector(self, lane), 0
        for token, item in itertools.chain(self._begun(lane), lane.inputs[0]):
            try:
                document = options.document(item)
            except Exception as error:
                add_token(error, self, token)
                raise
            start = lane.state.pop("start", 0)
            if not document.size or (document.size > options.length and options.long == "drop"):
                dropped += 1
                if not dropped % CHECK_EVERY:
                    stall.check(dropped)
                    if stall.over:
                        return
                continue
            dropped = 0
            if document.size > options.length and options.long == "truncate":
                document = Document(tuple(array[: options.length] for array in document.arrays))
            yield token, document, start

    def _begun(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        if "document" in lane.state:
            token = as_token(lane.state.pop("document"))
            yield token, rebuilt(self.inputs[0], [token])[0]

    def _packed(self, pieces: Sequence[Piece]) -> tuple[Token, Any]:
        token = tuple((piece.token, piece.start, piece.stop) for piece in pieces)
        return token, self.options.sequence(pieces)


def _hold(lane: Lane, token: Token, document: Document, start: int) -> None:
    """Put the rest of a document, if there is any, into the state."""
    if start < document.size:
        lane.state.update(document=token, start=start)


def _release(lane: Lane) -> None:
    lane.state.pop("document", None)
    lane.state.pop("start", None)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PackConcat(_Pack):
    """All documents of a lane one after another, cut into sequences; only the last sequence can be short."""

    kind: ClassVar[str] = "pack-concat"

    def arguments(self) -> dict[str, Any]:
        """Return the options for the fingerprint."""
        return self.options.described()

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.pack`` as an expression."""
        return f"{inputs[0]}.pack({self.options.length}, key={self.options.key!r})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Cut documents into sequences; between two sequences the state is the rest of one document."""
        pieces: list[Piece] = []
        free = self.options.length
        for token, document, begun in self.documents(lane):
            start = begun
            while start < document.size:
                stop = min(start + free, document.size)
                pieces.append(Piece(token, document, start, stop))
                free -= stop - start
                start = stop
                if not free:
                    _hold(lane, token, document, start)
                    yield self._packed(pieces)
                    _release(lane)
                    pieces, free = [], self.options.length
        if pieces and self.options.end == "pad":
            yield self._packed(pieces)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PackBestFit(_Pack):
    """Documents, or the rests of long documents, put together where they leave the least space."""

    bins: int
    """The number of sequences of a lane that are open at a time."""

    kind: ClassVar[str] = "pack-best-fit"

    def arguments(self) -> dict[str, Any]:
        """Return the options and the number of open bins."""
        return {**self.options.described(), "bins": self.bins}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.pack`` as an expression."""
        options = self.options
        return f"{inputs[0]}.pack({options.length}, key={options.key!r}, method='best_fit', bins={self.bins})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Fill bins, and deliver the bins that are closed."""
        length, buffer = self.options.length, lane.buffer(self.options.document)
        bins = self._restored(lane)
        for token, document, begun in self.documents(lane):
            start = begun
            while document.size - start >= length:
                start += length
                _hold(lane, token, document, start)
                yield self._packed([Piece(token, document, start - length, start)])
                _release(lane)
            if start < document.size:
                placed = bins.place(document.size - start)
                buffer.append(token, document, [placed.bin, start, document.size])
                lane.state["bins"] = bins.next_bin
                if placed.closed is not None:
                    yield self._packed(self._taken(lane, placed.closed))
        for number in bins.close():
            pieces = self._taken(lane, number)
            if self.options.end == "pad":
                yield self._packed(pieces)

    def _restored(self, lane: Lane) -> OpenBins:
        """Return the open bins, as the notes of the buffer say."""
        free: dict[int, int] = {}
        for number, start, stop in lane.buffer(self.options.document).notes:
            free[number] = free.get(number, self.options.length) - (stop - start)
        bins = OpenBins(self.options.length, most=self.bins)
        bins.restore(free, lane.state.get("bins", 0))
        return bins

    def _taken(self, lane: Lane, number: int) -> list[Piece]:
        """Take the pieces of a bin out of the buffer."""
        buffer = lane.buffer(self.options.document)
        indices = [at for at, note in enumerate(buffer.notes) if note[0] == number]
        bounds = [buffer.notes[at][1:] for at in indices]
        return [
            Piece(token, document, start, stop)
            for (token, document), (start, stop) in zip(buffer.take(indices), bounds, strict=True)
        ]


def _is_piece(piece: Any) -> bool:
    if not isinstance(piece, tuple) or len(piece) != _PIECE:
        return False
    start, stop = piece[1:]
    return isinstance(start, int) and isinstance(stop, int) and 0 <= start < stop
