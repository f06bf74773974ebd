"""The texts of documents in records: of a column, of typed parts, or ids that are there already."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tokens.tokenizing.engine import UnfitDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable._typing import Int64s

__all__ = ["DocumentTexts", "IdColumn", "PartTexts", "Taken", "TextColumn"]

_SHOWN = 60
"""The most characters of a value in an error message."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """The texts of some documents."""

    texts: list[Any]
    """Texts, or lists of ids for the engine "ids"."""

    counts: Int64s | None = None
    """The number of texts of each document; None for one text each."""

    kinds: list[str] = field(default_factory=list)
    """The types of parts, one for each text."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    """The arrays beside the ids of each document, by name."""

    def document_of(self, text: int) -> int:
        """Return the number of the document that a text is of."""
        if self.counts is None:
            return text
        return int(np.searchsorted(np.cumsum(self.counts), text, side="right"))


class DocumentTexts(ABC):
    """Takes texts out of records. Picklable."""

    @property
    @abstractmethod
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions of the user that are called with records."""

    @abstractmethod
    def take(self, records: Sequence[Any]) -> Taken:
        """Return the texts of records.

        Raises:
            UnfitDocument: a record has none.
        """


@dataclass(frozen=True, slots=True)
class TextColumn(DocumentTexts):
    """The texts of one column; a record that is a string is a text itself."""

    column: str

    @property
    def functions(self) -> tuple[()]:
        """No functions: texts are taken as they are."""
        return ()

    def take(self, records: Sequence[Any]) -> Taken:
        """Return one text a record; see `DocumentTexts.take`."""
        try:
            texts = [record[self.column] for record in records]
        except (KeyError, TypeError, IndexError):
            texts = [_column(record, self.column, index) for index, record in enumerate(records)]
        for index, text in enumerate(texts):
            if type(text) is not str:
                _check_text(text, index, repr(self.column))
        return Taken(texts)


@dataclass(frozen=True, slots=True)
class PartTexts(DocumentTexts):
    """Typed parts, from a function of a record or from its column "parts"."""

    parts: Callable[[Any], Any] | None

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """Return the user's function, if there is one."""
        return () if self.parts is None else (self.parts,)

    def take(self, records: Sequence[Any]) -> Taken:
        """Return the texts of all parts; see `DocumentTexts.take`."""
        texts: list[str] = []
        kinds: list[str] = []
        counts = np.empty(len(records), np.int64)
        for index, record in enumerate(records):
            parts = (
                _column(record, "parts", index) if self.parts is None else _called(self.parts, record, index)
            )
            if isinstance(parts, str | Mapping) or not hasattr(parts, "__iter__"):
                why = f"its parts must be a list of sk.Part or of {{'type', 'text'}} (got {_shown(parts)})"
                raise UnfitDocument(index, why)
            before = len(texts)
            for part in parts:
                kind, text = _part(part, index)
                kinds.append(kind)
                texts.append(text)
            counts[index] = len(texts) - before
        return Taken(texts, counts, kinds)


@dataclass(frozen=True, slots=True)
class IdColumn(DocumentTexts):
    """Ids that a column holds, or that a function of a record returns under "tokens"."""

    column: str
    aligned: tuple[str, ...]
    """The names of the arrays beside the ids."""

    function: Callable[[Any], Any] | None = None

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """Return the user's function, if there is one."""
        return () if self.function is None else (self.function,)

    def take(self, records: Sequence[Any]) -> Taken:
        """Return one list of ids a record, and the arrays beside it; see `DocumentTexts.take`."""
        made = records if self.function is None else _all_called(self.function, records)
        ids = [_column(record, self.column, index) for index, record in enumerate(made)]
        values = {
            name: [_column(record, name, index) for index, record in enumerate(made)] for name in self.aligned
        }
        return Taken(ids, values=values)


def _all_called(function: Callable[[Any], Any], records: Sequence[Any]) -> list[Any]:
    return [_called(function, record, index) for index, record in enumerate(records)]


def _called(function: Callable[[Any], Any], record: Any, index: int) -> Any:
    try:
        return function(record)
    except Exception as error:
        raise UnfitDocument(index, f"the function parts= raised {type(error).__name__}: {error}") from error


def _column(record: Any, column: str, index: int) -> Any:
    if isinstance(record, Mapping):
        if column in record:
            return record[column]
        names = ", ".join(map(repr, record)) or "no columns"
        raise UnfitDocument(index, f"it has no column {column!r} (it has {names})")
    if isinstance(record, str) and column == "text":
        return record
    if isinstance(record, list | np.ndarray) and column == "tokens":
        return record
    raise UnfitDocument(index, f"it must be a dict with the column {column!r} (got {_shown(record)})")


def _part(part: Any, index: int) -> tuple[str, str]:
    if isinstance(part, Mapping):
        kind, text = part.get("type"), part.get("text")
    else:
        kind, text = getattr(part, "type", None), getattr(part, "text", None)
    if not isinstance(kind, str) or not isinstance(text, str):
        raise UnfitDocument(index, f"a part must have a type and a text, both strings (got {_shown(part)})")
    return kind, text


def _check_text(text: Any, index: int, where: str) -> None:
    if not isinstance(text, str):
        raise UnfitDocument(index, f"{where} must be a string (got {_shown(text)})")


def _shown(value: Any) -> str:
    shown = repr(value)
    return f"{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'} of type {type(value).__name__}"
