"""The arrays beside the tokens of documents, which have one value for each token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.tokens.engine import UnfitDocument
from seekable.tokens.parts import is_mask, marks_left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.tokens.document_texts import Taken
    from seekable.tokens.parts import AuxGenerator

__all__ = ["AlignedArray", "GivenValues", "ValuesOfParts"]

_LOSS_MASK = "loss_mask"


class AlignedArray(ABC):
    """Makes one array beside the tokens. Picklable."""

    name: str
    dtype: np.dtype[Any]

    @property
    @abstractmethod
    def ends(self) -> tuple[int, int]:
        """The values of a BOS before a document and of an EOS after it."""

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

    @property
    def ends(self) -> tuple[int, int]:
        """The values of BOS, which is out of the loss and else counts as a part "bos", and of EOS."""
        after = int(self.generator.generate_for_eos())
        if is_mask(self.generator):
            before = int(marks_left_out(self.generator))
        else:
            before = int(self.generator.generate("bos", 1, part_tokens=None)[0])
        return (1 - before, 1 - after) if self.is_reversed else (before, after)

    def values(self, taken: Taken, ids: NDArray[np.integer[Any]], lengths: Int64s) -> NDArray[Any]:
        """Return the values of all tokens; see `AlignedArray.values`."""
        made: list[Any] = []
        start = 0
        for kind, length in zip(taken.kinds, lengths.tolist(), strict=True):
            tokens = ids[start : start + length].tolist()
            start += length
            of_part = self.generator.generate(kind, length, part_tokens=tokens)
            if len(of_part) != length:
                why = f"aux[{self.name!r}] made {len(of_part)} values for a part of {length} tokens"
                raise UnfitDocument(_document(taken, len(made)), why)
            made.append(of_part)
        joined = [value for of_part in made for value in of_part]
        array = _fitted(np.asarray(joined) if joined else np.empty(0, self.dtype), self.dtype, self.name, 0)
        return 1 - array if self.is_reversed else array


@dataclass(frozen=True, slots=True)
class GivenValues(AlignedArray):
    """Values that records have beside their ids."""

    name: str
    dtype: np.dtype[Any]

    @property
    def ends(self) -> tuple[int, int]:
        """The values 0 and 0; in a loss mask EOS has 1, because a model has to learn where to end."""
        return 0, int(self.name == _LOSS_MASK)

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


def _document(taken: Taken, text: int) -> int:
    """Return the number of the document that a text is of."""
    if taken.counts is None:
        return text
    return int(np.searchsorted(np.cumsum(taken.counts), text, side="right"))


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
