"""Models of SentencePiece, by its own package."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xxhash

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import FEW_TOGETHER, Engine, checked_id, fail_at_culprit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sentencepiece
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    sentencepiece = optional("sentencepiece", extra="sentencepiece")

__all__ = ["SentencePiece", "sentencepiece_engine"]


@dataclass(frozen=True, slots=True)
class SentencePiece(Engine):
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

    def keeping_as_text(self, ids: tuple[int, ...]) -> SentencePiece:
        """Return the engine itself, which reads no control symbol in texts."""
        return self

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: the model is what decides the ids."""

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


def sentencepiece_engine(data: bytes, *, of: str) -> SentencePiece:
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
