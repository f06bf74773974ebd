"""The length of the record at each position of a pipeline, from the index: no record is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.contract import OrderNode
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import each_once
from seekable.packing.nodes.packed_node import PackedNode
from seekable.resume.placeholders import PlaceholderSource

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.formats.tokens.source.token_reading import TokensPlan
    from seekable.nodes.contract import Node

__all__ = ["IndexUnit", "PositionLengths", "index_unit", "position_lengths"]

IndexUnit = Literal["bytes", "tokens"]

_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class PositionLengths:
    """The lengths of the records at some positions."""

    held: Int64s
    """The bytes of each record, line end included; or its tokens, of a packed sample without padding."""

    places: Int64s
    """The places that each record takes by itself: the width of a packed sample, else its length."""


def index_unit(node: Node) -> IndexUnit | None:
    """Return what the index knows the lengths of a pipeline's records in; None where it has none.

    Tokens of packed samples and of token files, bytes of lines, entries and archives. What maps change is not
    seen. None where records are put into lists, sources are of different kinds, or a source has no lengths.

    Example:
        >>> import seekable as sk
        >>> index_unit(sk.from_sequence("abc").node) is None
        True
    """
    units = _units(node)
    return units.pop() if len(units) == 1 else None


def _units(node: Node) -> set[IndexUnit | None]:
    if isinstance(node, PlaceholderSource):
        return {None} if node.files is None else _units(node.files)
    if isinstance(node, PackedNode | TokenSource):
        return {"tokens"}
    if isinstance(node, FileSource | SampleSource):
        return {"bytes"}
    if isinstance(node, OrderNode) or _is_one_to_one(node):
        return {unit for child in each_once(node.children) for unit in _units(child)}
    return {None}


def _is_one_to_one(node: Node) -> bool:
    return isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode)


def position_lengths(node: Node, positions: Int64s) -> PositionLengths:
    """Return the lengths of the records at some positions, in the unit of ``index_unit``.

    Args:
        node: a pipeline for which ``index_unit`` is not None.
        positions: int64, one dimension, at least 0, of any epochs.

    Raises:
        InvalidArgument: the index has no lengths of its records.
    """
    if isinstance(node, PlaceholderSource) and node.files is not None:
        return position_lengths(node.files, positions)
    if isinstance(node, PackedNode):
        epochs, rows = np.divmod(positions, node.size)
        pieces = node.maker.pieces(rows, epochs)
        return PositionLengths(pieces.used, np.full(positions.size, pieces.width))
    if isinstance(node, TokenSource):
        counts = cast("TokensPlan", node.plan(positions)).counts
        return PositionLengths(counts, counts)
    if isinstance(node, FileSource | SampleSource):
        files, rows = node.files, positions % max(1, node.size)
        numbers = np.searchsorted(files.starts, rows, side="right") - 1
        starts, ends = files.ranges(numbers, rows - files.starts[numbers])
        lengths = (ends - starts).astype(np.int64)
        return PositionLengths(lengths, lengths)
    if isinstance(node, OrderNode):
        return _routed(node, positions)
    if _is_one_to_one(node):
        return position_lengths(node.children[0], positions)
    message = f"the index has no lengths of the records of {node.expression()}"
    raise InvalidArgument(message)


def _routed(node: OrderNode, positions: Int64s) -> PositionLengths:
    slots, below = type(node).router([node]).route(_ONE, positions)
    slots = np.broadcast_to(slots, positions.shape)
    held, places = np.zeros((2, positions.size), np.int64)
    for slot in np.unique(slots).tolist():
        at = np.flatnonzero(slots == slot)
        found = position_lengths(node.children[slot], below[at])
        held[at], places[at] = found.held, found.places
    return PositionLengths(held, places)
