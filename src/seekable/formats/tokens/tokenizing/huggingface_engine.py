"""Tokenizers of the package tokenizers, and of the files tokenizer.json."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
import xxhash

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import (
    FEW_TOGETHER,
    LocatingEngine,
    checked_id,
    fail_at_culprit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import tokenizers
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    tokenizers = optional("tokenizers", extra="tokens")

__all__ = ["HuggingFace", "TokenizerKey", "huggingface_engine", "offsets_of", "without_threads"]


@dataclass(frozen=True, slots=True)
class HuggingFace(LocatingEngine):
    """A tokenizer of Hugging Face, carried as the text of its tokenizer.json."""

    name: ClassVar[str] = "hf"
    together: ClassVar[int] = FEW_TOGETHER
    json: str = field(repr=False)
    """The contents of tokenizer.json; they travel with the engine, so other machines need no file."""

    digest: str
    vocabulary: int
    as_text: tuple[int, ...] = ()
    """Ids of added tokens that are read as text though the file does not mark them as special."""

    functions: ClassVar[tuple[()]] = ()

    @property
    def library(self) -> str:
        """The version of the package tokenizers."""
        return f"tokenizers {tokenizers.__version__}"

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        tokenizer = self._loaded()
        try:
            with without_threads():
                encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except Exception as error:  # noqa: BLE001 - the package raises whatever its Rust code does
            fail_at_culprit(lambda text: tokenizer.encode(text, add_special_tokens=False), texts, error)
        ids = array("I")
        lengths = np.empty(len(texts), np.int64)
        for place, encoding in enumerate(encodings):
            found = encoding.ids
            lengths[place] = len(found)
            ids.fromlist(found)
        return np.frombuffer(ids, np.uint32) if ids else np.empty(0, np.uint32), lengths

    def encode_located(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s, NDArray[np.int64]]:
        """Return the ids of texts and their places; see `LocatingEngine.encode_located`."""
        tokenizer = self._loaded()
        try:
            with without_threads():
                encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        except Exception as error:  # noqa: BLE001 - the package raises whatever its Rust code does
            fail_at_culprit(lambda text: tokenizer.encode(text, add_special_tokens=False), texts, error)
        lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
        ids = itertools.chain.from_iterable(encoding.ids for encoding in encodings)
        offsets = np.concatenate([offsets_of(encoding.offsets) for encoding in encodings])
        return np.fromiter(ids, np.uint32, int(lengths.sum())), lengths, offsets

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids, special tokens included."""
        decoded: str = self._loaded().decode([int(number) for number in ids], skip_special_tokens=False)
        return decoded

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if not isinstance(token, str):
            return checked_id(token, self.vocabulary, of="the tokenizer")
        tokenizer = self._loaded()
        number: int | None = tokenizer.token_to_id(token)
        if number is None and token:
            ids = tokenizer.encode(token, add_special_tokens=False).ids
            number = ids[0] if len(ids) == 1 and self.decode(ids) == token else None
        if number is None:
            message = (
                f"{token!r} is no single token of the tokenizer's vocabulary: give a token of it, or an id"
            )
            raise InvalidArgument(message)
        return number

    def keeping_as_text(self, ids: tuple[int, ...]) -> HuggingFace:
        """Return an engine that reads added tokens as text; see `Engine.keeping_as_text`."""
        added = self._loaded().get_added_tokens_decoder()
        plain = tuple(sorted(number for number in set(ids) if number in added and not added[number].special))
        return replace(self, as_text=plain)

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: other engines are compared with this one."""

    @property
    def key(self) -> TokenizerKey:
        """The key of what is loaded of the tokenizer."""
        return TokenizerKey(self.digest, self.as_text, self.json)

    def _loaded(self) -> tokenizers.Tokenizer:
        return _load(self.key)


def offsets_of(pairs: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the places of tokens, as the package has them, as an array of shape (tokens, 2)."""
    flat = np.fromiter(itertools.chain.from_iterable(pairs), np.int64, 2 * len(pairs))
    return flat.reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class TokenizerKey:
    """The key of a loaded tokenizer in a cache; keys are compared by digests, not by megabytes of text."""

    digest: str
    as_text: tuple[int, ...]
    json: str = field(compare=False, repr=False)


@functools.lru_cache(maxsize=8)
def _load(key: TokenizerKey) -> tokenizers.Tokenizer:
    """Return a tokenizer that neither cuts nor pads, and reads special tokens as text."""
    tokenizer = tokenizers.Tokenizer.from_str(key.json)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    added = tokenizer.get_added_tokens_decoder()
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(added[number].content, normalized=False, special=True)
            for number in key.as_text
        ]
    )
    tokenizer.encode_special_tokens = True
    return tokenizer


def huggingface_engine(json: str, *, of: str) -> HuggingFace:
    """Return the engine of the contents of a tokenizer.json.

    Args:
        json: the contents.
        of: the file or the object that they are of, for error messages.

    Raises:
        InvalidArgument: the package tokenizers cannot read them, or the ids of a text are random.
        MissingDependency: the package is not installed.
    """
    read = tokenizers.Tokenizer.from_str
    try:
        tokenizer = read(json)
    except Exception as error:
        message = f"{of} is no tokenizer that the package tokenizers can read: {error}"
        raise InvalidArgument(message) from error
    if getattr(tokenizer.model, "dropout", None):
        message = (
            f"{of} drops merges at random (dropout={tokenizer.model.dropout}), so a text would have other "
            f'ids each time: set "dropout" of its model to null'
        )
        raise InvalidArgument(message)
    contents = msgspec.json.encode(msgspec.json.decode(json), order="sorted")  # without how it is laid out
    digest = f"xxh3:{xxhash.xxh3_128_hexdigest(contents)}"
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    return HuggingFace(json, digest, largest + 1)


_VARIABLE = "TOKENIZERS_PARALLELISM"


class _Users:
    """Counts the threads that encode, and keeps the value that the variable had before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: str | None = None

    def enter(self) -> None:
        """Switch threads of the package off."""
        with self._lock:
            if not self._count:
                self._before = os.environ.get(_VARIABLE)
                os.environ[_VARIABLE] = "false"
            self._count += 1

    def leave(self) -> None:
        """Give the caller's value back when the last thread leaves."""
        with self._lock:
            self._count -= 1
            if not self._count:
                self._restore()

    def forget_threads(self) -> None:
        """Start anew in a forked child, which has none of the threads that were encoding."""
        if self._count:
            self._restore()
        self._lock, self._count = threading.Lock(), 0

    def _restore(self) -> None:
        if self._before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = self._before


_USERS = _Users()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_USERS.forget_threads)


@contextlib.contextmanager
def without_threads() -> Iterator[None]:
    """Keep the package from starting threads: it reads an environment variable at each call."""
    _USERS.enter()
    try:
        yield
    finally:
        _USERS.leave()
