"""Tokenizers of Hugging Face that the package tiktoken can stand in for: byte-level BPE, by its merges."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.stand_in import StandIn
from seekable.formats.tokens.tokenizing.tiktoken_engine import Tiktoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import tiktoken
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, TokenizerKey
else:
    tiktoken = optional("tiktoken", extra="tiktoken")

__all__ = ["MergedRanks", "merged_ranks_engine"]

_GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
"""The pattern that byte-level pre-tokenizers without one of their own cut by."""


@dataclass(frozen=True, slots=True)
class MergedRanks(StandIn):
    """Encodes by tiktoken what a byte-level tokenizer of Hugging Face would encode, to the same ids."""

    name: ClassVar[str] = "tiktoken"

    @property
    def library(self) -> str:
        """The version of the package tiktoken."""
        return self._loaded().library

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        return self._loaded().encode(texts)

    def _loaded(self) -> Tiktoken:
        return _load(self.reference.key)


def merged_ranks_engine(reference: HuggingFace) -> MergedRanks:
    """Return the engine that makes the ids of a tokenizer of Hugging Face by tiktoken."""
    return MergedRanks(reference, reference.digest, reference.vocabulary)


@functools.lru_cache(maxsize=8)
def _load(key: TokenizerKey) -> Tiktoken:
    """Return the encoding of the same merges.

    Raises:
        InvalidArgument: tiktoken cannot make the ids of the tokenizer.
    """
    described = msgspec.json.decode(key.json)
    pattern = _pattern(described)
    model = described["model"]
    added = {token["content"]: token for token in described.get("added_tokens") or []}
    plain = [token["content"] for token in added.values() if not token["special"]]
    if any(added[content]["id"] not in key.as_text for content in plain):
        raise _unfit(f"it has added tokens that are no special ones, such as {plain[0]!r}")
    ranks = {_bytes_of(token): number for token, number in model["vocab"].items() if token not in added}
    _check_ranks(ranks, model)
    encoding = tiktoken.Encoding("tokenizer.json", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return Tiktoken(encoding, key.digest, encoding.max_token_value + 1)


def _pattern(described: dict[str, Any]) -> str:
    """Return the pattern by which texts are cut into words.

    Raises:
        InvalidArgument: the tokenizer does more than to cut by a pattern.
    """
    model, normalizer = described["model"], described.get("normalizer")
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        raise _unfit("it is no byte-level BPE")
    if normalizer or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise _unfit("it changes texts before it cuts them")
    steps = described.get("pre_tokenizer") or {}
    steps = steps["pretokenizers"] if steps.get("type") == "Sequence" else [steps]
    match steps:
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]:
            return _GPT2
        case [
            {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            return pattern
        case _:
            raise _unfit("it cuts texts by other means than one pattern")


def _check_ranks(ranks: dict[bytes, int], model: dict[str, Any]) -> None:
    """Check that the order of ids is the order of merges, and that each byte is a token.

    Raises:
        InvalidArgument: tiktoken would merge in another order, or miss a byte.
    """
    if any(bytes([value]) not in ranks for value in range(256)):
        raise _unfit("it lacks a token for some byte")
    last = -1
    for merge in model["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        number = ranks.get(_bytes_of(left + right), -1)
        if number <= last:
            raise _unfit("its ids are not in the order of its merges")
        last = number


@functools.cache
def _byte_of_character() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for."""
    printed = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [value for value in range(256) if value not in set(printed)]
    characters = {chr(value): value for value in printed}
    return characters | {chr(256 + place): value for place, value in enumerate(others)}


def _bytes_of(token: str) -> bytes:
    """Return the bytes of a token of a byte-level vocabulary.

    Raises:
        InvalidArgument: it is none.
    """
    characters = _byte_of_character()
    try:
        return bytes(characters[character] for character in token)
    except KeyError:
        raise _unfit(f"the token {token!r} is not in the alphabet of bytes") from None


def _unfit(why: str) -> InvalidArgument:
    message = f"engine='tiktoken' cannot make the ids of this tokenizer: {why}; leave out engine="
    return InvalidArgument(message)
