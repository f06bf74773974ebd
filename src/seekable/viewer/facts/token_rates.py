"""The tokens in a byte of each source, from a sample of its records and a tokenizer on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.viewer.facts.sample import read_sample, sample_rows
from seekable.viewer.facts.token_counts import token_counts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.nodes.contract import Node

__all__ = ["text_of", "token_rates"]

_SAMPLED = 200


def token_rates(
    sources: Iterable[tuple[str, Node]], tokenizer: Any, *, text_key: str | None = None
) -> dict[str, float]:
    """Return the tokens in a byte of the records of each source, by its name: from 200 rows of each, seed 0.

    Args:
        sources: names and nodes, as ``source_names`` and ``source_nodes`` return them.
        tokenizer: a tokenizer, or the path of its file.
        text_key: the field that is made into tokens; None for the longest text of each record.

    Raises:
        InvalidArgument: no tokenizer is given, or a source has no text that it takes.

    Example:
        >>> import seekable as sk
        >>> rows = sk.from_sequence([{"text": "ab"}])
        >>> token_rates([("web", rows.node)], None)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: tokens are counted by a tokenizer: give a tokenizer.json
    """
    if tokenizer is None:
        raise InvalidArgument("tokens are counted by a tokenizer: give a tokenizer.json")
    engine = engine_of(tokenizer)
    rates = {}
    for name, node in sources:
        rows = np.sort(sample_rows(node.size or 0, _SAMPLED, 0))
        texts = [text_of(record, text_key) for record in read_sample(node, rows)]
        known = [text for text in texts if text is not None]
        counts = token_counts(engine, known)
        size = node.plan(rows[counts >= 0]).bytes if len(known) == len(texts) and known else 0
        if not size:
            message = f"source {name!r} has records without a text: name its field with text_key="
            raise InvalidArgument(message)
        rates[name] = int(counts[counts >= 0].sum()) / size
    return rates


def text_of(record: Any, key: str | None = None) -> str | None:
    """Return the text of a record: itself, a field, or its longest one; None if it has none.

    Example:
        >>> text_of({"id": "x", "body": "a long text"}), text_of("line"), text_of({"n": 1})
        ('a long text', 'line', None)
    """
    if isinstance(record, str):
        return record
    if not isinstance(record, dict):
        return None
    if key is not None:
        found = record.get(key)
        return found if isinstance(found, str) else None
    texts = [value for value in record.values() if isinstance(value, str)]
    return max(texts, key=len) if texts else None
