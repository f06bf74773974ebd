"""Spans beside the texts of records, and the tokens that they become spans of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from seekable._arguments import checked_choice, explains_fields
from seekable._spans import SPAN
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.tokenizing.engine import UnfitDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["DocumentSpans", "SpanColumn", "Spans"]

_CHARACTERS, _TOKENS = "characters", "tokens"

_KEYS = ("start", "end", "label")

_SHOWN = 60


@final
@explains_fields("sk.formats.Spans")
@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Says that records have spans beside their text, for ``align=`` of ``sk.formats.TokenStore``.

    Its name there is that of the column, whose records have a list of ``[start, end, label]``, or of dicts
    with these keys. Documents then have an array with the fields "start", "end" and "label" under that name,
    counted in tokens. Packed samples and windows have what of it lies in them, with ``align=``.

    A token with characters inside and outside of a span counts as inside. A span of no token is left out.

    Args:
        units: what start and end count in the records: "characters" of the text, or its "tokens". The end is
            the one after the last.
        labels: the names that labels have in the records: the stored label is the index of its name here. If
            left out, labels are integers.

    Raises:
        InvalidArgument: ``units`` is something else, or a label is named twice.
        WrongType: ``labels`` are no names.

    Example:
        >>> import tempfile, seekable as sk
        >>> texts = sk.from_sequence([{"text": "to Rome", "places": [[3, 7, "city"]]}])
        >>> def bytes_of(text: str) -> list[int]:
        ...     return list(text.encode())
        >>> places = sk.formats.Spans(units="tokens", labels=["city", "river"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = sk.formats.TokenStore(align={"places": places})
        ...     tk = sk.tokenize(texts, to=folder, tokenizer=bytes_of, store=store, jobs=1)
        ...     print(tk[0]["places"].tolist(), tk.windows(4, align=["places"])[0]["places"].tolist())
        [(3, 7, 0)] [(3, 4, 0)]
    """

    units: Literal["characters", "tokens"] = "characters"
    labels: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the values, and keep the labels as a tuple."""
        checked_choice("units", self.units, (_CHARACTERS, _TOKENS))
        labels = self.labels
        if not isinstance(labels, list | tuple) or not all(isinstance(name, str) for name in labels):
            message = f"labels must be a list of names, such as ['person', 'place'] (got {labels!r})"
            raise WrongType(message)
        if len(set(labels)) < len(labels):
            message = f"labels names one twice (got {list(labels)})"
            raise InvalidArgument(message)
        object.__setattr__(self, "labels", tuple(labels))


@dataclass(frozen=True, slots=True, eq=False)
class DocumentSpans:
    """The spans of some documents, in tokens."""

    values: NDArray[Any]
    """The spans of all documents, one document after another."""

    counts: Int64s
    """The number of spans of each document."""

    lost: int
    """The number of spans that have no token."""


@dataclass(frozen=True, slots=True)
class SpanColumn:
    """A column of spans. Picklable."""

    name: str
    how: Spans

    @property
    def counts_characters(self) -> bool:
        """True if spans are in characters of the text."""
        return self.how.units == _CHARACTERS

    @property
    def described(self) -> dict[str, Any]:
        """How spans are read, JSON-safe."""
        return {"units": self.how.units, "labels": list(self.how.labels)}

    def made(
        self, records: Sequence[Any], texts: Sequence[Any], lengths: Int64s, offsets: Any, *, shift: int
    ) -> DocumentSpans:
        """Return the spans of documents in tokens.

        Args:
            records: the value of the column of each document.
            texts: the text of each document.
            lengths: its number of tokens.
            offsets: of all tokens, the first character and the one after the last; None where spans are in
                tokens.
            shift: the number of tokens before those of a text.

        Raises:
            UnfitDocument: a document has something else than spans of it; the span is named.
        """
        ends = np.cumsum(lengths)
        found, lost = [], 0
        for index, (value, text) in enumerate(zip(records, texts, strict=True)):
            length = int(lengths[index])
            limit = len(text) if self.counts_characters else length
            given = self._checked(value, limit, index)
            made = (
                given if offsets is None else _in_tokens(given, offsets[ends[index] - length : ends[index]])
            )
            kept = made[(made["start"] < made["end"]) & (given["start"] < given["end"])]
            lost += len(given) - len(kept)
            kept["start"] += shift
            kept["end"] += shift
            found.append(kept)
        counts = np.fromiter(map(len, found), np.int64, len(found))
        return DocumentSpans(np.concatenate([np.empty(0, SPAN), *found]), counts, lost)

    def _checked(self, value: Any, limit: int, index: int) -> NDArray[Any]:
        """Return the spans of a record as it has them."""
        if value is None:
            return np.empty(0, SPAN)
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise UnfitDocument(index, f"{self.name!r} must be a list of spans (got {_shown(value)})")
        return np.array([self._span(span, number, limit, index) for number, span in enumerate(value)], SPAN)

    def _span(self, span: Any, number: int, limit: int, index: int) -> tuple[int, int, int]:
        where = f"span {number} of {self.name!r}"
        parts: Any = [span.get(key) for key in _KEYS] if isinstance(span, Mapping) else span
        try:
            start, end, label = parts
        except (TypeError, ValueError):
            why = f"{where} must be [start, end, label] (got {_shown(span)})"
            raise UnfitDocument(index, why) from None
        if not _is_integer(start) or not _is_integer(end):
            raise UnfitDocument(index, f"{where} must begin and end at integers (got {_shown(span)})")
        if not 0 <= start <= end <= limit:
            why = (
                f"{where} is from {start} to {end}, and the text has {limit} {self.how.units}: 0 <= start <= "
                f"end <= {limit} must hold"
            )
            raise UnfitDocument(index, why)
        return int(start), int(end), self._label(label, where, index)

    def _label(self, label: Any, where: str, index: int) -> int:
        labels = self.how.labels
        if labels and isinstance(label, str) and label in labels:
            return labels.index(label)
        if not labels and _is_integer(label) and -(1 << 63) <= label < 1 << 63:
            return int(label)
        wanted = f"one of {', '.join(map(repr, labels))}" if labels else "an integer"
        way = "" if labels else ": name the labels with sk.formats.Spans(labels=[...])"
        raise UnfitDocument(index, f"the label of {where} must be {wanted} (got {_shown(label)}){way}")


def _in_tokens(given: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """Return spans of characters as spans of tokens.

    A span begins with the first token that ends behind its start, and ends with the last one that begins
    before its end.

    Example:
        >>> offsets = np.array([[0, 2], [2, 3], [2, 3], [3, 6]])
        >>> _in_tokens(np.array([(2, 4, 0), (1, 2, 0)], SPAN), offsets)[["start", "end"]].tolist()
        [(1, 4), (0, 1)]
    """
    made = given.copy()
    # Offsets of some normalizers do not rise.
    ends = np.maximum.accumulate(offsets[:, 1])
    starts = np.minimum.accumulate(offsets[::-1, 0])[::-1]
    made["start"] = np.searchsorted(ends, given["start"], side="right")
    made["end"] = np.searchsorted(starts, given["end"], side="left")
    return made


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
