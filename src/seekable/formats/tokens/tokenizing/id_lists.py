"""The engine of documents that are lists of ids already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import Engine, UnfitDocument, checked_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["IdLists", "flat_array", "id_lists", "joined_ids"]


@dataclass(frozen=True, slots=True)
class IdLists(Engine):
    """Takes lists and arrays of ids as they are."""

    name: ClassVar[str] = "ids"
    tokenizer: Engine | None
    """The tokenizer that the ids are of, if the user gave it."""

    vocabulary: int | None
    digest: str

    @property
    def library(self) -> str:
        """The package of the tokenizer; empty without one."""
        return "" if self.tokenizer is None else self.tokenizer.library

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """No functions: ids are taken as they are."""
        return ()

    def encode(self, texts: Sequence[Any]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of lists or arrays of integers, joined."""
        return joined_ids([flat_array(ids, index) for index, ids in enumerate(texts)])

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids; see `Engine.decode`."""
        if self.tokenizer is None:
            message = "lists of ids have no text without their tokenizer: give tokenizer="
            raise InvalidArgument(message)
        return self.tokenizer.decode(ids)

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if self.tokenizer is None:
            return checked_id(token, None, of="a list of ids")
        return self.tokenizer.id_of(token)

    def keeping_as_text(self, ids: tuple[int, ...]) -> IdLists:
        """Return the engine itself: there are no texts."""
        return self

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: nothing is made that could be compared."""


def id_lists(tokenizer: Engine | None = None) -> IdLists:
    """Return the engine of lists of ids.

    Args:
        tokenizer: the tokenizer that they are of, which names their ends; None if it is not known.
    """
    if tokenizer is None:
        return IdLists(None, None, "")
    return IdLists(tokenizer, tokenizer.vocabulary, tokenizer.digest)


def flat_array(ids: Any, index: int) -> NDArray[np.integer[Any]]:
    """Return a list or an array of ids as an array of integers.

    Args:
        ids: the ids of a text.
        index: the place of the text, for the error.

    Raises:
        UnfitDocument: they are no flat list of integers.
    """
    try:
        array = np.asarray(ids)
    except (ValueError, OverflowError) as error:
        raise UnfitDocument(index, f"its ids are no flat list of integers: {error}") from error
    if array.ndim == 1 and not len(array):
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        found = f"{array.dtype} of shape {array.shape}"
        raise UnfitDocument(index, f"its ids are no flat list of integers (got {found})")
    return array


def joined_ids(arrays: Sequence[NDArray[np.integer[Any]]]) -> tuple[NDArray[np.integer[Any]], Int64s]:
    """Return arrays of ids one after another, and the length of each.

    Raises:
        UnfitDocument: an id needs more than 63 bits.
    """
    lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
    kinds = {array.dtype for array in arrays if len(array)}
    if len(kinds) == 1:
        return np.concatenate(arrays, dtype=kinds.pop(), casting="unsafe"), lengths
    for index, array in enumerate(arrays):
        if array.dtype == np.uint64 and len(array) and int(array.max()) >= 1 << 63:
            raise UnfitDocument(index, f"the id {int(array.max())} is no token: ids are below 2**32")
    return np.concatenate(arrays, dtype=np.int64, casting="unsafe"), lengths
