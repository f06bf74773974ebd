"""The number of tokens of texts, some of which a tokenizer may refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.engine import UnfitDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["token_counts"]


def token_counts(engine: Engine, texts: Sequence[str]) -> Int64s:
    r"""Return the number of tokens of each text, int64; -1 for one that the tokenizer refuses.

    So is a text with half of a surrogate pair, which is no character.

    Raises:
        InvalidArgument: it refuses all of them.

    Example:
        >>> from seekable.formats.tokens.tokenizing.engines import engine_of
        >>> token_counts(engine_of(lambda text: [1] * len(text.encode())), ["ab", "\ud800", "c"]).tolist()
        [2, -1, 1]
    """
    counts = np.full(len(texts), -1, dtype=np.int64)
    start, why = 0, ""
    while start < len(texts):
        stop = len(texts)
        try:
            counts[start:] = engine.encode(texts[start:])[1]
        except UnfitDocument as error:
            stop, why = start + error.index, str(error)
            if error.index:
                counts[start:stop] = engine.encode(texts[start:stop])[1]
        start = stop + 1
    if why and counts.max() < 0:
        message = f"the tokenizer refuses all of {len(texts):,} texts; the last one: {why}"
        raise InvalidArgument(message)
    return counts
