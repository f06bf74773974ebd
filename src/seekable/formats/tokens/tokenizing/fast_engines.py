"""Engines that stand in for a tokenizer of Hugging Face, and their comparison with it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
import numpy as np
import xxhash

from seekable._optional import optional
from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import (
    FEW_TOGETHER,
    MANY_TOGETHER,
    Engine,
    LocatingEngine,
    PlainEngine,
    UnfitDocument,
    checked_id,
    fail_at_culprit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gigatoken
    import tiktoken
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, TokenizerKey
else:
    gigatoken = optional("gigatoken", extra="gigatoken")
    tiktoken = optional("tiktoken", extra="tiktoken")

__all__ = [
    "Gigatoken",
    "MergedRanks",
    "StandIn",
    "Tiktoken",
    "gigatoken_engine",
    "merged_ranks_engine",
    "tiktoken_engine",
    "tiktoken_named",
]

_GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
"""The pattern that byte-level pre-tokenizers without one of their own cut by."""


@dataclass(frozen=True, slots=True)
class Tiktoken(PlainEngine, LocatingEngine):
    """An encoding of the package tiktoken, as an engine."""

    name: ClassVar[str] = "tiktoken"
    together: ClassVar[int] = FEW_TOGETHER
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

    def encode_located(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s, NDArray[np.int64]]:
        """Return the ids of texts and their places; see `LocatingEngine.encode_located`."""
        ids, lengths = self.encode(texts)
        sizes = np.fromiter(map(len, self.encoding.decode_tokens_bytes(ids.tolist())), np.int64, len(ids))
        parts = enumerate(zip(texts, np.split(sizes, np.cumsum(lengths)[:-1]), strict=True))
        return ids, lengths, np.concatenate([_places(*pair, index) for index, pair in parts])

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


def _places(text: str, sizes: Int64s, index: int) -> NDArray[np.int64]:
    """Return the first character of each token and the one after its last, of shape (tokens, 2).

    Args:
        text: the text.
        sizes: the number of bytes of each of its tokens.
        index: the place of the text, for the error.

    Raises:
        UnfitDocument: the tokens do not have all bytes of the text.

    Example:
        >>> _places("aé", np.array([1, 1, 1]), 0).tolist()
        [[0, 1], [1, 2], [1, 2]]
    """
    data = np.frombuffer(text.encode(), np.uint8)
    if len(data) != sizes.sum():
        why = f"its tokens have {sizes.sum()} of its {len(data)} bytes, so it cannot be told where they lie"
        raise UnfitDocument(index, why)
    character = np.cumsum((data & 0xC0) != 0x80) - 1  # noqa: PLR2004 - all bytes of a character but the first
    ends = np.cumsum(sizes)
    return np.stack([character[ends - sizes], character[ends - 1] + 1], axis=1)


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


_BATCH = 250

_CHARACTERS = 1 << 20
"""About the characters that are compared at the most: a fraction of a second for the slow engine."""

_SHOWN_IDS, _SHOWN_CHARACTERS = 4, 40


@dataclass(frozen=True, slots=True)
class StandIn(Engine):
    """Base of engines that make the ids of Hugging Face's tokenizers by a faster package."""

    reference: HuggingFace
    """The tokenizer whose ids are made, and compared."""

    digest: str
    vocabulary: int
    functions: ClassVar[tuple[()]] = ()

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> str:
        """Return the text of ids, special tokens included."""
        return self.reference.decode(ids)

    def id_of(self, token: str | int) -> int:
        """Return the id of a token; see `Engine.id_of`."""
        return self.reference.id_of(token)

    def keeping_as_text(self, ids: tuple[int, ...]) -> Self:
        """Return an engine that reads added tokens as text; see `Engine.keeping_as_text`."""
        return replace(self, reference=self.reference.keeping_as_text(ids))

    def compared(self, texts: Sequence[str]) -> dict[str, Any]:
        """Compare the ids of some texts with those of Hugging Face's package; see `Engine.compared`."""
        return _compared(self.reference, self, texts)


def _compared(reference: Engine, engine: Engine, texts: Sequence[str]) -> dict[str, Any]:
    """Compare the ids that two engines give some texts; of long texts, fewer are compared.

    Args:
        reference: the engine that has the right ids.
        engine: the engine that makes them faster.
        texts: the texts.

    Returns:
        The result, JSON-safe: the library of the reference, the documents and characters that were compared,
        and the number of documents that differ, 0.

    Raises:
        UnfitDocument: a text cannot be encoded; its place in ``texts`` is named.
        InvalidArgument: a text has other ids.
    """
    step = _step(texts)
    texts = texts[::step]
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        try:
            pairs = list(zip(_each(engine, batch), _each(reference, batch), strict=True))
        except UnfitDocument as error:
            raise UnfitDocument(step * (start + error.index), error.why) from error.__cause__
        for place, (made, rule) in enumerate(pairs):
            if not np.array_equal(made, rule):
                of = f"document {start + place} of the {len(texts)} that were compared"
                raise InvalidArgument(_difference(engine, of, batch[place], made, rule))
    return {
        "with": reference.library,
        "documents": len(texts),
        "characters": sum(map(len, texts)),
        "different": 0,
    }


def _step(texts: Sequence[str]) -> int:
    """Return the step between the texts that are compared; they have about ``_CHARACTERS`` at the most."""
    return max(1, -(-sum(map(len, texts)) // _CHARACTERS))


def _each(engine: Engine, texts: Sequence[str]) -> list[NDArray[np.integer[Any]]]:
    ids, lengths = engine.encode(texts)
    return np.split(ids, np.cumsum(lengths)[:-1])


def _difference(engine: Engine, of: str, text: str, made: NDArray[Any], rule: NDArray[Any]) -> str:
    shared = min(len(made), len(rule))
    odd = np.flatnonzero(made[:shared] != rule[:shared])
    place = int(odd[0]) if len(odd) else shared
    ours, theirs = (ids[place : place + _SHOWN_IDS].tolist() for ids in (made, rule))
    return (
        f"{engine.name} gives other ids than the package tokenizers for {of}, from token {place} on: {ours} "
        f"in place of {theirs}; its text begins {text[:_SHOWN_CHARACTERS]!r}: leave out engine=, or give "
        f"engine='hf'"
    )


@dataclass(frozen=True, slots=True)
class Gigatoken(StandIn):
    """Encodes by gigatoken what a tokenizer of Hugging Face would encode, to the same ids."""

    name: ClassVar[str] = "gigatoken"
    together: ClassVar[int] = MANY_TOGETHER

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
        return _load_gigatoken(self.reference.key)


def gigatoken_engine(reference: HuggingFace) -> Gigatoken:
    """Return the engine that makes the ids of a tokenizer of Hugging Face by gigatoken."""
    return Gigatoken(reference, reference.digest, reference.vocabulary)


@functools.lru_cache(maxsize=8)
def _load_gigatoken(key: TokenizerKey) -> Any:
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


@dataclass(frozen=True, slots=True)
class MergedRanks(StandIn):
    """Encodes by tiktoken what a byte-level tokenizer of Hugging Face would encode, to the same ids."""

    name: ClassVar[str] = "tiktoken"
    together: ClassVar[int] = FEW_TOGETHER

    @property
    def library(self) -> str:
        """The version of the package tiktoken."""
        return self._loaded().library

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.integer[Any]], Int64s]:
        """Return the ids of texts; see `Engine.encode`."""
        return self._loaded().encode(texts)

    def _loaded(self) -> Tiktoken:
        return _load_merges(self.reference.key)


def merged_ranks_engine(reference: HuggingFace) -> MergedRanks:
    """Return the engine that makes the ids of a tokenizer of Hugging Face by tiktoken."""
    return MergedRanks(reference, reference.digest, reference.vocabulary)


@functools.lru_cache(maxsize=8)
def _load_merges(key: TokenizerKey) -> Tiktoken:
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
