"""The number of tokens of all records: from a sample, with bounds, or exactly where all are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import known_size
from seekable.viewer.facts.documents import in_words
from seekable.viewer.facts.made_of import from_sample
from seekable.viewer.facts.position_lengths import position_lengths
from seekable.viewer.facts.record_lengths import bytes_of_records
from seekable.viewer.facts.sample import read_sample, sample_rows
from seekable.viewer.facts.token_counts import token_counts
from seekable.viewer.facts.token_rates import text_of

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["TokenEstimate", "token_estimate"]

_SAMPLED = 1000
_Z = 1.96
"""The 97.5 % point of the normal distribution, for intervals of 95 %."""


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """The tokens of all records together, with 95 % bounds, which are the number where all were counted."""

    tokens: int
    low: int
    high: int
    made_of: str

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {"count": self.tokens, "low": self.low, "high": self.high, "made_of": self.made_of}


def token_estimate(
    node: Node, tokenizer: Any, *, text_key: str | None = None, n: int = _SAMPLED
) -> TokenEstimate:
    """Return the tokens of the texts of all records; one without a text, or one that is refused, has none.

    Of lines it is their bytes, which the index has exactly, times the tokens in a byte of a sample. Of other
    data it is the mean of the sample times the records.

    Args:
        node: the data.
        tokenizer: a tokenizer, or the path of its file.
        text_key: the field that counts as text; None for the longest one of each record.
        n: the rows of the sample, seed 0.

    Raises:
        EndlessDataset: the data has no length.

    Example:
        >>> import seekable as sk
        >>> rows = sk.from_sequence(["a b", "c", "a b c"])
        >>> found = token_estimate(rows.node, lambda text: [1] * len(text.split()))
        >>> found.tokens, found.made_of
        (6, 'exact, from all 3 rows')
    """
    size = known_size(node, "an estimate of tokens")
    rows = np.sort(sample_rows(size, n, 0))
    texts = [text_of(record, text_key) or "" for record in read_sample(node, rows)]
    counts = token_counts(engine_of(tokenizer), texts)
    refused = int((counts < 0).sum())
    tokens = np.maximum(counts, 0).astype(np.float64)
    made_of = from_sample(rows.size, of=size, seed=0)
    made_of += f", without {in_words(refused, 'text')} that the tokenizer refuses" if refused else ""
    if rows.size == size:
        counted = int(tokens.sum())
        return TokenEstimate(counted, counted, counted, made_of)
    if isinstance(node, FileSource):
        weights, whole = position_lengths(node, rows).held.astype(np.float64), bytes_of_records(node)
        made_of = f"exact bytes, times the tokens in a byte {made_of}"
    else:
        weights, whole = np.ones(rows.size), size
    rate = float(tokens.sum() / max(weights.sum(), 1.0))
    # The error of a ratio of two sums is that of the mean of these differences.
    off = tokens - rate * weights
    spread = math.sqrt(float((off**2).sum()) / max(rows.size - 1, 1) / rows.size * (1 - rows.size / size))
    found, half = rate * whole, _Z * spread * size
    return TokenEstimate(round(found), max(0, round(found - half)), round(found + half), made_of)
