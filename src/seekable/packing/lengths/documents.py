"""The documents that samples are packed of: their lengths, and the types of their arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.leaf import SlicedLeaf
from seekable.nodes.graph import known_size
from seekable.packing.lengths.packing_columns import MOST_IN_MEMORY, document_lengths, packing_columns
from seekable.packing.nodes.sample_form import TOKENS
from seekable.packing.order.axis import OffsetsAxis
from seekable.packing.order.length_order import length_order, offsets_of

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.packing.lengths.row_lengths import RowLengths
    from seekable.packing.order.length_order import LengthOrder

__all__ = ["CountedDocuments", "Documents", "IndexedDocuments"]


class Documents(ABC):
    """The lengths of documents in the orders that packing needs, and the types of their arrays."""

    @property
    @abstractmethod
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64."""

    @property
    @abstractmethod
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then the number of all tokens: int64."""

    @property
    @abstractmethod
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order."""

    @property
    @abstractmethod
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths."""

    @property
    @abstractmethod
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of the tokens, by the name ``"tokens"``, and of the aligned arrays."""


@final
@dataclass(frozen=True)
class CountedDocuments(Documents):
    """Documents whose lengths were found by reading their lists once."""

    rows: RowLengths

    @property
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64, memory-mapped."""
        return self.rows.lengths

    @cached
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then the number of all tokens: int64."""
        return offsets_of(self.lengths)

    @cached
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order."""
        return OffsetsAxis.of(self.offsets)

    @cached
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths, made in memory."""
        return length_order(self.lengths)

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type that holds the numbers of all rows of each array; the tokens' name is ``"tokens"``."""
        (_, tokens), *aligned = self.rows.dtypes
        return {TOKENS: np.dtype(tokens), **{str(name): np.dtype(dtype) for name, dtype in aligned}}


@final
@dataclass(frozen=True)
class IndexedDocuments(Documents):
    """Documents of token files, whose lengths follow from the index."""

    child: Node

    @cached
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64."""
        return document_lengths(self.child)

    @cached
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then of all: int64; of many documents a memory map."""
        if known_size(self.child, "lengths") > MOST_IN_MEMORY:
            return self.order.offsets
        return offsets_of(self.lengths)

    @cached
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order; no page of a memory map is read for it."""
        if known_size(self.child, "lengths") > MOST_IN_MEMORY:
            return OffsetsAxis(self.order.offsets, self.order.coarse)
        return OffsetsAxis.of(self.offsets)

    @cached
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths: columns of the index above 2**20 documents."""
        return packing_columns(self.child)

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each array of the documents; one that holds those of all sources."""
        types: dict[str, list[np.dtype[Any]]] = {}
        for leaf in leaves_of(self.child):
            assert isinstance(leaf, SlicedLeaf)
            for name, dtype in leaf.dtypes.items():
                types.setdefault(name, []).append(dtype)
        return {name: np.result_type(*some) for name, some in types.items()}
