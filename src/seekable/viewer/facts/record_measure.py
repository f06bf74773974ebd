"""The length of a record that was read: tokens of its text, characters, or numbers of its longest list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.viewer.facts.token_counts import token_counts
from seekable.viewer.facts.token_rates import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["RecordMeasure", "RecordUnit", "record_measure"]

RecordUnit = Literal["tokens", "characters", "numbers"]


@dataclass(frozen=True, slots=True)
class RecordMeasure:
    """A measure of the length of records."""

    unit: RecordUnit
    text_key: str | None
    engine: Engine | None

    def lengths(self, records: Sequence[Any]) -> Int64s:
        """Return the length of each record, int64; -1 for a record that has none, such as a corrupt one."""
        if self.unit == "numbers":
            return np.array([_most_numbers(record) for record in records], dtype=np.int64)
        texts = [text_of(record, self.text_key) for record in records]
        there = [at for at, text in enumerate(texts) if text is not None]
        out = np.full(len(texts), -1, dtype=np.int64)
        if self.engine is not None and there:
            out[there] = token_counts(self.engine, [texts[at] or "" for at in there])
        elif there:
            out[there] = [len(texts[at] or "") for at in there]
        return out


def record_measure(record: Any, *, text_key: str | None = None, tokenizer: Any = None) -> RecordMeasure:
    """Return how records like this one are measured.

    By the tokens of their text where a tokenizer is given, by its characters where none is, and by the
    numbers of their longest list or array where they have no text.

    Args:
        record: a record.
        text_key: the field that counts as text; None for the longest one.
        tokenizer: a tokenizer, or the path of its file.

    Raises:
        InvalidArgument: the record has neither a text nor a list.

    Example:
        >>> record_measure({"text": "two words"}).lengths([{"text": "a word"}, {"text": ""}, None]).tolist()
        [6, 0, -1]
        >>> record_measure({"ids": [4, 5, 6]}).unit
        'numbers'
    """
    if text_of(record, text_key) is not None:
        engine = None if tokenizer is None else engine_of(tokenizer)
        return RecordMeasure("characters" if engine is None else "tokens", text_key, engine)
    if _most_numbers(record) >= 0:
        return RecordMeasure("numbers", None, None)
    message = (
        f"a record of type {type(record).__name__} has no text and no list: name its text with text_key="
    )
    raise InvalidArgument(message)


def _most_numbers(record: Any) -> int:
    """Return the numbers of the longest list or array of a record; -1 without any."""
    values = record.values() if isinstance(record, dict) else [record]
    return max((len(value) for value in values if _is_list(value)), default=-1)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)
