"""The documents that samples are packed of: their lengths, and the types of their arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._cached import cached
from seekable.nodes.bases import leaves_of
from seekable.nodes.contract import OrderNode
from seekable.nodes.graph import SlicedPlan, known_size
from seekable.nodes.packed.sample_form import TOKENS
from seekable.nodes.sources.token_source import TokenSource
from seekable.order.packing.length_order import length_order, offsets_of

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.nodes.packed.row_lengths import RowLengths
    from seekable.order.packing.length_order import LengthOrder

__all__ = ["CountedDocuments", "Documents", "IndexedDocuments", "are_indexed"]


_AT_ONCE = 1 << 20
"""The number of rows whose lengths are found together."""


def are_indexed(node: Node) -> bool:
    """Return True if the index has the lengths of a dataset: documents of token files, in any order."""
    if isinstance(node, TokenSource):
        return True
    return isinstance(node, OrderNode) and bool(node.children) and all(map(are_indexed, node.children))


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
        if isinstance(self.child, TokenSource):
            return self.child.words.lengths()
        size = known_size(self.child, "lengths")
        found = [np.empty(0, dtype=np.int64)]
        for start in range(0, size, _AT_ONCE):
            plan = self.child.plan(np.arange(start, min(start + _AT_ONCE, size), dtype=np.int64))
            assert isinstance(plan, SlicedPlan)
            found.append(plan.counts)
        return np.concatenate(found)

    @cached
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then the number of all tokens: int64."""
        return offsets_of(self.lengths)

    @cached
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths, made in memory."""
        return length_order(self.lengths)

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each array of the documents; one that holds those of all sources."""
        types: dict[str, list[np.dtype[Any]]] = {}
        for leaf in leaves_of(self.child):
            assert isinstance(leaf, TokenSource)
            for name, dtype in leaf.dtypes.items():
                types.setdefault(name, []).append(dtype)
        return {name: np.result_type(*some) for name, some in types.items()}
