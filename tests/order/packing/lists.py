"""Packing once more, in plain lists of single tokens: nothing is searched, counted or computed ahead."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from seekable.order.keys import derive, kind_key
from seekable.order.permutation import permute_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.packing.order.sample_pieces import Packing

T = TypeVar("T")

Token = tuple[int, int]
"""A document and the number of a token in it; of a literal -1 and its id."""

Piece = tuple[int, int, int, bool]


def exchanged(lengths: Sequence[int], seed: int, epoch: int) -> list[int]:
    """The document in each interval, if documents of equal length change places."""
    out = [0] * len(lengths)
    for length in set(lengths):
        equals = [number for number, other in enumerate(lengths) if other == length]
        key = derive(kind_key("pack-length"), seed, epoch, length)
        for at, interval in enumerate(equals):
            out[interval] = equals[permute_one(at, len(equals), key)]
    return out


def tabled(lengths: Sequence[int], seed: int, epoch: int) -> list[int]:
    """The document in each interval, if all documents are permuted."""
    key = derive(kind_key("pack-table"), seed, epoch)
    return [permute_one(interval, len(lengths), key) for interval in range(len(lengths))]


def turned(tokens: list[T], seed: int, epoch: int) -> list[T]:
    """The tokens from the turn of an epoch on, and then those before it."""
    turn = derive(kind_key("pack-turn"), seed, epoch) * len(tokens) // 2**64
    return tokens[turn:] + tokens[:turn]


def end_to_end(lengths: Sequence[int], order: Sequence[int]) -> list[Token]:
    """All tokens of documents in an order."""
    return [(document, token) for document in order for token in range(lengths[document])]


def windows(tokens: list[T], stride: int, overlap: int) -> list[list[T]]:
    """WindowTables of ``stride + overlap`` tokens, one after another; the last tokens may be in none."""
    count = max(0, (len(tokens) - overlap) // stride)
    return [tokens[number * stride : number * stride + stride + overlap] for number in range(count)]


def shuffled(samples: list[T], seed: int, epoch: int) -> list[T]:
    """Samples in the order of their rows."""
    key = derive(kind_key("pack"), seed, epoch)
    return [samples[permute_one(row, len(samples), key)] for row in range(len(samples))]


def tokens_of(pieces: Sequence[Piece]) -> list[Token]:
    """The tokens of pieces."""
    return [(document, start + number) for document, start, count, _ in pieces for number in range(count)]


def pieces_of(packing: Packing, epoch: int) -> list[list[Piece]]:
    """The pieces of all samples of an epoch, by arrays."""
    rows = np.arange(packing.samples)
    found = packing.pieces(rows, np.full(rows.size, epoch))
    joined = np.zeros(found.counts.size, dtype=bool) if found.joined is None else found.joined
    columns = (found.documents, found.starts, found.counts, joined)
    pieces = list(zip(*(column.tolist() for column in columns), strict=True))
    bounds = found.bounds.tolist()
    assert len(bounds) == rows.size + 1
    assert bounds[-1] == len(pieces)
    return [pieces[start:stop] for start, stop in pairwise(bounds)]


def check(packing: Packing, samples: list[list[Token]], documents: int, epoch: int, every: int = 1) -> None:
    """Compare what a packing says of an epoch with the samples of a model.

    All samples are compared; the form without arrays, and the way up, for each ``every``-th row and document.
    """
    assert packing.samples == len(samples)
    found = pieces_of(packing, epoch)
    assert [tokens_of(pieces) for pieces in found] == samples
    assert all(count > 0 for pieces in found for _, _, count, _ in pieces)
    assert [packing.pieces_of_one(row, epoch) for row in range(0, len(samples), every)] == found[::every]
    for document in range(0, documents, every):
        expected = [row for row, sample in enumerate(samples) if any(d == document for d, _ in sample)]
        assert packing.samples_with(document, epoch).tolist() == expected
