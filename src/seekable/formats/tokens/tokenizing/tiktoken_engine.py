"""Encodings of the package tiktoken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xxhash

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import Engine, checked_id, fail_at_culprit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tiktoken
    from numpy.typing import NDArray

    from seekable._typing import Int64s
else:
    tiktoken = optional("tiktoken", extra="tiktoken")

__all__ = ["Tiktoken", "tiktoken_engine", "tiktoken_named"]


@dataclass(frozen=True, slots=True)
class Tiktoken(Engine):
    """An encoding of the package tiktoken, as an engine."""

    name: ClassVar[str] = "tiktoken"
    encoding: tiktoken.Encoding = field(compare=False)
    """The encoding. A registered one is pickled by its name, any other one as a whole."""

    digest: str
    vocabulary: int
    functions: ClassVar[tuple[()]] = ()

    @property
    def library(self) -> str:
        """The version of the package tiktoken."""
        return f"tiktoken {tiktoken.__version__}"

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        encode = self.encoding.encode_to_numpy
        try:
            arrays = [encode(text, disallowed_special=()) for text in texts]
        except Exception as error:  # noqa: BLE001 - the package raises whatever its Rust code does
            fail_at_culprit(lambda text: encode(text, disallowed_special=()), texts, error)
        return np.concatenate(arrays), np.fromiter(map(len, arrays), np.int64, len(arrays))

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids, special tokens included; bytes that are no UTF-8 become U+FFFD."""
        return self.encoding.decode([int(number) for number in ids])

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        if not isinstance(token, str):
            return checked_id(token, self.vocabulary, of=f"the encoding {self.encoding.name!r}")
        try:
            return self.encoding.encode_single_token(token)
        except KeyError:
            message = (
                f"{token!r} is no single token of the encoding {self.encoding.name!r}: give a token of it, "
                f"or an id"
            )
            raise InvalidArgument(message) from None

    def keeping_as_text(self, ids: tuple[int, ...]) -> Tiktoken:
        """Return the engine itself, which reads no special token in texts."""
        return self

    def compared(self, texts: Sequence[str]) -> None:
        """Return None: the encoding is what decides the ids."""


def tiktoken_engine(encoding: tiktoken.Encoding) -> Tiktoken:
    """Return the engine of an encoding."""
    digest = xxhash.xxh3_128(encoding._pat_str.encode())  # noqa: SLF001 - what the package itself pickles
    for bytes_of_token, rank in sorted(encoding._mergeable_ranks.items(), key=_by_rank):  # noqa: SLF001
        digest.update(b"%d %d " % (rank, len(bytes_of_token)))
        digest.update(bytes_of_token)
    for text, number in sorted(encoding._special_tokens.items()):  # noqa: SLF001
        digest.update(f"\n{number} {text}".encode())
    return Tiktoken(encoding, f"xxh3:{digest.hexdigest()}", encoding.max_token_value + 1)


def _by_rank(pair: tuple[bytes, int]) -> int:
    return pair[1]


def tiktoken_named(name: str) -> Tiktoken:
    """Return the engine of a registered encoding.

    Raises:
        InvalidArgument: there is none of this name, or its ranks cannot be had.
        MissingDependency: tiktoken is not installed.
    """
    get = tiktoken.get_encoding
    try:
        return tiktoken_engine(get(name))
    except ValueError as error:
        known = ", ".join(tiktoken.list_encoding_names())
        message = f"tiktoken has no encoding {name!r}: it has {known}"
        raise InvalidArgument(message) from error
    except Exception as error:
        message = f"the ranks of the encoding {name!r} cannot be loaded: {type(error).__name__}: {error}"
        raise InvalidArgument(message) from error
