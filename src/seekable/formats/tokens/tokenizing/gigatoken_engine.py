"""The package gigatoken, which makes the ids of Hugging Face's tokenizers much faster."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import fail_at_culprit
from seekable.formats.tokens.tokenizing.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gigatoken
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, TokenizerKey
else:
    gigatoken = optional("gigatoken", extra="gigatoken")

__all__ = ["Gigatoken", "gigatoken_engine"]


@dataclass(frozen=True, slots=True)
class Gigatoken(StandIn):
    """Encodes by gigatoken what a tokenizer of Hugging Face would encode, to the same ids."""

    name: ClassVar[str] = "gigatoken"

    @property
    def library(self) -> str:
        """The version of the package gigatoken."""
        return f"gigatoken {metadata.version('gigatoken')}"

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        tokenizer = self._loaded()
        try:
            layout = tokenizer.encode_batch(list(texts), parallel=False).layout
        except Exception as error:  # noqa: BLE001 - the package raises whatever its Rust code does
            fail_at_culprit(tokenizer.encode, texts, error)
        offsets = np.asarray(layout.offsets.data, dtype=np.int64)
        ids = layout.content.data[offsets[0] : offsets[-1]]
        return ids, np.diff(offsets)

    def _loaded(self) -> Any:
        return _load(self.reference.key)


def gigatoken_engine(reference: HuggingFace) -> Gigatoken:
    """Return the engine that makes the ids of a tokenizer of Hugging Face by gigatoken."""
    return Gigatoken(reference, reference.digest, reference.vocabulary)


@functools.lru_cache(maxsize=8)
def _load(key: TokenizerKey) -> Any:
    """Return a tokenizer without the special tokens, which are text where they are written out.

    Raises:
        InvalidArgument: gigatoken cannot load the tokenizer.
    """
    described = msgspec.json.decode(key.json)
    added = described.get("added_tokens") or []
    described["added_tokens"] = [
        token for token in added if not token.get("special") and token["id"] not in key.as_text
    ]
    try:
        return gigatoken.Tokenizer.from_json(msgspec.json.encode(described))
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        message = f"gigatoken cannot load this tokenizer: {error}: leave out engine=, or give engine='hf'"
        raise InvalidArgument(message) from error
