"""Spans of tokens beside documents: their type, and the parts of them that pieces of documents have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from seekable._typing import Int64s

__all__ = ["SPAN", "is_spans", "spans_in_pieces", "type_name", "type_of", "type_text"]

SPAN = np.dtype([("start", "<i8"), ("end", "<i8"), ("label", "<i8")])
"""A span: its first token, the token after its last, and its label."""

_NAME = "spans"


def is_spans(dtype: DTypeLike) -> bool:
    """Return True for the type of spans.

    Example:
        >>> is_spans(SPAN), is_spans("uint8")
        (True, False)
    """
    return np.dtype(dtype) == SPAN


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the name of the type of an array beside tokens: ``"spans"``, or one such as ``"uint8"``."""
    return _NAME if is_spans(dtype) else dtype.name


def type_text(dtype: np.dtype[Any]) -> str:
    """Return the type of an array beside tokens as text: ``"spans"``, or one such as ``"|u1"``."""
    return _NAME if is_spans(dtype) else dtype.str


def type_of(text: str) -> np.dtype[Any]:
    """Return the type that `type_text` wrote.

    Example:
        >>> type_of("spans") == SPAN, type_of("|u1")
        (True, dtype('uint8'))
    """
    return SPAN if text == _NAME else np.dtype(text)


def spans_in_pieces(
    spans: Sequence[NDArray[Any]], starts: Int64s, counts: Int64s, at: Int64s
) -> tuple[NDArray[Any], Int64s]:
    """Cut the spans of documents to pieces of them; return the spans of all pieces.

    Each span is cut to the piece, and moved to where the piece lies; one without a token of it is left out.

    Args:
        spans: the spans of the document of each piece, as arrays of `SPAN`.
        starts: the first token of each piece in its document, int64.
        counts: its number of tokens, int64.
        at: the place of its first token.

    Returns:
        The spans of all pieces, and for each of them the index of its piece, ascending.

    Example:
        >>> whole = np.array([(0, 4, 7), (5, 6, 8)], SPAN)
        >>> found, pieces = spans_in_pieces([whole], np.array([2]), np.array([3]), np.array([10]))
        >>> found.tolist(), pieces.tolist()
        ([(10, 12, 7)], [0])
    """
    pieces = np.repeat(np.arange(len(spans), dtype=np.int64), [each.size for each in spans])
    joined = np.concatenate([np.empty(0, SPAN), *spans])
    first = np.maximum(joined["start"] - starts[pieces], 0)
    last = np.minimum(joined["end"] - starts[pieces], counts[pieces])
    kept = first < last
    made = joined[kept]
    of = pieces[kept]
    made["start"], made["end"] = first[kept] + at[of], last[kept] + at[of]
    return made, of
