"""Engines that stand in for a tokenizer of Hugging Face, and their comparison with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import Engine, UnfitDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace

__all__ = ["StandIn"]

_BATCH = 250

_CHARACTERS = 1 << 20
"""About the characters that are compared at the most: a fraction of a second for the slow engine."""

_SHOWN_IDS, _SHOWN_CHARACTERS = 4, 40


@dataclass(frozen=True, slots=True)
class StandIn(Engine):
    """Base of the engines that make the ids of a tokenizer of Hugging Face faster, by another package."""

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
