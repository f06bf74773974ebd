"""Packed samples with their pieces: the documents, and the records of the corpus that these were made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.cli.output import write_document, write_line
from seekable.cli.token_texts import ids_of
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_form import TOKENS
from seekable.packing.order.pieces import LITERAL
from seekable.viewer.facts.documents import in_words, place_as_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.cli.token_texts import Decoder
    from seekable.dataset.dataset import Dataset

__all__ = ["samples_with_pieces", "write_samples"]


def samples_with_pieces(
    packed: Dataset, rows: Sequence[int], decoder: Decoder | None
) -> Iterator[dict[str, Any]]:
    """Yield samples of epoch 0 with their pieces, JSON-safe.

    Args:
        packed: what ``Dataset.pack`` returned.
        rows: the samples.
        decoder: makes the text of each piece; None for none.
    """
    node = packed.node
    assert isinstance(node, PackedNode)
    for row in rows:
        placed = node.maker.pieces(np.array([row]), np.zeros(1, np.int64))
        stored = np.flatnonzero(placed.documents != LITERAL)
        columns = (placed.documents, placed.starts, placed.counts)
        numbers = zip(*(column[stored].tolist() for column in columns), strict=True)
        pieces: list[dict[str, Any]] = [
            {
                "location": place_as_json(place),
                "document": document,
                "start": start,
                "tokens": count,
                "document_tokens": int(node.documents.lengths[document]),
            }
            for place, (document, start, count) in zip(packed.locate(row), numbers, strict=True)
        ]
        if decoder is not None:
            tokens = ids_of(packed[row], TOKENS)
            ats = placed.at[stored].tolist()
            for piece, place, at in zip(pieces, packed.locate(row), ats, strict=True):
                piece["text"] = decoder.text(tokens[at : at + piece["tokens"]], place.path)
        yield {"row": row, "tokens": int(placed.counts.sum()), "pieces": pieces}


def write_samples(packed: Dataset, rows: Sequence[int], decoder: Decoder | None, *, as_json: bool) -> None:
    """Print samples of epoch 0: each with a line for each piece, below which is its text, if asked for.

    Args:
        packed: what ``Dataset.pack`` returned.
        rows: the samples.
        decoder: makes the text of each piece; None for none.
        as_json: print a document for each sample.
    """
    for sample in samples_with_pieces(packed, rows, decoder):
        if as_json:
            write_document(sample)
            continue
        sizes = f"{in_words(len(sample['pieces']), 'piece')}, {in_words(sample['tokens'], 'token')}"
        write_line(f"sample {sample['row']:,}: {sizes}")
        for piece in sample["pieces"]:
            write_line(_in_words(piece))
            if decoder is not None:
                write_line(piece["text"])


def _in_words(piece: dict[str, Any]) -> str:
    """Return the line about one piece."""
    last = piece["start"] + piece["tokens"]
    tokens = f"tokens {piece['start']:,} to {last:,} of {piece['document_tokens']:,}"
    return f"  document {piece['document']:,}, {tokens}; {_source(piece['location'])}"


def _source(place: dict[str, Any]) -> str:
    """Return the place of the record that a document was made of; else that of the piece."""
    found = place.get("source", place)
    at = "" if not found["length"] else f", byte {found['offset']:,}"
    return f"{found['path']}, record {found['row']:,}{at}"
