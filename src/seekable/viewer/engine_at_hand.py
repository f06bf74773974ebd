"""The tokenizer that makes texts of token ids: the one that was named, or the one beside the data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import SeekableError
from seekable.viewer.facts.token_contents import engine_of_store, store_document_of

if TYPE_CHECKING:
    from seekable.formats.tokens.tokenizing import engines
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.viewer.opened import Opened
else:
    engines = lazy("seekable.formats.tokens.tokenizing.engines")


def engine_at_hand(opened: Opened, path: str | None) -> tuple[Engine | None, str | None]:
    """Return the tokenizer that was named or that a token store has; else None, and why. Nothing is fetched.

    Args:
        opened: what is open.
        path: a file of the data; None where no file has the ids.
    """
    if opened.tokenizer is not None:
        name = opened.tokenizer
        return opened.kept.get(("tokenizer", name), lambda: engines.engine_of(name)), None
    if path is None:
        return None, "the data does not say which tokenizer its ids are of"
    folder = os.path.dirname(path)
    try:
        store = store_document_of(folder)
        if store is not None and store.tokenizer is not None and store.tokenizer.name:
            name = f"{store.tokenizer.engine}:{store.tokenizer.name}"
            why = f"the ids are of {name}, which a package may fetch, and pages fetch nothing by themselves"
            return None, f"{why}: name it with --tokenizer {name}"
        return engine_of_store(folder), None
    except SeekableError as error:
        return None, str(error)
