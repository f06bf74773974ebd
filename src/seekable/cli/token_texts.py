"""Prints documents of tokens as texts, and packed samples with their pieces."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._spans import is_spans
from seekable.cli.output import write_document, write_line
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.loader.step_plan import places_of
from seekable.nodes.node import node_of
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_form import LOSS_MASK, TOKENS
from seekable.viewer.facts.json_documents import in_words, place_as_json
from seekable.viewer.facts.token_contents import engine_of_store, store_document_of, token_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset.dataset import Dataset
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["TokenDecoder", "ids_of", "samples_with_pieces", "write_samples", "write_texts"]


class TokenDecoder:
    """Makes texts of ids, by one tokenizer or by that of each token store."""

    def __init__(self, tokenizer: str | None) -> None:
        """Load a tokenizer.

        Args:
            tokenizer: the path of a ``tokenizer.json``, a folder with one, or ``tiktoken:NAME``; None for the
                tokenizer of the token store that a document lies in.

        Raises:
            DataNotFound: there is no such file.
            InvalidArgument: it is not a tokenizer.
        """
        self._named = None if tokenizer is None else engine_of(tokenizer)

    def text(self, ids: Sequence[int] | NDArray[np.integer[Any]], path: str) -> str:
        """Return the text of ids; special tokens are shown as they are written.

        Args:
            ids: the ids.
            path: the file that they lie in.

        Raises:
            InvalidArgument: the file is not in a token store with a tokenizer, and none was named.
        """
        return self._engine(path).decode(ids)

    def runs(self, ids: Sequence[int], mask: Sequence[int], path: str) -> list[dict[str, Any]]:
        """Return the text of ids in runs that are in the loss, and runs that are not.

        Args:
            ids: the ids.
            mask: for each id a number that is not 0 if it is in the loss.
            path: the file that they lie in.

        Raises:
            InvalidArgument: no tokenizer is known; see `text`.
        """
        texts = zip(token_texts(self._engine(path), ids), mask, strict=True)
        return [
            {"text": "".join(text for text, _ in run), "trained": is_trained}
            for is_trained, run in itertools.groupby(texts, key=_is_trained)
        ]

    def spans(self, ids: Sequence[int], record: Any, path: str) -> dict[str, list[dict[str, Any]]]:
        """Return the spans of a record by their names, each with its label and its text.

        Args:
            ids: the ids of the record.
            record: the record.
            path: the file that the ids lie in.

        Raises:
            InvalidArgument: no tokenizer is known; see `text`.
        """
        columns = record.items() if isinstance(record, dict) else ()
        return {
            name: [
                {"start": start, "end": end, "label": label, "text": self.text(ids[start:end], path)}
                for start, end, label in zip(*_named(spans, name, path), strict=True)
            ]
            for name, spans in columns
            if isinstance(spans, np.ndarray) and is_spans(spans.dtype)
        }

    def _engine(self, path: str) -> Engine:
        return self._named if self._named is not None else engine_of_store(os.path.dirname(path))


def _named(spans: NDArray[Any], name: str, path: str) -> tuple[list[int], list[int], list[Any]]:
    """Return the starts, the ends and the labels of spans, these by name where their store has names."""
    document = store_document_of(os.path.dirname(path))
    facts = None if document is None else document.spans.get(name)
    labels = spans["label"].tolist()
    if facts is not None and facts.labels:
        # A sample may have documents of several stores, which name labels otherwise.
        labels = [dict(enumerate(facts.labels)).get(label, label) for label in labels]
    return spans["start"].tolist(), spans["end"].tolist(), labels


def _is_trained(token: tuple[str, int]) -> bool:
    return bool(token[1])


def write_texts(
    documents: Dataset, rows: Sequence[int], decoder: TokenDecoder, *, key: str, as_json: bool
) -> None:
    """Print the texts of documents, each with a newline after it.

    Of documents with a loss mask, what is trained on stands between ``[[`` and ``]]``. Spans follow the text,
    each in a line.

    Args:
        documents: records with token ids.
        rows: the documents.
        decoder: makes the texts.
        key: the column of the ids.
        as_json: print a document for each, with its place and its ids.

    Raises:
        InvalidArgument: a record has no ids, or no tokenizer is known.
    """
    for row in rows:
        place, record = documents.locate(row), documents[row]
        ids = ids_of(record, key)
        path = next((one.path for one in places_of(place)), "")
        mask = record.get(LOSS_MASK) if isinstance(record, dict) else None
        runs = None if mask is None else decoder.runs(ids, list(mask), path)
        text, spans = decoder.text(_unpadded(ids, record), path), decoder.spans(ids, record, path)
        if as_json:
            marked: dict[str, Any] = {} if runs is None else {"runs": runs}
            marked |= {"spans": spans} if spans else {}
            location = place_as_json(place)
            write_document({"row": row, "location": location, "text": text, **marked, "record": {key: ids}})
        else:
            write_line(text if runs is None else _marked(runs))
            for name, span in ((name, span) for name, some in spans.items() for span in some):
                tokens = f"tokens {span['start']:,} to {span['end']:,}"
                write_line(f"  {name}: {span['label']}, {tokens}: {span['text']!r}")


def _marked(runs: Sequence[dict[str, Any]]) -> str:
    return "".join(f"[[{run['text']}]]" if run["trained"] else run["text"] for run in runs)


def _unpadded(ids: list[int], record: Any) -> list[int]:
    """Return the ids of a record without those that pad it, where it is a packed sample."""
    segments = record.get("segment_ids") if isinstance(record, dict) else None
    return (
        ids if segments is None else [token for token, segment in zip(ids, segments, strict=True) if segment]
    )


def ids_of(record: Any, key: str) -> list[int]:
    """Return the ids of a record.

    Args:
        record: a dict of columns, or the ids themselves.
        key: the column.

    Raises:
        InvalidArgument: the record has no such column, or it holds no integers.
    """
    if isinstance(record, dict) and key not in record:
        message = f"--decode makes texts of token ids, and a record has no column {key!r}: name it with --key"
        raise InvalidArgument(f"{message}; there are {', '.join(map(repr, record)) or 'none'}")
    ids = record[key] if isinstance(record, dict) else record
    ids = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(ids, list) or not all(type(number) is int for number in ids):
        message = f"--decode makes texts of lists of token ids (got {type(ids).__name__}): name their column"
        raise InvalidArgument(f"{message} with --key")
    return ids


def samples_with_pieces(
    packed: Dataset, rows: Sequence[int], decoder: TokenDecoder | None
) -> Iterator[dict[str, Any]]:
    """Yield samples of epoch 0 with their pieces, JSON-safe.

    Args:
        packed: what ``Dataset.pack`` returned.
        rows: the samples.
        decoder: makes the text of each piece; None for none.
    """
    node = node_of(packed)
    assert isinstance(node, PackedNode)
    for row in rows:
        placed = node.maker.pieces(np.array([row]), np.zeros(1, np.int64))
        stored = np.flatnonzero(placed.documents >= 0)
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


def write_samples(
    packed: Dataset, rows: Sequence[int], decoder: TokenDecoder | None, *, as_json: bool
) -> None:
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
    """Return where the record lies that became a document; else where the piece lies."""
    found = place.get("source", place)
    at = "" if not found["length"] else f", byte {found['offset']:,}"
    return f"{found['path']}, record {found['row']:,}{at}"
