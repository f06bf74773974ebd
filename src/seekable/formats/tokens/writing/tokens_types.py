"""The dtypes of the arrays of a token store: those that the user chose, else as the first records are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import WrongType
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.formats.tokens.tokenizing.token_dtype import default_dtype, token_dtype
from seekable.nodes.graph import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seekable.formats.file_format import Preview
    from seekable.formats.tokens.tokenizing.document_texts import Taken
    from seekable.formats.tokens.tokenizing.encoding import Tokenizing

__all__ = ["AskedTypes", "compared_engines", "settled_types"]


@dataclass(frozen=True, slots=True)
class AskedTypes:
    """The dtypes that a user chose, little-endian; None where the records decide."""

    dtype: np.dtype[Any] | None
    """That of the tokens."""

    aligned: tuple[tuple[str, np.dtype[Any] | None], ...] = ()
    """That of each array beside the tokens, in their order."""

    @property
    def options(self) -> dict[str, Any]:
        """The dtypes as options, JSON-safe."""
        aligned = [name if dtype is None else f"{name}: {dtype.name}" for name, dtype in self.aligned]
        return {"dtype": None if self.dtype is None else self.dtype.name, "align": aligned}


def settled_types(
    tokenizing: Tokenizing, asked: AskedTypes, preview: Preview, *, megatron: bool
) -> list[np.dtype[Any]]:
    """Return the dtype of the tokens, then those of the arrays beside them, little-endian.

    Args:
        tokenizing: what makes tokens of records.
        asked: the dtypes that the user chose.
        preview: some of the records; they are read only if something depends on them.
        megatron: True for the dtypes that Megatron chooses.

    Raises:
        WrongType: a record is no document, or an array beside its tokens is none of numbers.
    """
    has_ids = tokenizing.engine.name == "ids" and tokenizing.engine.vocabulary is None
    depends = (asked.dtype is None and has_ids) or any(dtype is None for _, dtype in asked.aligned)
    taken = [each for each, _ in _taken(tokenizing, preview)] if depends else []
    dtype = asked.dtype
    if dtype is None and has_ids:
        lists = [ids for each in taken for ids in each.texts]
        dtype = np.dtype(_ids_dtype(lists, preview, megatron=megatron))
    elif dtype is None:
        dtype = token_dtype(None, tokenizing.engine, megatron=megatron)
    others = []
    for name, chosen in asked.aligned:
        values = () if chosen is not None else (value for each in taken for value in each.values[name])
        others.append(_values_dtype(name, values) if chosen is None else chosen)
    return [dtype, *others]


def compared_engines(tokenizing: Tokenizing, preview: Preview) -> dict[str, Any] | None:
    """Return the result of the comparison of an engine with another one; None if none is required.

    Raises:
        WrongType: a record is no document.
        InvalidArgument: the engines do not agree.
    """
    if tokenizing.engine.compared([]) is None:
        return None
    texts: list[str] = []
    names: list[Callable[[], str]] = []
    for taken, named in _taken(tokenizing, preview):
        texts += taken.texts
        names += [partial(named, taken.document_of(text)) for text in range(len(taken.texts))]
    try:
        return tokenizing.engine.compared(texts)
    except UnfitDocument as error:
        message = f"{names[error.index]()} cannot be written as tokens: {error.why}"
        raise WrongType(message) from error


def _taken(tokenizing: Tokenizing, preview: Preview) -> Iterator[tuple[Taken, Callable[[int], str]]]:
    """Yield the texts of some documents, and the function that names one of them by its place."""
    for records, named in preview.read():
        places = [place for place, record in enumerate(records) if record is not HOLE]

        def name(document: int, named: Callable[[int], str] = named, places: Sequence[int] = places) -> str:
            return named(places[document])

        try:
            yield tokenizing.documents.take([records[place] for place in places]), name
        except UnfitDocument as error:
            message = f"{name(error.index)} cannot be written as tokens: {error.why}"
            raise WrongType(message) from error


def _ids_dtype(lists: Sequence[Any], preview: Preview, *, megatron: bool) -> str:
    """Return the dtype of ids without a tokenizer: uint16 if that is certain to hold all of them."""
    wide = default_dtype(None, megatron=megatron)
    if not preview.is_all:
        small = (np.uint8, np.uint16)
        narrow = bool(lists) and all(isinstance(ids, np.ndarray) and ids.dtype in small for ids in lists)
        return "<u2" if narrow and not megatron else wide
    try:
        largest = max((int(np.max(ids)) for ids in lists if len(ids)), default=0)
    except (TypeError, ValueError):  # The writer names the record that is no list of ids.
        return wide
    return default_dtype(largest + 1, megatron=megatron)


def _values_dtype(name: str, values: Iterable[Any]) -> np.dtype[Any]:
    """Return the dtype of an array beside the tokens: that of arrays, or one for the numbers of lists.

    Raises:
        WrongType: it has something else than numbers.
    """
    found: set[np.dtype[Any]] = set()
    for value in values:
        array = np.asarray(value)
        if array.size and not isinstance(value, np.ndarray):
            found.add(_list_dtype(array))
        elif array.size or isinstance(value, np.ndarray):
            found.add(array.dtype)
    dtype = np.result_type(*found) if found else np.dtype(np.int32)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:  # noqa: PLR2004 - 64 bits
        message = f"the array {name!r} has values of type {dtype}: one number a token is needed"
        raise WrongType(message)
    return dtype.newbyteorder("<")


def _list_dtype(array: np.ndarray[Any, Any]) -> np.dtype[Any]:
    """Return a dtype for the numbers of a list: uint8 for 0 and 1, else 32 bits if that is enough."""
    if array.dtype.kind == "f":
        return np.dtype(np.float32)
    found: np.dtype[Any] = array.dtype
    if found.kind != "i":
        return found
    low, high = int(array.min()), int(array.max())
    if low >= 0 and high <= 1:
        return np.dtype(np.uint8)
    return np.dtype(np.int32 if max(-low - 1, high) < 1 << 31 else np.int64)
