"""The tokenizer of a token store, which makes texts of its ids."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument, StateMismatch
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.viewer.facts.token_contents import store_document_of

if TYPE_CHECKING:
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.formats.tokens.tokenizing.store_document import TokenizerFacts

__all__ = ["engine_of_store"]

_WAY_OUT = "name a tokenizer.json, a folder with one, or tiktoken:NAME with --tokenizer"


@cache
def engine_of_store(folder: str) -> Engine:
    """Return the tokenizer of a token store.

    Raises:
        InvalidArgument: the folder is no token store, or it has no tokenizer that makes texts.
        StateMismatch: the tokenizer that is there is not the one that made the ids.
    """
    store = store_document_of(folder)
    if store is None:
        message = (
            f"{folder!r} is no token store, so it does not say which tokenizer its ids are of: {_WAY_OUT}"
        )
        raise InvalidArgument(message)
    tokenizer = store.tokenizer
    if tokenizer is not None and tokenizer.file is not None:
        path = os.path.join(folder, tokenizer.file)
        return _checked(engine_of(path), tokenizer, repr(path), folder)
    if tokenizer is not None and tokenizer.engine == "tiktoken" and tokenizer.name:
        name = f"tiktoken:{tokenizer.name}"
        try:
            engine = engine_of(name)
        except InvalidArgument as error:
            message = f"the tokenizer of the store {folder!r} is not at hand: {error}; {_WAY_OUT}"
            raise InvalidArgument(message) from error
        return _checked(engine, tokenizer, name, folder)
    message = f"the token store {folder!r} has no copy of its tokenizer: {_WAY_OUT}"
    raise InvalidArgument(message)


def _checked(engine: Engine, tokenizer: TokenizerFacts, name: str, folder: str) -> Engine:
    """Return an engine whose digest is that in the document of a store.

    Raises:
        StateMismatch: it has another one.
    """
    if engine.digest != tokenizer.digest:
        message = (
            f"{name} is not the tokenizer that made the ids of the token store {folder!r}: expected the "
            f"digest {tokenizer.digest}, found {engine.digest}; copy the store again, or {_WAY_OUT}"
        )
        raise StateMismatch(message)
    return engine
