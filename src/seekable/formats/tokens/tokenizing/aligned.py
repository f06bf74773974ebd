"""The arrays beside the tokens of documents, which have one value for each token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.formats.tokens.tokenizing.parts import is_mask, marks_left_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.document_texts import Taken
    from seekable.formats.tokens.tokenizing.parts import AuxGenerator

__all__ = ["AlignedArray", "GivenValues", "ValuesOfParts"]

_LOSS_MASK = "loss_mask"


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
        """Return the values of BOS, out of the loss in a mask, else that of a part "bos", and of EOS."""
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
            why = f"aux[{self.name!r}] made {len(of_part)} values for a part of {length} tokens"
            raise UnfitDocument(index, why)
        return of_part

    def _called(self, function: Callable[[], Any], index: int) -> Any:
        try:
            return function()
        except Exception as error:
            why = f"aux[{self.name!r}] raised {type(error).__name__}: {error}"
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
        return None if bos is None else 0, None if eos is None else int(self.name == _LOSS_MASK)

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
