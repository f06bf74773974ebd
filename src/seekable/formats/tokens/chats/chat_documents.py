"""Conversations as the documents of a token store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.tokens.tokenizing.encoding import (
    LOSS_MASK,
    DocumentTexts,
    GivenValues,
    Taken,
    Tokenizing,
)
from seekable.formats.tokens.tokenizing.engine import id_lists, token_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.tokens.chats.chat import Chat
    from seekable.formats.tokens.token_store_options import TokenStore

__all__ = ["ChatDocuments", "tokenizing_chats"]


@dataclass(frozen=True, slots=True)
class ChatDocuments(DocumentTexts):
    """The ids of conversations, and their loss masks."""

    chat: Chat

    @property
    def column(self) -> str | None:
        """The column of the conversations; None where each record decides."""
        return next(iter(self.chat.columns), None)

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """Return the user's function of the mask, if there is one."""
        return self.chat.functions

    def take(self, records: Sequence[Any]) -> Taken:
        """Return the ids of one conversation a record; see `DocumentTexts.take`."""
        made = [each for (each,) in self.chat.encoded(records)]
        return Taken([each.ids for each in made], values={LOSS_MASK: [each.mask for each in made]})


def tokenizing_chats(
    chat: Chat, how: TokenStore, *, column: str | None, eos: int | None, bos: int | None
) -> Tokenizing:
    """Return what makes tokens of conversations.

    Args:
        chat: makes the tokens of a record.
        how: the options of the store.
        column: the column of the conversations; None for that of ``chat``.
        eos: the id after each document, None for none.
        bos: the id before each document, None for none.

    Raises:
        InvalidArgument: an option of the store is for texts.
    """
    if column is not None:
        chat = chat.of_column(column)
    if len(chat.columns) > 1:
        message = (
            f"a document of a store is one sequence, and sk.Chat(column={chat.columns!r}) makes two of a "
            f"record: write a store of each column, and sk.zip() them"
        )
        raise InvalidArgument(message)
    for name in ("engine", "parts", "align", "sample_size"):
        if getattr(how, name):
            message = (
                f"sk.formats.TokenStore({name}=) is for texts, and a sk.Chat makes the tokens: leave it out"
            )
            raise InvalidArgument(message)
    engine = id_lists(chat.engine)
    mask = GivenValues(LOSS_MASK, np.dtype(np.uint8))
    dtype = token_dtype(how.dtype, engine, megatron=how.idx)
    return Tokenizing(engine, ChatDocuments(chat), dtype, eos, bos, (mask,))
