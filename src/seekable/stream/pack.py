"""Documents packed into sequences of one length."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable.errors import BadToken
from seekable.order.packing import BestFit
from seekable.stream.failures import add_token
from seekable.stream.packing import Document, Layout, Piece
from seekable.stream.rebuild import as_token, rebuilt
from seekable.stream.shapes import OneInput
from seekable.stream.starving import LOOK_EVERY, Hunger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["PackBestFit", "PackConcat"]

_PARTS = 3

Long = Literal["split", "truncate", "drop"]


@dataclass(frozen=True, eq=False, repr=False)
class _Pack(OneInput):
    """What both ways share: a token is the tuple of its pieces, each (token of the document, start, stop)."""

    source: Stream
    layout: Layout
    long: Long

    holds: ClassVar[bool] = True
    splits: ClassVar[bool] = True

    def laid_out(self) -> dict[str, Any]:
        """Return, for the fingerprint, the layout, and what becomes of long documents."""
        layout = self.layout
        return {
            "length": layout.length,
            "key": layout.key,
            "align": list(layout.align),
            "separator": layout.separator,
            "pad": layout.pad,
            "long": self.long,
        }

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the documents of the pieces."""
        if not isinstance(token, tuple) or not token or not all(map(_is_piece, token)):
            message = f"a token of {self!r} is a tuple of (token, start, stop) (got {token!r})"
            raise BadToken(message)
        return [(0, piece[0]) for piece in token]

    def held(self, memory: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
        """Return the document that was begun."""
        return [(0, as_token(memory["document"]))] if "document" in memory else []

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Put the pieces together again."""
        pieces = [
            Piece(origin, self.layout.document(item), start, stop)
            for (origin, start, stop), item in zip(token, items, strict=True)
        ]
        sizes = [piece.size for piece in pieces]
        if any(piece.stop > piece.document.size for piece in pieces) or sum(sizes) > self.layout.length:
            message = f"the documents of token {token!r} do not have these pieces: they are others now"
            raise BadToken(message)
        return self.layout.sequence(pieces)

    def documents(self, flow: Flow) -> Iterator[tuple[Token, Document, int]]:
        """Yield documents, each after its token and with the place to begin at, from the one in hand on."""
        length, layout = self.layout.length, self.layout
        hunger, empty = Hunger(self, flow), 0
        for token, item in itertools.chain(self._begun(flow), flow.inputs[0]):
            try:
                document = layout.document(item)
            except Exception as error:
                add_token(error, self, token)
                raise
            start = flow.memory.pop("start", 0)
            if not document.size or (document.size > length and self.long == "drop"):
                empty += 1
                if not empty % LOOK_EVERY:
                    hunger.look(empty)
                continue
            empty = 0
            if document.size > length and self.long == "truncate":
                document = Document(tuple(array[:length] for array in document.arrays))
            yield token, document, start

    def _begun(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        if "document" in flow.memory:
            token = as_token(flow.memory.pop("document"))
            yield token, rebuilt(self.source, [token])[0]

    def _done(self, pieces: Sequence[Piece]) -> tuple[Token, Any]:
        token = tuple((piece.token, piece.start, piece.stop) for piece in pieces)
        return token, self.layout.sequence(pieces)

    def _hold(self, flow: Flow, token: Token, document: Document, start: int) -> None:
        """Remember what is left of a document that was begun."""
        if start < document.size:
            flow.memory.update(document=token, start=start)

    def _let_go(self, flow: Flow) -> None:
        flow.memory.pop("document", None)
        flow.memory.pop("start", None)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PackConcat(_Pack):
    """All documents of a lane one after another, cut into sequences; only the last of a lane is padded."""

    kind: ClassVar[str] = "pack-concat"

    def arguments(self) -> dict[str, Any]:
        """The layout, and what becomes of long documents."""
        return self.laid_out()

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        return f"{inputs[0]}.pack({self.layout.length}, key={self.layout.key!r})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Cut; between two sequences there is nothing but the rest of one document."""
        pieces: list[Piece] = []
        room = self.layout.length
        for token, document, begun in self.documents(flow):
            start = begun
            while start < document.size:
                stop = min(start + room, document.size)
                pieces.append(Piece(token, document, start, stop))
                room -= stop - start
                start = stop
                if not room:
                    self._hold(flow, token, document, start)
                    yield self._done(pieces)
                    self._let_go(flow)
                    pieces, room = [], self.layout.length
        if pieces:
            yield self._done(pieces)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PackBestFit(_Pack):
    """Documents, or the rests of long ones, put together where they leave the least room."""

    bins: int

    kind: ClassVar[str] = "pack-best-fit"

    def arguments(self) -> dict[str, Any]:
        """The layout, what becomes of long documents, and how many bins are open."""
        return {**self.laid_out(), "bins": self.bins}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        layout = self.layout
        return f"{inputs[0]}.pack({layout.length}, key={layout.key!r}, method='best_fit', bins={self.bins})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Fill bins, and deliver those that are closed."""
        length, buffer = self.layout.length, flow.buffer(self.layout.document)
        bins = self._restored(flow)
        for token, document, begun in self.documents(flow):
            start = begun
            while document.size - start >= length:
                start += length
                self._hold(flow, token, document, start)
                yield self._done([Piece(token, document, start - length, start)])
                self._let_go(flow)
            if start < document.size:
                placed = bins.place(document.size - start)
                buffer.append(token, document, [placed.bin, start, document.size])
                flow.memory["bins"] = bins.next_bin
                if placed.closed is not None:
                    yield self._done(self._taken(flow, placed.closed))
        for number in bins.close():
            yield self._done(self._taken(flow, number))

    def _restored(self, flow: Flow) -> BestFit:
        rooms: dict[int, int] = {}
        for number, start, stop in flow.buffer(self.layout.document).notes:
            rooms[number] = rooms.get(number, self.layout.length) - (stop - start)
        bins = BestFit(self.layout.length, most=self.bins)
        bins.restore(rooms, flow.memory.get("bins", 0))
        return bins

    def _taken(self, flow: Flow, number: int) -> list[Piece]:
        """Take the pieces of a bin out of the buffer."""
        buffer = flow.buffer(self.layout.document)
        places = [at for at, note in enumerate(buffer.notes) if note[0] == number]
        bounds = [buffer.notes[at][1:] for at in places]
        return [
            Piece(token, document, start, stop)
            for (token, document), (start, stop) in zip(buffer.take(places), bounds, strict=True)
        ]


def _is_piece(piece: Any) -> bool:
    if not isinstance(piece, tuple) or len(piece) != _PARTS:
        return False
    start, stop = piece[1:]
    return isinstance(start, int) and isinstance(stop, int) and 0 <= start < stop
