"""The shares of neighbours that packing leaves neighbours, from epoch to epoch and from natural order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from seekable.order.keys import derive, kind_key
from seekable.order.permutation import unpermute
from seekable.packing.order.length_order import LengthOrder, length_order
from seekable.packing.order.table_order import Exchange, TableOrder

if TYPE_CHECKING:
    from seekable._typing import Int64s


def log_normal(documents: int) -> LengthOrder:
    """Documents of lengths as in text: median 403 tokens, sigma 1."""
    rng = np.random.default_rng(0)
    return length_order(np.maximum(1, np.exp(rng.standard_normal(documents) + 6)).astype(np.int64))


def end_to_end(packing: Exchange | TableOrder, epoch: int) -> Int64s:
    """The documents of an epoch in the order in which they are concatenated."""
    key = derive(kind_key("pack"), packing.seed, epoch)
    rows = unpermute(np.arange(packing.samples), packing.samples, key)
    documents = packing.pieces(rows, np.full(rows.size, epoch)).documents
    return np.compress(np.append(True, documents[1:] != documents[:-1]), documents)


def neighbours(documents: Int64s) -> Int64s:
    """A number for each pair of neighbours."""
    return documents[:-1] << 32 | documents[1:]


def kept(packing: Exchange | TableOrder) -> tuple[float, float]:
    """The share of natural neighbours in epoch 0, and of the neighbours of epoch 0 in epoch 1."""
    natural = neighbours(np.arange(packing.documents))
    first, second = (neighbours(end_to_end(packing, epoch)) for epoch in (0, 1))
    return np.isin(first, natural).mean(), np.isin(second, first).mean()


@pytest.mark.exhaustive
def test_exchange_separates_the_neighbours_of_a_million_documents() -> None:
    natural, repeated = kept(Exchange(log_normal(10**6), stride=2048, seed=7))
    assert natural <= 1e-4
    assert repeated <= 1e-4


def test_exchange_separates_most_neighbours_of_fewer_documents() -> None:
    natural, repeated = kept(Exchange(log_normal(50_000), stride=2048, seed=7))
    assert 1e-4 < natural < 1e-2
    assert 1e-4 < repeated < 1e-2


def test_a_table_separates_neighbours_as_any_permutation_does() -> None:
    """One pair is expected, of two permutations of any size."""
    natural, repeated = kept(TableOrder(log_normal(50_000).offsets, stride=2048, seed=7))
    assert natural * 50_000 < 8
    assert repeated * 50_000 < 8


def test_the_cut_of_a_document_that_never_moves_turns() -> None:
    """Documents of a length of their own stay where they are, and begin elsewhere in their samples."""
    order = length_order(np.array([100, 7, 7, 7, 7, 7, 7]))
    packing = Exchange(order, stride=10, seed=7)
    cuts = set()
    for epoch in range(8):
        found = packing.pieces(np.arange(packing.samples), np.full(packing.samples, epoch))
        cuts.add(tuple(np.sort(found.starts[found.documents == 0]).tolist()))
    assert len(cuts) > 4
