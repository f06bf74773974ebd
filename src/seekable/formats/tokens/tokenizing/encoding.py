"""Records to token ids, with the ends of documents in place: the work of one process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._spans import SPAN
from seekable.formats.tokens.tokenizing.engine import LocatingEngine, UnfitDocument, flat_array
from seekable.formats.tokens.tokenizing.parts import is_mask, marks_left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.formats.tokens.tokenizing.parts import AuxGenerator, DocumentSpans, SpanColumn

__all__ = [
    "LOSS_MASK",
    "AlignedArray",
    "DocumentTexts",
    "EncodedDocuments",
    "GivenValues",
    "IdColumn",
    "PartTexts",
    "Taken",
    "TextColumn",
    "Tokenizing",
    "ValuesOfParts",
]

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
        """Return the index of the document that a text belongs to."""
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
    """The texts of one column, and spans beside them; a record that is a string is a text itself."""

    column: str
    beside: tuple[str, ...] = ()
    """The columns of spans."""

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
        values = {
            name: [_column(record, name, index) for index, record in enumerate(records)]
            for name in self.beside
        }
        return Taken(texts, values=values)


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


_BATCH_DOCUMENTS = 1000
"""The most documents of a batch, for each million characters that the engine takes together."""


LOSS_MASK = "loss_mask"
"""The array beside tokens that says which are trained on: 1 = in the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedDocuments:
    """The tokens of some documents, as they are written."""

    ids: NDArray[np.integer[Any]]
    """The ids of all documents, one after another, EOS and BOS included, in the dtype of the file."""

    lengths: Int64s
    """The number of ids of each document, EOS and BOS included."""

    aligned: dict[str, NDArray[Any]]
    """The arrays beside the tokens by name, one value for each of ``ids``."""

    empty: int
    """The number of documents without any id but EOS and BOS."""

    spans: dict[str, DocumentSpans] = field(default_factory=dict)
    """The spans beside the tokens by name, counted from BOS."""


@dataclass(frozen=True, slots=True)
class Tokenizing:
    """The way from records to tokens, the same in every process. Picklable."""

    engine: Engine
    documents: DocumentTexts
    """Takes texts, or lists of ids, out of records."""

    dtype: np.dtype[Any]
    """The dtype of the ids in files, little-endian."""

    eos: int | None
    """The id after each document; None for none."""

    bos: int | None
    """The id before each document; None for none."""

    aligned: tuple[AlignedArray, ...]
    """The arrays beside the tokens, in the order of their names."""

    spans: tuple[SpanColumn, ...] = ()
    """The spans beside the tokens, in the order of their names."""

    @property
    def arrays(self) -> tuple[tuple[str, np.dtype[Any]], ...]:
        """The name and the type of all that is stored beside the tokens."""
        aligned = tuple((array.name, array.dtype) for array in self.aligned)
        return (*aligned, *((column.name, SPAN) for column in self.spans))

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions of the user that decide the tokens, whose code may change under the same name."""
        return (*self.engine.functions, *self.documents.functions)

    def encode(self, records: Sequence[Any]) -> EncodedDocuments:
        """Return the tokens of some records at once.

        Raises:
            UnfitDocument: a record cannot become tokens; its place in ``records`` is named.
        """
        return self._encoded(self.documents.take(records), len(records))

    def encoded(self, records: Sequence[Any]) -> Iterator[EncodedDocuments]:
        """Yield the tokens of records in batches of as many characters as the engine takes together.

        Raises:
            UnfitDocument: a record cannot become tokens.
        """
        taken = self.documents.take(records)
        for start, stop in _batches(taken, len(records), self.engine.together):
            try:
                yield self._encoded(_slice(taken, start, stop), stop - start)
            except UnfitDocument as error:
                raise UnfitDocument(start + error.index, error.why) from error.__cause__

    def _encoded(self, taken: Taken, documents: int) -> EncodedDocuments:
        ids, lengths, places = self._ids(taken)
        of_documents = lengths if taken.counts is None else _sums(lengths, taken.counts)
        self._check(ids, of_documents)
        aligned = {
            array.name: _with_ends(
                array.values(taken, ids, lengths),
                of_documents,
                *array.ends(self.bos, self.eos),
                array.dtype,
            )
            for array in self.aligned
        }
        return EncodedDocuments(
            ids=_with_ends(ids, of_documents, self.bos, self.eos, self.dtype),
            lengths=of_documents + ((self.bos is not None) + (self.eos is not None)),
            aligned=aligned,
            empty=documents - int(np.count_nonzero(of_documents)),
            spans={
                column.name: column.made(
                    taken.values[column.name],
                    taken.texts,
                    lengths,
                    places if column.counts_characters else None,
                    shift=int(self.bos is not None),
                )
                for column in self.spans
            },
        )

    def _ids(self, taken: Taken) -> tuple[NDArray[np.integer[Any]], Int64s, NDArray[np.int64] | None]:
        """Return the ids of all texts, their counts by text, and their characters, if spans need them."""
        engine = self.engine
        if not taken.texts:
            return np.empty(0, self.dtype), np.zeros(0, np.int64), None
        try:
            if isinstance(engine, LocatingEngine) and any(each.counts_characters for each in self.spans):
                return engine.encode_located(taken.texts)
            return *engine.encode(taken.texts), None
        except UnfitDocument as error:
            raise UnfitDocument(taken.document_of(error.index), error.why) from error.__cause__

    def _check(self, ids: NDArray[np.integer[Any]], lengths: Int64s) -> None:
        """Check that the dtype holds each id.

        Raises:
            UnfitDocument: one of them does not fit.
        """
        if not len(ids):
            return
        high = int(ids.max())
        low = int(ids.min()) if ids.dtype.kind == "i" else 0
        most = int(np.iinfo(self.dtype).max)
        if low >= 0 and high <= most:
            return
        place = int(np.argmin(ids) if low < 0 else np.argmax(ids))
        index = int(np.searchsorted(np.cumsum(lengths), place, side="right"))
        why = f"token {place - int(lengths[:index].sum())} of it has the id {ids[place]}, and "
        rule = f"{self.dtype.name} holds ids from 0 to {most:,}"
        raise UnfitDocument(index, f"{why}{rule}{'' if low < 0 else ': give a larger dtype='}")


def _batches(taken: Taken, documents: int, together: int) -> Iterator[tuple[int, int]]:
    """Yield the first document of each batch and the one after its last."""
    sizes = _sizes(taken.texts)
    if taken.counts is not None:
        sizes = _sums(sizes, taken.counts)
    ends = np.cumsum(sizes)
    start = 0
    while start < documents:
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + together, side="right"))
        stop = min(max(fitting, start + 1), start + _BATCH_DOCUMENTS * (together >> 20), documents)
        yield start, stop
        start = stop


def _sizes(texts: Sequence[Any]) -> Int64s:
    """Return the number of characters or ids of each text.

    Raises:
        UnfitDocument: one of them has no length, so it is neither a text nor a list of ids.
    """
    try:
        return np.fromiter(map(len, texts), np.int64, len(texts))
    except TypeError:
        for index, ids in enumerate(texts):
            flat_array(ids, index)
        raise


def _slice(taken: Taken, start: int, stop: int) -> Taken:
    values = {name: of_documents[start:stop] for name, of_documents in taken.values.items()}
    if taken.counts is None:
        return Taken(taken.texts[start:stop], None, [], values)
    first = int(taken.counts[:start].sum())
    last = first + int(taken.counts[start:stop].sum())
    return Taken(taken.texts[first:last], taken.counts[start:stop], taken.kinds[first:last], values)


def _sums(lengths: Int64s, counts: Int64s) -> Int64s:
    """Return the sums of consecutive lengths, ``counts[i]`` of them each."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    bounds = np.cumsum(counts)
    sums: Int64s = ends[bounds] - ends[bounds - counts]
    return sums


def _with_ends(
    values: NDArray[Any], lengths: Int64s, before: int | None, after: int | None, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return values of documents with one more before and after each, in a new dtype.

    Args:
        values: the values of all documents, which ``dtype`` can hold.
        lengths: the number of values of each document.
        before: the value before each document; None for none.
        after: the value after each document; None for none.
        dtype: the dtype of the result.
    """
    lead, extra = int(before is not None), (before is not None) + (after is not None)
    if not extra:
        return values.astype(dtype, copy=False)
    made = np.empty(len(values) + extra * len(lengths), dtype)
    ends = np.cumsum(lengths)
    starts = (ends - lengths).tolist()
    for number, (start, end) in enumerate(zip(starts, ends.tolist(), strict=True)):
        shift = number * extra + lead
        made[start + shift : end + shift] = values[start:end]
    added = extra * np.arange(1, len(lengths) + 1)
    if after is not None:
        made[ends + added - 1] = after
    if before is not None:
        made[ends - lengths + added - extra] = before
    return made


class AlignedArray(ABC):
    """Makes one array beside the tokens. Picklable."""

    name: str
    dtype: np.dtype[Any]

    @abstractmethod
    def ends(self, bos: int | None, eos: int | None) -> tuple[Any, Any]:
        """Return the values of a BOS before a document and of an EOS after it; None for one that is not put.

        Args:
            bos: the id of the BOS; None for none.
            eos: the id of the EOS; None for none.

        Raises:
            UnfitDocument: the generator of the values fails, or the dtype cannot hold one of them.
        """

    @abstractmethod
    def values(self, taken: Taken, ids: NDArray[np.integer[Any]], lengths: Int64s) -> NDArray[Any]:
        """Return the values of all tokens of some documents.

        Args:
            taken: the texts of the documents.
            ids: the ids of all texts, one text after another.
            lengths: the number of ids of each text.

        Raises:
            UnfitDocument: the values of a document do not fit its ids, or the dtype.
        """


@dataclass(frozen=True, slots=True)
class ValuesOfParts(AlignedArray):
    """Values that a generator makes by the types of parts."""

    name: str
    dtype: np.dtype[Any]
    generator: AuxGenerator
    is_reversed: bool = False
    """True if a mask counts the other way than is wanted: its values are turned round, 1 to 0 and 0 to 1."""

    def ends(self, bos: int | None, eos: int | None) -> tuple[Any, Any]:
        """Return the values for BOS and EOS: a mask leaves BOS out, else it is a part "bos"."""
        before = after = None
        if bos is not None:
            is_out = is_mask(self.generator)
            before = int(marks_left_out(self.generator)) if is_out else self._made("bos", [bos], 0)[0]
        if eos is not None:
            after = self._called(self.generator.generate_for_eos, 0)
        return self._stored(before), self._stored(after)

    def values(self, taken: Taken, ids: NDArray[np.integer[Any]], lengths: Int64s) -> NDArray[Any]:
        """Return the values of all tokens; see `AlignedArray.values`."""
        made: list[Any] = []
        start = 0
        for kind, length in zip(taken.kinds, lengths.tolist(), strict=True):
            tokens = ids[start : start + length].tolist()
            start += length
            made.append(self._made(kind, tokens, taken.document_of(len(made))))
        joined = [value for of_part in made for value in of_part]
        array = _fitted(np.asarray(joined) if joined else np.empty(0, self.dtype), self.dtype, self.name, 0)
        return 1 - array if self.is_reversed else array

    def _made(self, kind: str, tokens: list[int], index: int) -> Any:
        """Return the values of one part, one for each of its ids."""
        length = len(tokens)
        of_part = self._called(lambda: self.generator.generate(kind, length, part_tokens=tokens), index)
        if len(of_part) != length:
            why = f"align[{self.name!r}] made {len(of_part)} values for a part of {length} tokens"
            raise UnfitDocument(index, why)
        return of_part

    def _called(self, function: Callable[[], Any], index: int) -> Any:
        try:
            return function()
        except Exception as error:
            why = f"align[{self.name!r}] raised {type(error).__name__}: {error}"
            raise UnfitDocument(index, why) from error

    def _stored(self, value: Any) -> Any:
        """Return the value of an end in the dtype, turned round if the mask is; None for None."""
        if value is None:
            return None
        stored = _fitted(np.asarray([value]), self.dtype, self.name, 0)[0]
        return 1 - stored if self.is_reversed else stored


@dataclass(frozen=True, slots=True)
class GivenValues(AlignedArray):
    """Values that records have beside their ids."""

    name: str
    dtype: np.dtype[Any]

    def ends(self, bos: int | None, eos: int | None) -> tuple[Any, Any]:
        """Return 0 and 0; in a loss mask EOS has 1, because a model has to learn where to end."""
        return None if bos is None else 0, None if eos is None else int(self.name == LOSS_MASK)

    def values(self, taken: Taken, ids: NDArray[np.integer[Any]], lengths: Int64s) -> NDArray[Any]:
        """Return the values of all tokens; see `AlignedArray.values`."""
        arrays = []
        for index, (values, length) in enumerate(zip(taken.values[self.name], lengths.tolist(), strict=True)):
            array = np.asarray(values)
            if array.shape != (length,):
                why = f"{self.name!r} has shape {array.shape}, and it has {length} tokens: one value a token"
                raise UnfitDocument(index, why)
            arrays.append(_fitted(array, self.dtype, self.name, index))
        return np.concatenate(arrays) if arrays else np.empty(0, self.dtype)


def _fitted(array: NDArray[Any], dtype: np.dtype[Any], name: str, index: int) -> NDArray[Any]:
    """Return values in the dtype of their array.

    Raises:
        UnfitDocument: a value changes by that.
    """
    if array.dtype == dtype or not array.size:
        return array.astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        try:
            made = array.astype(dtype)
        except (TypeError, ValueError) as error:
            raise UnfitDocument(index, f"{name!r} cannot become {dtype}: {error}") from error
    if dtype.kind in "iub" and bool((made != array).any()):
        odd = array[made != array][0]
        raise UnfitDocument(index, f"{name!r} has the value {odd}, which {dtype} cannot hold")
    return made
