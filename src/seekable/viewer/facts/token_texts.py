"""The text of each token of a run of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["token_texts"]

_MOST_OF_CHARACTER = 4
"""A character of UTF-8 has at most four bytes, and so at most four tokens."""


def token_texts(engine: Engine, ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds to those before it.

    A character of several tokens is the text of its last one, and the others have an empty text, as ids have
    that the tokenizer has no token for. Tokens are decoded together with those just before them, because
    tokenizers may drop the space at the start of a text.

    Args:
        engine: the tokenizer.
        ids: tokens of one document that follow each other.

    Raises:
        InvalidArgument: the engine cannot make texts of ids.
    """
    texts: list[str] = []
    # The tokens from ``begun`` on have no text yet; those from ``before`` on are decoded with them.
    before, begun = 0, 0
    for stop in range(1, len(ids) + 1):
        known, text = _text(engine, ids[before:begun]), _text(engine, ids[before:stop])
        may_grow = stop < len(ids) and stop - begun < _MOST_OF_CHARACTER
        if text.endswith("\ufffd") and may_grow:
            texts.append("")
            continue
        texts.append(text[len(known) :] if text.startswith(known) else _text(engine, ids[begun:stop]))
        before, begun = begun, stop
    return texts


def _text(engine: Engine, ids: Sequence[int]) -> str:
    """Return the text of those ids that can be tokens."""
    most = engine.vocabulary
    return engine.decode([number for number in ids if number >= 0 and (most is None or number < most)])
