"""Tokens that a tokenizer on this machine makes of records: counts, rates per byte, estimates for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.formats.tokens.chats.conversations import turns_of
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import known_size
from seekable.viewer.facts.json_documents import in_words
from seekable.viewer.facts.lengths import position_lengths
from seekable.viewer.facts.reading import (
    bytes_of_records,
    from_sample,
    ratio_error,
    read_sample,
    sample_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable._typing import Int64s
    from seekable.formats.tokens.chats.conversations import Turn
    from seekable.formats.tokens.tokenizing import engines
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.nodes.node import Node
else:
    engines = lazy("seekable.formats.tokens.tokenizing.engines")

RecordUnit = Literal["tokens", "characters", "numbers"]

_SAMPLED = 200
_ESTIMATED_FROM = 1000


def _token_counts(engine: Engine, texts: Sequence[str]) -> Int64s:
    r"""Return how many tokens each text has, int64; -1 for one that the tokenizer refuses.

    It refuses a text with half of a surrogate pair, which is not a character.

    Raises:
        InvalidArgument: it refuses all of them.

    Example:
        >>> from seekable.formats.tokens.tokenizing.engines import engine_of
        >>> _token_counts(engine_of(lambda text: [1] * len(text.encode())), ["ab", "\ud800", "c"]).tolist()
        [2, -1, 1]
    """
    counts = np.full(len(texts), -1, dtype=np.int64)
    start, why = 0, ""
    while start < len(texts):
        stop = len(texts)
        try:
            counts[start:] = engine.encode(texts[start:])[1]
        except UnfitDocument as error:
            stop, why = start + error.index, str(error)
            if error.index:
                counts[start:stop] = engine.encode(texts[start:stop])[1]
        start = stop + 1
    if why and counts.max() < 0:
        message = f"the tokenizer refuses all of {len(texts):,} texts; the last one: {why}"
        raise InvalidArgument(message)
    return counts


def token_rates(
    sources: Iterable[tuple[str, Node]], tokenizer: Any, *, text_key: str | None = None
) -> dict[str, float]:
    """Return the tokens per byte of each source, by its name: from 200 rows of each, seed 0.

    Args:
        sources: names and nodes, as ``source_names`` and ``source_nodes`` return them.
        tokenizer: a tokenizer, or the path of its file.
        text_key: the field that is made into tokens; None for the longest text of each record.

    Raises:
        InvalidArgument: no tokenizer is given, or a source has no text that it takes.

    Example:
        >>> import seekable as sk
        >>> rows = sk.from_sequence([{"text": "ab"}])
        >>> token_rates([("web", rows._node)], None)
        Traceback (most recent call last):
        seekable.errors.InvalidArgument: tokens are counted by a tokenizer: give a tokenizer.json
    """
    if tokenizer is None:
        raise InvalidArgument("tokens are counted by a tokenizer: give a tokenizer.json")
    engine = engines.engine_of(tokenizer)
    rates = {}
    for name, node in sources:
        rows = np.sort(sample_rows(node.size or 0, _SAMPLED, 0))
        texts = [text_of(record, text_key) for record in read_sample(node, rows)]
        known = [text for text in texts if text is not None]
        counts = _token_counts(engine, known)
        size = node.plan(rows[counts >= 0]).bytes if len(known) == len(texts) and known else 0
        if not size:
            message = f"source {name!r} has records without a text: name its field with text_key="
            raise InvalidArgument(message)
        rates[name] = int(counts[counts >= 0].sum()) / size
    return rates


def text_of(record: Any, key: str | None = None) -> str | None:
    """Return the text of a record: itself, a field, or its longest text or conversation; None without one.

    Example:
        >>> text_of({"id": "x", "body": "a long text"}), text_of("line"), text_of({"n": 1})
        ('a long text', 'line', None)
        >>> text_of({"id": "x", "messages": [{"role": "user", "content": "hello"}]})
        'hello'
    """
    if isinstance(record, str):
        return record
    if not isinstance(record, dict):
        return None
    if key is not None:
        found = record.get(key)
        return found if isinstance(found, str) else None
    texts = [value for value in record.values() if isinstance(value, str)]
    if any(isinstance(value, list) for value in record.values()):
        texts += ["\n".join(_said(turn) for turn in each.turns) for each in turns_of(record)]
    return max(texts, key=len) if texts else None


def _said(turn: Turn) -> str:
    """Return the words of a turn: its reasoning, and the texts of what it says."""
    parts = turn.content if isinstance(turn.content, list) else [turn.content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in (turn.reasoning, *texts) if text and isinstance(text, str))


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
            out[there] = _token_counts(self.engine, [texts[at] or "" for at in there])
        elif there:
            out[there] = [len(texts[at] or "") for at in there]
        return out


def record_measure(record: Any, *, text_key: str | None = None, tokenizer: Any = None) -> RecordMeasure:
    """Return how records like this one are measured.

    By the tokens of their text where a tokenizer is given, by its characters without one, and by the length
    of their longest list or array where they have no text.

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
        engine = None if tokenizer is None else engines.engine_of(tokenizer)
        return RecordMeasure("characters" if engine is None else "tokens", text_key, engine)
    if _most_numbers(record) >= 0:
        return RecordMeasure("numbers", None, None)
    message = (
        f"a record of type {type(record).__name__} has no text and no list: name its text with text_key="
    )
    raise InvalidArgument(message)


def _most_numbers(record: Any) -> int:
    """Return the length of the longest list or array of a record; -1 without any."""
    values = record.values() if isinstance(record, dict) else [record]
    return max((len(value) for value in values if _is_list(value)), default=-1)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """The tokens of all records together, with 95 % bounds; both equal the count where it is exact."""

    tokens: int
    low: int
    high: int
    made_of: str

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {"count": self.tokens, "low": self.low, "high": self.high, "made_of": self.made_of}


def token_estimate(
    node: Node, tokenizer: Any, *, text_key: str | None = None, n: int = _ESTIMATED_FROM
) -> TokenEstimate:
    """Return the tokens in the texts of all records; a record without a text, or a refused one, has none.

    For lines it is their bytes, which the index has exactly, times the tokens per byte in a sample. For other
    data it is the sample's mean times the number of records.

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
        >>> found = token_estimate(rows._node, lambda text: [1] * len(text.split()))
        >>> found.tokens, found.made_of
        (6, 'exact, from all 3 rows')
    """
    size = known_size(node, "an estimate of tokens")
    rows = np.sort(sample_rows(size, n, 0))
    texts = [text_of(record, text_key) or "" for record in read_sample(node, rows)]
    counts = _token_counts(engines.engine_of(tokenizer), texts)
    refused = int((counts < 0).sum())
    tokens = np.maximum(counts, 0).astype(np.float64)
    made_of = from_sample(rows.size, of=size, seed=0)
    made_of += f", without {in_words(refused, 'text')} that the tokenizer refuses" if refused else ""
    if rows.size == size:
        counted = int(tokens.sum())
        return TokenEstimate(counted, counted, counted, made_of)
    if isinstance(node, FileSource):
        weights, whole = position_lengths(node, rows).held.astype(np.float64), bytes_of_records(node.files)
        made_of = f"exact bytes, times the tokens in a byte {made_of}"
    else:
        weights, whole = np.ones(rows.size), size
    found = float(tokens.sum() / weights.sum()) * whole
    half = ratio_error(tokens, weights, rows.size / size) * whole
    return TokenEstimate(round(found), max(0, round(found - half)), round(found + half), made_of)
