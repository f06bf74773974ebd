"""Functions of the user that make ids of texts."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import Engine, UnfitDocument, checked_id
from seekable.formats.tokens.tokenizing.id_lists import flat_array, joined_ids
from seekable.parallel.pickling import pickled_digest
from seekable.state.canonical import fingerprint_of
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["TextFunction", "function_engine"]

_NAMES_OF_LISTS = frozenset({"texts", "batch"})


@dataclass(slots=True)
class _Input:
    """The input of a function, as far as it is known."""

    takes_list: bool | None
    """True for a list of texts, False for one text, None as long as no text was encoded."""


@dataclass(frozen=True, slots=True)
class TextFunction(Engine):
    """Calls a function of the user with each text, or with lists of texts.

    The annotation of its parameter says which of both it takes (``str``, or ``list[str]`` and the like), or
    else its name: ``texts`` and ``batch`` stand for a list. Any other function is called with one text first.
    If it returns a flat list of ids, they are used, and it takes one text; if it returns a list of lists, or
    fails, it is called with lists from then on.
    """

    name: ClassVar[str] = "function"
    fn: Callable[..., Any]
    digest: str
    vocabulary: int | None
    tokenizer: Engine | None
    """The engine of the tokenizer that ``fn`` is a method of, if it is one."""

    input: _Input = field(compare=False, repr=False)

    @property
    def library(self) -> str:
        """The package of the tokenizer; empty for a plain function."""
        return "" if self.tokenizer is None else self.tokenizer.library

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The function, unless it is the method of a tokenizer."""
        return (self.fn,) if self.tokenizer is None else ()

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        first: Any = None
        tried = -1
        if self.input.takes_list is None:
            tried = next((index for index, text in enumerate(texts) if text), 0)
            first = self._try(texts[tried], tried)
        if self.input.takes_list:
            return joined_ids(self._of_list(list(texts)))
        return joined_ids(
            [first if index == tried else self._of_text(text, index) for index, text in enumerate(texts)]
        )

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids, for the method of a tokenizer; see `Engine.decode`."""
        if self.tokenizer is None:
            message = "a function that makes ids cannot make texts of them: give a tokenizer"
            raise InvalidArgument(message)
        return self.tokenizer.decode(ids)

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if self.tokenizer is None:
            return checked_id(token, None, of="a function")
        return self.tokenizer.id_of(token)

    def keeping_as_text(self, ids: tuple[int, ...]) -> TextFunction:
        """Return the engine itself: the function decides."""
        return self

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: the function is what decides the ids."""

    def _try(self, text: str, index: int) -> NDArray[np.integer[Any]] | None:
        """Return the ids of one text, or None if the function takes lists of texts."""
        try:
            ids = flat_array(_ids(self.fn(text)), index)
        except Exception as error:  # noqa: BLE001 - a function may raise anything for an input of another type
            try:
                made = self._of_list([text])
            except Exception:  # noqa: BLE001 - the first error is the one to show
                raise UnfitDocument(index, _failure(error)) from error
            self.input.takes_list = True
            return made[0]
        self.input.takes_list = False if text else None
        return ids

    def _of_text(self, text: str, index: int) -> NDArray[np.integer[Any]]:
        try:
            made = self.fn(text)
        except Exception as error:
            raise UnfitDocument(index, _failure(error)) from error
        return flat_array(_ids(made), index)

    def _of_list(self, texts: list[str]) -> list[NDArray[np.integer[Any]]]:
        try:
            made = list(_ids(self.fn(texts)))
        except Exception as error:
            raise UnfitDocument(0, f"{_failure(error)}, for {len(texts)} texts from this one on") from error
        if len(made) != len(texts):
            why = (
                f"the tokenizing function returned {len(made)} lists for {len(texts)} texts from this one on"
            )
            raise UnfitDocument(0, why)
        return [flat_array(_ids(ids), index) for index, ids in enumerate(made)]


def function_engine(fn: Callable[..., Any], tokenizer: Engine | None = None) -> TextFunction:
    """Return the engine of a function.

    Args:
        fn: the function.
        tokenizer: the engine of the tokenizer that it is a method of; None for a plain function.

    Raises:
        InvalidArgument: the function has no name that says what it does, and no state that can be compared.
    """
    if tokenizer is not None:
        described: Any = [tokenizer.digest, getattr(fn, "__name__", "")]
    else:
        described = _described(fn)
    vocabulary = None if tokenizer is None else tokenizer.vocabulary
    return TextFunction(fn, fingerprint_of(described), vocabulary, tokenizer, _Input(_takes_list(fn)))


def _described(fn: Callable[..., Any]) -> Any:
    """Return the description of a function by its name, of an object or its method by its pickled state too.

    Raises:
        InvalidArgument: it has no name of its own, and is no object that can be pickled.
    """
    try:
        return describe_function(fn, None)
    except InvalidArgument as error:
        message = (
            f"{fn!r} has no name that says what it does, so the tokens could not be told from those of "
            f"another tokenizer: wrap it in a plain function"
        )
        if isinstance(fn, functools.partial):
            raise InvalidArgument(message) from error
        try:
            state = pickled_digest(getattr(fn, "__self__", fn))
        except Exception as failed:
            raise InvalidArgument(f"{message} (its state cannot be pickled: {failed})") from failed
        return [*describe_function(fn, "").values(), getattr(fn, "__name__", ""), state]


def _takes_list(fn: Callable[..., Any]) -> bool | None:
    """Return True or False for the input that the signature of a function names, None if it names none."""
    try:
        parameter = next(iter(inspect.signature(fn).parameters.values()), None)
        hints = typing.get_type_hints(fn if inspect.isroutine(fn) else type(fn).__call__)
    except (TypeError, ValueError, NameError, AttributeError):
        return None
    if parameter is None:
        return None
    hint = hints.get(parameter.name)
    origin = typing.get_origin(hint) or hint
    if origin is str:
        return False
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
        return True
    return True if hint is None and parameter.name in _NAMES_OF_LISTS else None


def _ids(made: Any) -> Any:
    """Return the ids in what tokenizers return: lists, objects with ``ids``, mappings with "input_ids"."""
    if isinstance(made, collections.abc.Mapping) and "input_ids" in made:
        return made["input_ids"]
    return getattr(made, "ids", made)


def _failure(error: BaseException) -> str:
    if isinstance(error, UnfitDocument):
        return error.why
    return f"the tokenizing function raised {type(error).__name__}: {error}"
