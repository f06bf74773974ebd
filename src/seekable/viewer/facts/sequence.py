"""One packed sample: its tokens, the pieces of documents that fill it, its loss mask and its padding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.node import OrderNode
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_form import LOSS_MASK, TOKENS
from seekable.packing.order.pieces import LITERAL
from seekable.viewer.facts.documents import place_as_json
from seekable.viewer.facts.made_of import COMPUTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class SequencePiece:
    """Tokens of a document that stand together in a sample, or one literal token."""

    at: int
    """The place of its first token in the sample."""

    count: int
    """The number of its tokens."""

    document: int | None
    """The row of the document in the packed data; None for a literal token, and in a sample that is known by
    its record alone."""

    start: int
    """Its first token in the document."""

    document_tokens: int
    """The number of tokens of the whole document; those of the piece where the document is None."""

    place: Any
    """The location of the document; None where the document is None."""

    as_label: int
    """1 if one more token of the document ends the sample, as a label alone; else 0."""

    is_joined: bool
    """True if it goes on with the segment of the piece before it, so that attention passes the border."""

    @property
    def is_whole(self) -> bool:
        """True if all of its document is in the sample."""
        return self.count + self.as_label == self.document_tokens

    def document_form(self) -> dict[str, Any]:
        """Return the piece as a JSON-safe dict."""
        return {
            "at": self.at,
            "count": self.count,
            "document": self.document,
            "start": self.start,
            "stop": self.start + self.count,
            "document_tokens": self.document_tokens,
            "as_label": self.as_label,
            "joined": self.is_joined,
            "location": None if self.place is None else place_as_json(self.place),
        }


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """A packed sample as the run gets it."""

    tokens: NDArray[np.integer[Any]]
    """The ids, padding included."""

    pieces: tuple[SequencePiece, ...]
    """What fills the first ``used`` places, in their order."""

    used: int
    """The number of places that do not pad the sample."""

    mask: NDArray[np.bool_] | None
    """False for each place that does not count in the loss; None where the run has no mask."""

    is_of_labels: bool
    """True if the mask is of labels: its place ``i`` is about the token after place ``i``."""

    made_of: str = COMPUTED

    @property
    def padding(self) -> int:
        """The number of places that pad the sample."""
        return self.tokens.size - self.used

    @property
    def in_loss(self) -> int | None:
        """The number of places that count in the loss; None without a mask."""
        return None if self.mask is None else int(self.mask.sum())

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "length": int(self.tokens.size),
            "used": self.used,
            "padding": self.padding,
            "in_loss": self.in_loss,
            "mask_of": None if self.mask is None else "labels" if self.is_of_labels else "tokens",
            "tokens": self.tokens.tolist(),
            "loss_mask": None if self.mask is None else self.mask.astype(int).tolist(),
            "pieces": [piece.document_form() for piece in self.pieces],
        }


def packed_node_at(node: Node, position: int) -> tuple[PackedNode, int] | None:
    """Return the packing that makes the sample at a position, and its position there; None if none does.

    Example:
        >>> import seekable as sk
        >>> packed_node_at(sk.from_sequence("abc").shuffle(seed=1).node, 0) is None
        True
    """
    while not isinstance(node, PackedNode):
        if isinstance(node, OrderNode):
            slots, below = type(node).router([node]).route(_ONE, np.array([position], dtype=np.int64))
            node, position = node.children[int(slots[0])], int(below[0])
        elif isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode):
            node = node.children[0]
        else:
            return None
    return node, position


def packed_sequence(node: PackedNode, position: int) -> PackedSequence:
    """Return the sample at a position of a packing; its documents are read, and no function is called.

    Args:
        node: the packing.
        position: from 0 on, of any epoch.

    Raises:
        CorruptRecord: a document cannot be read.
    """
    form = node.form
    has_mask = form.labels is not None or LOSS_MASK in form.align
    columns = (TOKENS, LOSS_MASK) if has_mask else (TOKENS,)
    record = replace(node, form=replace(form, columns=columns), only=None).record(position)
    tokens: Int64s = record[TOKENS]
    epoch, row = divmod(position, node.size)
    placed = node.maker.pieces(np.array([row]), np.array([epoch]))
    stored = placed.documents[placed.documents != LITERAL]
    places = iter(node.child.plan(stored).locate())
    joined = np.zeros(placed.at.size, np.bool_) if placed.joined is None else placed.joined
    # Of many documents the offsets are memory-mapped, and the lengths are not.
    offsets = node.documents.offsets
    pieces = []
    columns_of = (placed.at, placed.counts, placed.documents, placed.starts, joined)
    for at, count, document, start, is_joined in zip(*(each.tolist() for each in columns_of), strict=True):
        # The last token of a full sample with labels is a label alone.
        shown = min(count, tokens.size - at)
        if document == LITERAL:
            piece = SequencePiece(at, shown, None, 0, 1, None, count - shown, is_joined)
        else:
            size = int(offsets[document + 1] - offsets[document])
            piece = SequencePiece(at, shown, document, start, size, next(places), count - shown, is_joined)
        if shown:
            pieces.append(piece)
    used = pieces[-1].at + pieces[-1].count if pieces else 0
    mask = record[LOSS_MASK].astype(np.bool_) if has_mask else None
    return PackedSequence(tokens, tuple(pieces), used, mask, is_of_labels=form.labels is not None)


def recorded_sequence(record: Any, *, made_of: str) -> PackedSequence | None:
    """Return a record as the packed sample that its segments say it is; None if it is not one.

    Args:
        record: what a pipeline delivered.
        made_of: where the record comes from.

    Example:
        >>> record = {"tokens": np.array([5, 6, 7, 0]), "segment_ids": np.array([1, 1, 2, 0])}
        >>> found = recorded_sequence(record, made_of="exact, computed")
        >>> [(piece.at, piece.count) for piece in found.pieces], found.padding
        ([(0, 2), (2, 1)], 1)
    """
    tokens, segments, mask = (_flat(record, key) for key in (TOKENS, "segment_ids", LOSS_MASK))
    if tokens is None or segments is None or tokens.size != segments.size:
        return None
    borders = np.flatnonzero(np.diff(segments)) + 1
    starts = [0, *borders.tolist()] if segments.size else []
    sizes = np.diff([*starts, segments.size]).tolist()
    pieces = [
        SequencePiece(at, size, None, 0, size, None, as_label=0, is_joined=False)
        for at, size in zip(starts, sizes, strict=True)
    ]
    padding = pieces.pop().count if pieces and not segments[-1] else 0
    in_loss = None if mask is None or mask.size != tokens.size else mask.astype(np.bool_)
    of_labels = "labels" in record
    return PackedSequence(
        tokens, tuple(pieces), tokens.size - padding, in_loss, is_of_labels=of_labels, made_of=made_of
    )


def _flat(record: Any, key: str) -> NDArray[np.integer[Any]] | None:
    """Return the integers of a field, in one axis; None where a record has no such field."""
    value = record.get(key) if isinstance(record, Mapping) else None
    is_flat = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iub"
    return value if is_flat else None
