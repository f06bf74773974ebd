"""Typed parts and spans of a document, and the arrays and spans of tokens that they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, final, runtime_checkable

import numpy as np

from seekable._arguments import checked_choice, checked_count, checked_flag, explains_fields
from seekable._spans import SPAN
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.state.functions import module_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = [
    "AuxGenerator",
    "DocumentSpans",
    "LossMask",
    "Part",
    "SpanColumn",
    "Spans",
    "described_generator",
    "is_mask",
    "marks_left_out",
]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document: its ``text``, and its ``type``, such as "system", "prompt" or "response".

    Example:
        >>> Part("prompt", "2 + 2 =")
        Part(type='prompt', text='2 + 2 =')
    """

    type: str
    """The kind of text, such as "system", "prompt", "response"."""

    text: str


@runtime_checkable
class AuxGenerator(Protocol):
    """Makes one value for each token of a part; the generators of data-forager are such objects too."""

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        ...

    def generate(
        self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None
    ) -> Sequence[int]:
        """Return ``num_tokens`` values, one for each token of a part."""
        ...

    def generate_for_eos(self) -> int:
        """Return the value of the token that ends a document."""
        ...


@explains_fields("sk.LossMask")
@dataclass(frozen=True, slots=True, kw_only=True)
class LossMask:
    """Makes a mask of the tokens that the loss is taken of: 1 = in the loss, 0 = left out.

    data-forager counts the other way round: its ``LossMaskGenerator`` gives 1 to tokens that are left out.

    Args:
        masked: the types of the parts that are left out of the loss.
        eos: True if the token that ends a document is in the loss.

    Raises:
        WrongType: ``masked`` is a string or holds something else than strings, or ``eos`` is not a bool.

    Example:
        >>> LossMask(masked=("prompt",)).generate("prompt", 2), LossMask().generate("response", 3)
        ([0, 0], [1, 1, 1])
    """

    masked: tuple[str, ...] = ("system", "prompt")
    eos: bool = True

    def __post_init__(self) -> None:
        """Check the types, and keep them as a tuple without repetitions."""
        is_many = isinstance(self.masked, Iterable) and not isinstance(self.masked, str)
        masked = tuple(self.masked) if is_many else ()
        if not is_many or not all(isinstance(kind, str) for kind in masked):
            message = f"masked must be a tuple of types of parts, such as ('prompt',) (got {self.masked!r})"
            raise WrongType(message)
        checked_flag("eos", self.eos)
        object.__setattr__(self, "masked", tuple(sorted(set(masked))))

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """The dtype of a mask, uint8."""
        return np.dtype(np.uint8)

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None) -> list[int]:
        """Return the mask of a part: ``num_tokens`` ones, or zeros if its type is masked."""
        return [int(part_type not in self.masked)] * checked_count("num_tokens", num_tokens, least=0)

    def generate_for_eos(self) -> int:
        """Return 1 if the token that ends a document is in the loss, else 0."""
        return int(self.eos)


def described_generator(generator: AuxGenerator) -> dict[str, Any]:
    """Return the description of a generator, JSON-safe: its class, and its attributes as they are printed.

    Example:
        >>> described_generator(LossMask(masked=("prompt",)))
        {'class': 'seekable.formats.tokens.tokenizing.parts.LossMask', 'eos': 'True', 'masked': "['prompt']"}
    """
    if isinstance(generator, LossMask):
        attributes: dict[str, Any] = {"masked": generator.masked, "eos": generator.eos}
    else:
        attributes = dict(getattr(generator, "__dict__", {}))
    shown = {name: _shown(value) for name, value in sorted(attributes.items())}
    return {"class": f"{module_name(type(generator))}.{type(generator).__qualname__}", **shown}


def _shown(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_shown, value)))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return f"{module_name(type(value))}.{type(value).__qualname__}"


def is_mask(generator: AuxGenerator) -> bool:
    """Return True for a loss mask, of seekable or of data-forager."""
    return isinstance(generator, LossMask) or marks_left_out(generator)


def marks_left_out(generator: AuxGenerator) -> bool:
    """Return True for the loss mask of data-forager, in which 1 marks what is left out of the loss."""
    return any(
        base.__name__ == "LossMaskGenerator" and base.__module__.partition(".")[0] == "data_forager"
        for base in type(generator).__mro__
    )


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
        """The rule by which spans are read, JSON-safe."""
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
            raise UnfitDocument(index, f"{self.name!r} must be a list of spans (got {_cut_repr(value)})")
        return np.array([self._span(span, number, limit, index) for number, span in enumerate(value)], SPAN)

    def _span(self, span: Any, number: int, limit: int, index: int) -> tuple[int, int, int]:
        where = f"span {number} of {self.name!r}"
        parts: Any = [span.get(key) for key in _KEYS] if isinstance(span, Mapping) else span
        try:
            start, end, label = parts
        except (TypeError, ValueError):
            why = f"{where} must be [start, end, label] (got {_cut_repr(span)})"
            raise UnfitDocument(index, why) from None
        if not _is_integer(start) or not _is_integer(end):
            raise UnfitDocument(index, f"{where} must begin and end at integers (got {_cut_repr(span)})")
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
        raise UnfitDocument(index, f"the label of {where} must be {wanted} (got {_cut_repr(label)}){way}")


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


def _cut_repr(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
