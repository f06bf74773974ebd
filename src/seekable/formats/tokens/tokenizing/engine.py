"""The contract of a tokenizer, whichever package it comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike, NDArray

    from seekable._typing import Int64s

__all__ = [
    "ENGINES",
    "FEW_TOGETHER",
    "MANY_TOGETHER",
    "Engine",
    "GivenIds",
    "IdLists",
    "LocatingEngine",
    "PlainEngine",
    "UnfitDocument",
    "checked_id",
    "default_dtype",
    "fail_at_culprit",
    "flat_array",
    "id_lists",
    "joined_ids",
    "token_dtype",
    "wrong_tokenizer",
]

FEW_TOGETHER, MANY_TOGETHER = 1 << 20, 1 << 22
"""About the characters that engines encode together. Fast ones lose time with each call; where ids are Python
objects, more are no faster, and take more memory."""

ENGINES = ("hf", "tiktoken", "gigatoken")
"""The names of engines that ``engine=`` accepts."""

_ALLOWED = ("uint8", "uint16", "uint32", "int32", "int64")

_MEGATRON_SMALL = 65_500
"""Megatron stores ids of smaller vocabularies as uint16, and those of others as int32."""


class UnfitDocument(Exception):
    """A document that cannot become tokens."""

    def __init__(self, index: int, why: str) -> None:
        """Name the document by its place.

        Args:
            index: the place of the document in the list that was given.
            why: the reason, for the error message.
        """
        super().__init__(index, why)
        self.index = index
        self.why = why

    def __str__(self) -> str:
        """Return the reason for the error message."""
        return self.why


class Engine(ABC):
    """A tokenizer: a picklable description, from which each process loads the tokenizer when it encodes.

    Threads may share an engine. It starts no threads of its own, and gives the same ids for the same text in
    every process.
    """

    name: ClassVar[str]
    """The package that makes the ids: "hf", "tiktoken" or "gigatoken"; "function" for a function of the user,
    "ids" where the documents are lists of ids already."""

    together: ClassVar[int]
    """About the characters, or ids, that are encoded together."""

    vocabulary: int | None
    """The largest id that can occur, plus 1, added tokens included; None where that is not known."""

    digest: str
    """A digest of what decides the ids: the tokenizer's file, the encoding, the name of the function."""

    @property
    @abstractmethod
    def library(self) -> str:
        """The package and its version, such as "tokenizers 0.23.3"; empty for functions and lists of ids."""

    @property
    @abstractmethod
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions of the user that make the ids, whose code may change under the same name."""

    @abstractmethod
    def encode(self, texts: Sequence[Any]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of texts, without ids before or after them.

        A special token that is written out in a text is text like any other.

        Args:
            texts: the texts, at least one; of the engine "ids", lists or arrays of ids.

        Returns:
            The ids of all texts, one text after another, and the number of ids of each text.

        Raises:
            UnfitDocument: one of the texts cannot be encoded.
        """

    @abstractmethod
    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids.

        Raises:
            InvalidArgument: the engine cannot make text of ids.
        """

    @abstractmethod
    def id_of(self, token: str | int) -> int:
        """Return the id of a token that is given as its text or as its id.

        Raises:
            InvalidArgument: the text is no single token of the vocabulary, or the id is outside of it.
        """

    @abstractmethod
    def keeping_as_text(self, ids: tuple[int, ...]) -> Engine:
        """Return an engine that reads tokens as text where they are written out in a text.

        Args:
            ids: the ids of the tokens, which stand between documents.
        """

    @abstractmethod
    def compared(self, texts: Sequence[str]) -> dict[str, Any] | None:
        """Compare the ids of some texts with those of another engine, where that is required.

        Returns:
            The result of the comparison, JSON-safe, to be kept with the tokens; None if none is required.

        Raises:
            InvalidArgument: the engines do not agree; the message shows the first text that differs.
        """


class PlainEngine(Engine):
    """An engine that reads no special token in texts, and is the one that decides its ids."""

    def keeping_as_text(self, ids: tuple[int, ...]) -> Self:
        """Return the engine itself, as it reads none."""
        return self

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: there is nothing to compare the ids with."""


class GivenIds(PlainEngine):
    """Base of engines whose ids a user makes; a tokenizer that is known makes texts of them."""

    tokenizer: Engine | None
    """The tokenizer that the ids are of, if it is known."""

    no_text: ClassVar[str]
    """The error for ids that are to become a text, without a tokenizer."""

    called: ClassVar[str]
    """The name of the engine in errors about ids of tokens."""

    @property
    def library(self) -> str:
        """The package of the tokenizer; empty without one."""
        return "" if self.tokenizer is None else self.tokenizer.library

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids; see `Engine.decode`."""
        if self.tokenizer is None:
            raise InvalidArgument(self.no_text)
        return self.tokenizer.decode(ids)

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if self.tokenizer is None:
            return checked_id(token, None, of=self.called)
        return self.tokenizer.id_of(token)


class LocatingEngine(Engine):
    """A tokenizer that says which characters of a text a token has."""

    @abstractmethod
    def encode_located(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.integer[Any]], Int64s, NDArray[np.int64]]:
        """Return the ids of texts as `encode` does, and where each token lies in its text.

        Args:
            texts: the texts, at least one.

        Returns:
            The ids of all texts, the number of ids of each, and for each id its first character and the one
            after its last, of shape (ids, 2). Tokens that share a character each have all of it.

        Raises:
            UnfitDocument: one of the texts cannot be encoded.
        """


def checked_id(token: str | int, vocabulary: int | None, *, of: str) -> int:
    """Return the id of a token that is given as an integer.

    Args:
        token: the id.
        vocabulary: the size of the vocabulary, None if it is not known.
        of: the tokenizer, for the error message.

    Raises:
        InvalidArgument: the id is outside of the vocabulary, or a text was given.
    """
    if isinstance(token, str):
        message = f"{of} cannot look up the token {token!r}: give its id"
        raise InvalidArgument(message)
    number = checked_count("the id of a token", token, least=0)
    if vocabulary is not None and number >= vocabulary:
        message = f"the id {number} is outside of the vocabulary of {of}, whose ids are 0 to {vocabulary - 1}"
        raise InvalidArgument(message)
    return number


def fail_at_culprit(encode: Callable[[Any], object], texts: Sequence[Any], error: BaseException) -> NoReturn:
    """Raise the error of the first text that cannot be encoded alone.

    Args:
        encode: encodes one text.
        texts: the texts, which could not be encoded together.
        error: the error of that.

    Raises:
        UnfitDocument: a text cannot be encoded.
        BaseException: ``error``, if each text alone can be encoded.
    """
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise UnfitDocument(index, f"its text is of type {type(text).__name__}") from error
        try:
            encode(text)
        except Exception as own:
            raise UnfitDocument(index, _reason(text, own)) from own
    raise error


def _reason(text: str, error: Exception) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as encoding:
        place, found = encoding.start, text[encoding.start]
        return f"its text has the lone surrogate {found!r} at character {place}, which is no character"
    return f"{type(error).__name__}: {error}"


def wrong_tokenizer(tokenizer: object) -> WrongType:
    """Return the error for an object that is no tokenizer."""
    message = (
        f"tokenizer must be the path of a tokenizer.json or of a folder with one, a tokenizers.Tokenizer, a "
        f"tokenizer of transformers, a tiktoken.Encoding, 'tiktoken:NAME', or a function of a text (got "
        f"{tokenizer!r} of type {type(tokenizer).__name__})"
    )
    return WrongType(message)


def token_dtype(dtype: DTypeLike | None, engine: Engine, *, megatron: bool = False) -> np.dtype[Any]:
    """Return the little-endian dtype of the ids of an engine.

    Args:
        dtype: the dtype that the user chose; None for uint16 if every id is at most 65,535, else uint32.
        engine: the engine; where its vocabulary is not known, the default is uint32.
        megatron: True for the dtypes that Megatron chooses: uint16 or int32.

    Raises:
        WrongType: ``dtype`` is no dtype.
        InvalidArgument: it is none for ids, or the vocabulary does not fit.

    Example:
        >>> from seekable.formats.tokens.tokenizing.engine import id_lists
        >>> token_dtype(None, id_lists()), token_dtype("uint16", id_lists())
        (dtype('uint32'), dtype('uint16'))
    """
    if dtype is None:
        return np.dtype(default_dtype(engine.vocabulary, megatron=megatron))
    chosen = checked_token_dtype(dtype)
    most = int(np.iinfo(chosen).max)
    if engine.vocabulary is not None and engine.vocabulary - 1 > most:
        message = (
            f"dtype={chosen.name} holds ids up to {most:,}, and the vocabulary has ids up to "
            f"{engine.vocabulary - 1:,}: leave out dtype=, or give a larger one"
        )
        raise InvalidArgument(message)
    return chosen


def checked_token_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the little-endian dtype of ids that a user chose.

    Raises:
        WrongType: it is no dtype.
        InvalidArgument: it is none for ids.

    Example:
        >>> checked_token_dtype(">u2")
        dtype('uint16')
    """
    try:
        chosen = np.dtype(np.dtype(dtype).newbyteorder("<").str)
    except (TypeError, ValueError) as error:
        message = f"dtype must be one of {', '.join(_ALLOWED)} (got {dtype!r})"
        raise WrongType(message) from error
    if chosen.name not in _ALLOWED:
        message = f"dtype must be one of {', '.join(_ALLOWED)} (got {chosen.name})"
        raise InvalidArgument(message)
    return chosen


def default_dtype(vocabulary: int | None, *, megatron: bool) -> str:
    """Return the dtype of the ids of a vocabulary, such as ``"<u2"``, where the user chose none.

    Args:
        vocabulary: the largest id that can occur, plus 1; None where that is not known.
        megatron: True for the dtypes that Megatron chooses.
    """
    if vocabulary is None:
        return "<i4" if megatron else "<u4"
    if megatron:
        return "<u2" if vocabulary < _MEGATRON_SMALL else "<i4"
    return "<u2" if vocabulary <= 1 << 16 else "<u4"


@dataclass(frozen=True, slots=True)
class IdLists(GivenIds):
    """Takes lists and arrays of ids as they are."""

    name: ClassVar[str] = "ids"
    together: ClassVar[int] = FEW_TOGETHER
    no_text: ClassVar[str] = "lists of ids have no text without their tokenizer: give tokenizer="
    called: ClassVar[str] = "a list of ids"
    tokenizer: Engine | None
    """The tokenizer that the ids are of, if the user gave it."""

    vocabulary: int | None
    digest: str

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """No functions: ids are taken as they are."""
        return ()

    def encode(self, texts: Sequence[Any]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of lists or arrays of integers, joined."""
        return joined_ids([flat_array(ids, index) for index, ids in enumerate(texts)])


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
