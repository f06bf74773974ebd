"""The engine of whatever a user gives as a tokenizer; models of SentencePiece."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import itertools
import os
import sys
import typing
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xxhash

from seekable._arguments import checked_path
from seekable._optional import optional
from seekable.errors import AccessDenied, DataNotFound, InvalidArgument
from seekable.formats.tokens.tokenizing.engine import (
    ENGINES,
    FEW_TOGETHER,
    Engine,
    GivenIds,
    PlainEngine,
    UnfitDocument,
    checked_id,
    fail_at_culprit,
    flat_array,
    joined_ids,
    wrong_tokenizer,
)
from seekable.formats.tokens.tokenizing.fast_engines import (
    gigatoken_engine,
    merged_ranks_engine,
    tiktoken_engine,
    tiktoken_named,
)
from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, huggingface_engine
from seekable.parallel.pickling import pickled_digest
from seekable.state.canonical import fingerprint_of
from seekable.state.functions import describe_function
from seekable.storage.paths import is_folder, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import sentencepiece
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    sentencepiece = optional("sentencepiece", extra="sentencepiece")

__all__ = ["SentencePiece", "engine_of", "unread_text_named"]


_FILE = "tokenizer.json"

_FIRST_PRINTED = 0x20
_JSON_SPACES = (b"\t", b"\n", b"\r")

_TIKTOKEN = "tiktoken:"


_NAMES_OF_LISTS = frozenset({"texts", "batch"})


def engine_of(tokenizer: Any, engine: str | None = None) -> Engine:
    """Return the engine of a tokenizer.

    Args:
        tokenizer: the path of a ``tokenizer.json``, of a folder with one, or of a model of SentencePiece; a
            ``tokenizers.Tokenizer``; a
            fast tokenizer of transformers; a ``tiktoken.Encoding``, or ``"tiktoken:"`` and the name of one; a
            function of a text that returns its ids, or of a list of texts that returns a list for each.
        engine: the package that makes the ids; None for the package that the tokenizer is of. ``"gigatoken"``
            and ``"tiktoken"`` make the ids of a tokenizer of Hugging Face faster, after a comparison.

    Raises:
        WrongType: it is no tokenizer.
        InvalidArgument: the engine cannot make the ids of this tokenizer.
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
        MissingDependency: the package is not installed.
    """
    if engine is not None and engine not in ENGINES:
        message = f"engine must be one of {', '.join(map(repr, ENGINES))}, or None (got {engine!r})"
        raise InvalidArgument(message)
    found = tokenizer if isinstance(tokenizer, Engine) else _own_engine(tokenizer)
    if engine is None or engine == found.name:
        return found
    if engine == "gigatoken" and isinstance(found, HuggingFace):
        return gigatoken_engine(found)
    if engine == "tiktoken" and isinstance(found, HuggingFace):
        return merged_ranks_engine(found)
    message = (
        f"engine={engine!r} cannot make the ids of this tokenizer, which are made by {found.name!r}: leave "
        f"out engine=, or give a tokenizer for it"
    )
    raise InvalidArgument(message)


def _own_engine(tokenizer: Any) -> Engine:
    if isinstance(tokenizer, str) and tokenizer.startswith(_TIKTOKEN):
        return tiktoken_named(tokenizer.removeprefix(_TIKTOKEN))
    if isinstance(tokenizer, str | os.PathLike):
        return _of_path(checked_path(tokenizer))
    if _is_a(tokenizer, "tiktoken", "Encoding"):
        return tiktoken_engine(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if _is_a(backend, "tokenizers", "Tokenizer"):
        return huggingface_engine(backend.to_str(), of="the tokenizer")
    if callable(getattr(tokenizer, "convert_tokens_to_ids", None)):
        message = (
            f"{type(tokenizer).__name__} is written in Python and has no tokenizer.json: give a function, "
            f"such as one that returns tokenizer.encode(text, add_special_tokens=False)"
        )
        raise InvalidArgument(message)
    if callable(tokenizer):
        return _function_engine(tokenizer, _owner(tokenizer))
    raise wrong_tokenizer(tokenizer)


def _owner(method: Any) -> Engine | None:
    """Return the engine of the tokenizer that a bound method is of; None for other functions."""
    owner = getattr(method, "__self__", None)
    if owner is None or isinstance(owner, type | str | bytes | os.PathLike):
        return None
    backend = getattr(owner, "backend_tokenizer", owner)
    known = _is_a(owner, "tiktoken", "Encoding") or _is_a(backend, "tokenizers", "Tokenizer")
    return _own_engine(owner) if known else None


def _is_a(thing: Any, module: str, name: str) -> bool:
    """Return True for an instance of a class of a package, which is not imported for that."""
    package = sys.modules.get(module)
    return package is not None and isinstance(thing, getattr(package, name))


def _of_path(path: str) -> Engine:
    file = os.path.join(path, _FILE) if is_folder(path) else path
    way_out = (
        f"give the path of a {_FILE}, or 'tiktoken:NAME'; a tokenizer "
        f"of the Hub is saved by tokenizers.Tokenizer.from_pretrained(name).save({_FILE!r})"
    )
    with unread_text_named("tokenizer", file, form=_FILE, way_out=way_out):
        data = read_bytes(file)
        if _is_sentencepiece(data):
            return _sentencepiece_engine(data, of=repr(file))
        return huggingface_engine(data.decode(), of=repr(file))


@contextmanager
def unread_text_named(what: str, path: str, *, form: str, way_out: str) -> Iterator[None]:
    """Turn the errors of a block that reads a file of text into errors that name the file.

    Args:
        what: the content of the file, in words.
        path: its path.
        form: the form that it must have.
        way_out: the advice where there is no file.

    Raises:
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
        InvalidArgument: it is not UTF-8.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataNotFound(f"there is no {what} at {path!r}: {way_out}") from None
    except PermissionError as error:
        raise AccessDenied(f"no permission to read the {what} {path!r}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path!r} is no {form}: it is not UTF-8 at byte {error.start}") from error


def _is_sentencepiece(data: bytes) -> bool:
    """Return True for a model of SentencePiece: a first piece with its size, in it a text with its own."""
    return data[:1] == data[2:3] == b"\n" and data[1] < _FIRST_PRINTED and data[1:2] not in _JSON_SPACES


@dataclass(slots=True)
class _Input:
    """The input of a function, as far as it is known."""

    takes_list: bool | None
    """True for a list of texts, False for one text, None as long as no text was encoded."""


@dataclass(frozen=True, slots=True)
class _TextFunction(GivenIds):
    """Calls a function of the user with each text, or with lists of texts.

    The annotation of its parameter says which of both it takes (``str``, or ``list[str]`` and the like), or
    else its name: ``texts`` and ``batch`` stand for a list. Any other function is called with one text first.
    If it returns a flat list of ids, they are used, and it takes one text; if it returns a list of lists, or
    fails, it is called with lists from then on.
    """

    name: ClassVar[str] = "function"
    together: ClassVar[int] = FEW_TOGETHER
    no_text: ClassVar[str] = "a function that makes ids cannot make texts of them: give a tokenizer"
    called: ClassVar[str] = "a function"
    fn: Callable[..., Any]
    digest: str
    vocabulary: int | None
    tokenizer: Engine | None
    """The engine of the tokenizer that ``fn`` is a method of, if it is one."""

    input: _Input = field(compare=False, repr=False)

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


def _function_engine(fn: Callable[..., Any], tokenizer: Engine | None = None) -> _TextFunction:
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
        described = _described_function(fn)
    vocabulary = None if tokenizer is None else tokenizer.vocabulary
    return _TextFunction(fn, fingerprint_of(described), vocabulary, tokenizer, _Input(_takes_list(fn)))


def _described_function(fn: Callable[..., Any]) -> Any:
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


@dataclass(frozen=True, slots=True)
class SentencePiece(PlainEngine):
    """A model of SentencePiece, carried as the bytes of its file."""

    name: ClassVar[str] = "sentencepiece"
    together: ClassVar[int] = FEW_TOGETHER
    model: bytes = field(repr=False, compare=False)
    digest: str
    vocabulary: int
    functions: ClassVar[tuple[()]] = ()

    @property
    def library(self) -> str:
        """The version of the package sentencepiece."""
        return f"sentencepiece {metadata.version('sentencepiece')}"

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        encode = self._loaded().encode
        try:
            lists = encode(list(texts), num_threads=1)
        except Exception as error:  # noqa: BLE001 - the package raises whatever its C++ code does
            fail_at_culprit(encode, texts, error)
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return np.fromiter(itertools.chain.from_iterable(lists), np.int64, int(lengths.sum())), lengths

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids; control symbols, such as those of ends, have none."""
        decoded: str = self._loaded().decode([int(number) for number in ids])
        return decoded

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if not isinstance(token, str):
            return checked_id(token, self.vocabulary, of="the model")
        loaded = self._loaded()
        number: int = loaded.piece_to_id(token)
        if loaded.id_to_piece(number) != token:
            message = f"{token!r} is no piece of the model: give one of it, such as '</s>', or an id"
            raise InvalidArgument(message)
        return number

    def _loaded(self) -> sentencepiece.SentencePieceProcessor:
        return _load(_Model(self.digest, self.model))


@dataclass(frozen=True, slots=True)
class _Model:
    """The key of a loaded model in a cache: models are compared by digests, not by their bytes."""

    digest: str
    data: bytes = field(compare=False, repr=False)


@functools.lru_cache(maxsize=8)
def _load(model: _Model) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model.data)


def _sentencepiece_engine(data: bytes, *, of: str) -> SentencePiece:
    """Return the engine of the bytes of a model.

    Args:
        data: the bytes.
        of: the file that they are of, for error messages.

    Raises:
        InvalidArgument: the package cannot read them.
        MissingDependency: the package is not installed.
    """
    digest = f"xxh3:{xxhash.xxh3_128_hexdigest(data)}"
    make = sentencepiece.SentencePieceProcessor
    try:
        size = make(model_proto=data).vocab_size()
    except Exception as error:
        message = f"{of} is no model that the package sentencepiece can read: {error}"
        raise InvalidArgument(message) from error
    return SentencePiece(data, digest, size)
