"""The buffer of items that wait in a stage: its state is their tokens."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.stream.token import Token

__all__ = ["TokenBuffer"]

_MISSING: Final = object()
"""Stands for an item that was restored from a state and has not been made again yet."""

_AT_ONCE = 64
"""Missing items that are made again together when one of them is needed."""


class TokenBuffer:
    """A list of items whose state is the list of their tokens.

    After a restore the items are missing. They are made again when they are needed, some at a time: a buffer
    of 10,000 items does not read 10,000 records before it gives the first one.

    A journal holds the operations since the last ``changes()``, so that a worker does not send the whole
    buffer after each batch.

    Example:
        >>> buffer = TokenBuffer(lambda tokens: [f"item {token}" for token in tokens])
        >>> buffer.append(7, "item 7")
        >>> buffer.load([7, 8], [])
        >>> buffer.pop(1), buffer.tokens()
        ((8, 'item 8'), [7])
    """

    def __init__(self, rebuild: Callable[[Sequence[Token]], list[Any]], *, all_at_once: bool = False) -> None:
        """Make a buffer without items.

        Args:
            rebuild: returns the items of some tokens, in their order.
            all_at_once: make all missing items with one call of ``rebuild``, where each call is expensive.
        """
        self._rebuild = rebuild
        self._all_at_once = all_at_once
        self._tokens: list[Token] = []
        self._notes: list[Any] = []
        self._items: list[Any] = []
        self._journal: list[list[Any]] | None = None

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._items)

    @property
    def notes(self) -> Sequence[Any]:
        """The note of each item: a JSON value, or None."""
        return self._notes

    def append(self, token: Token, item: Any, note: Any = None) -> None:
        """Add an item at the end, with a note: a JSON value that is saved beside the token."""
        self._tokens.append(token)
        self._notes.append(note)
        self._items.append(item)
        if self._journal is not None:
            self._journal.append(["append", token, note])

    def swap(self, at: int, token: Token, item: Any, note: Any = None) -> tuple[Token, Any]:
        """Replace the item at an index, and return the replaced item after its token."""
        found = self._at(at)
        self._tokens[at], self._notes[at], self._items[at] = token, note, item
        if self._journal is not None:
            self._journal.append(["swap", at, token, note])
        return found

    def pop(self, at: int) -> tuple[Token, Any]:
        """Remove the item at an index, and return it after its token; the items after it move up."""
        found = self._at(at)
        self._remove(at)
        return found

    def take(self, indices: Sequence[int]) -> list[tuple[Token, Any]]:
        """Remove the items at some ascending indices, and return each after its token."""
        self._restore([at for at in indices if self._items[at] is _MISSING])
        found = [(self._tokens[at], self._items[at]) for at in indices]
        for at in reversed(indices):
            self._remove(at)
        return found

    def tokens(self) -> list[Any]:
        """Return the tokens; tokens of missing items may have lists in place of tuples, as in JSON."""
        return list(self._tokens)

    def load(self, tokens: Sequence[Any], notes: Sequence[Any]) -> None:
        """Replace the content by missing items with these tokens and notes; ``notes`` may be empty."""
        self._tokens = list(tokens)  # as in JSON, until their items are made again
        self._notes = list(notes) or [None] * len(self._tokens)
        self._items = [_MISSING] * len(self._tokens)
        self._journal = None

    def changes(self) -> list[list[Any]] | None:
        """Return the operations since the last call; None on the first call after the content was loaded."""
        done, self._journal = self._journal, []
        return done

    def _at(self, at: int) -> tuple[Token, Any]:
        item = self._items[at]
        if item is _MISSING:
            following = (i for i in range(at + 1, len(self._items)) if self._items[i] is _MISSING)
            self._restore([at, *itertools.islice(following, _AT_ONCE - 1)])
            item = self._items[at]
        return self._tokens[at], item

    def _remove(self, at: int) -> None:
        del self._tokens[at], self._notes[at], self._items[at]
        if self._journal is not None:
            self._journal.append(["pop", at])

    def _restore(self, indices: Sequence[int]) -> None:
        if indices and self._all_at_once:
            indices = [at for at, item in enumerate(self._items) if item is _MISSING]
        if indices:
            for at in indices:
                self._tokens[at] = as_token(self._tokens[at])
            items = self._rebuild([self._tokens[at] for at in indices])
            for at, item in zip(indices, items, strict=True):
                self._items[at] = item


def replayed(tokens: list[Any], notes: list[Any], changes: Sequence[Sequence[Any]]) -> None:
    """Apply a buffer's journal to its saved tokens and notes, in place.

    Example:
        >>> tokens, notes = [7, 8], [None, None]
        >>> replayed(tokens, notes, [["pop", 0], ["append", 9, 1.5], ["swap", 0, 5, None]])
        >>> tokens, notes
        ([5, 9], [None, 1.5])
    """
    for what, *how in changes:
        if what == "append":
            tokens.append(how[0])
            notes.append(how[1])
        elif what == "swap":
            tokens[how[0]], notes[how[0]] = how[1:]
        else:
            del tokens[how[0]], notes[how[0]]
