"""The texts of documents of tokens, by the tokenizer of a token store or by one that is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.cli.output import write_document, write_line
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.loader.step_plan import places_of
from seekable.viewer.facts.documents import place_as_json
from seekable.viewer.facts.token_contents import engine_of_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset.dataset import Dataset

__all__ = ["Decoder", "ids_of", "write_texts"]


class Decoder:
    """Makes texts of ids, by one tokenizer or by that of each token store."""

    def __init__(self, tokenizer: str | None) -> None:
        """Load a tokenizer.

        Args:
            tokenizer: the path of a ``tokenizer.json``, a folder with one, or ``tiktoken:NAME``; None for the
                tokenizer of the token store that a document lies in.

        Raises:
            DataNotFound: there is no such file.
            InvalidArgument: it is no tokenizer.
        """
        self._named = None if tokenizer is None else engine_of(tokenizer)

    def text(self, ids: Sequence[int] | NDArray[np.integer[Any]], path: str) -> str:
        """Return the text of ids; special tokens are shown as they are written.

        Args:
            ids: the ids.
            path: the file that they lie in.

        Raises:
            InvalidArgument: the file is of no token store with a tokenizer, and none was named.
        """
        engine = self._named if self._named is not None else engine_of_store(os.path.dirname(path))
        return engine.decode(ids)


def write_texts(
    documents: Dataset, rows: Sequence[int], decoder: Decoder, *, key: str, as_json: bool
) -> None:
    """Print the texts of documents, each with a newline behind it.

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
        text = decoder.text(_unpadded(ids, record), path)
        if as_json:
            location = place_as_json(place)
            write_document({"row": row, "location": location, "text": text, "record": {key: ids}})
        else:
            write_line(text)


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
