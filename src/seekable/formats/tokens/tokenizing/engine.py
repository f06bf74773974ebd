"""The contract of a tokenizer, whichever package it comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["Engine", "UnfitDocument", "checked_id", "fail_at_culprit", "wrong_tokenizer"]


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
