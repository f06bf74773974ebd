"""Records to token ids, with the ends of documents in place: the work of one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tokens.tokenizing.document_texts import Taken
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.formats.tokens.tokenizing.id_lists import flat_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.aligned import AlignedArray
    from seekable.formats.tokens.tokenizing.document_texts import DocumentTexts
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["EncodedDocuments", "Tokenizing"]

_BATCH_DOCUMENTS = 1000
_BATCH_CHARACTERS = 1 << 20
"""A batch ends at whichever comes first. Larger ones are no faster, and hold their ids as Python objects."""


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
        """Yield the tokens of records in batches of at most 1,000 documents and about 1 MB of text.

        Raises:
            UnfitDocument: as of `encode`.
        """
        taken = self.documents.take(records)
        for start, stop in _batches(taken, len(records)):
            try:
                yield self._encoded(_slice(taken, start, stop), stop - start)
            except UnfitDocument as error:
                raise UnfitDocument(start + error.index, error.why) from error.__cause__

    def _encoded(self, taken: Taken, documents: int) -> EncodedDocuments:
        ids, lengths = self._ids(taken)
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
        )

    def _ids(self, taken: Taken) -> tuple[NDArray[np.integer[Any]], Int64s]:
        if not taken.texts:
            return np.empty(0, self.dtype), np.zeros(0, np.int64)
        try:
            return self.engine.encode(taken.texts)
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


def _batches(taken: Taken, documents: int) -> Iterator[tuple[int, int]]:
    """Yield the first document of each batch and the one behind its last."""
    sizes = _sizes(taken.texts)
    if taken.counts is not None:
        sizes = _sums(sizes, taken.counts)
    ends = np.cumsum(sizes)
    start = 0
    while start < documents:
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + _BATCH_CHARACTERS, side="right"))
        stop = min(max(fitting, start + 1), start + _BATCH_DOCUMENTS, documents)
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
