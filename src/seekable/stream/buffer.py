"""Items that wait in a stage, saved as their tokens."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.stream.token import Token

__all__ = ["TokenBuffer"]

_MISSING: Final = object()
"""In place of an item that was restored and not asked for yet."""

_AT_ONCE = 64
"""Missing items that are read together, when one of them is asked for."""


class TokenBuffer:
    """A list of items whose state is the list of their tokens.

    After a restore the items are missing, and are rebuilt when they are asked for, some at a time: a buffer
    of 10,000 items does not read 10,000 records before the first one comes out.

    What changed since the last ``changes()`` is kept as a journal, so that a worker need not send the whole
    buffer after each batch.

    Example:
        >>> buffer = TokenBuffer(lambda tokens: [f"item {token}" for token in tokens])
        >>> buffer.append(7, "item 7")
        >>> buffer.load([7, 8], [])
        >>> buffer.pop(1), buffer.tokens()
        ((8, 'item 8'), [7])
    """

    def __init__(self, rebuild: Callable[[Sequence[Token]], list[Any]], *, all_at_once: bool = False) -> None:
        """Be empty; ``rebuild`` makes items of their tokens, of all that are missing if each time is dear."""
        self._rebuild = rebuild
        self._all_at_once = all_at_once
        self._tokens: list[Token] = []
        self._notes: list[Any] = []
        self._items: list[Any] = []
        self._journal: list[list[Any]] | None = None

    def __len__(self) -> int:
        """Return how many items wait."""
        return len(self._items)

    @property
    def notes(self) -> Sequence[Any]:
        """What is kept beside each token."""
        return self._notes

    def append(self, token: Token, item: Any, note: Any = None) -> None:
        """Add an item at the end, with a JSON value to be kept beside its token."""
        self._tokens.append(token)
        self._notes.append(note)
        self._items.append(item)
        if self._journal is not None:
            self._journal.append(["append", token, note])

    def swap(self, at: int, token: Token, item: Any, note: Any = None) -> tuple[Token, Any]:
        """Put an item in the place of another one, which is returned after its token."""
        found = self._at(at)
        self._tokens[at], self._notes[at], self._items[at] = token, note, item
        if self._journal is not None:
            self._journal.append(["swap", at, token, note])
        return found

    def pop(self, at: int) -> tuple[Token, Any]:
        """Take an item out, and return it after its token; those behind it move up."""
        found = self._at(at)
        self._remove(at)
        return found

    def take(self, places: Sequence[int]) -> list[tuple[Token, Any]]:
        """Take several items out, at ascending places, and return them after their tokens."""
        self._restore([at for at in places if self._items[at] is _MISSING])
        found = [(self._tokens[at], self._items[at]) for at in places]
        for at in reversed(places):
            self._remove(at)
        return found

    def tokens(self) -> list[Any]:
        """Return the tokens, some of them as JSON has them: with lists in place of tuples."""
        return list(self._tokens)

    def load(self, tokens: Sequence[Any], notes: Sequence[Any]) -> None:
        """Have the items of some tokens, none of them read yet; without notes if there are none."""
        self._tokens = list(tokens)  # as JSON has them, until their items are wanted
        self._notes = list(notes) or [None] * len(self._tokens)
        self._items = [_MISSING] * len(self._tokens)
        self._journal = None

    def changes(self) -> list[list[Any]] | None:
        """Return what was done since this was asked last; None if it was not asked before."""
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

    def _restore(self, places: Sequence[int]) -> None:
        if places and self._all_at_once:
            places = [at for at, item in enumerate(self._items) if item is _MISSING]
        if places:
            for at in places:
                self._tokens[at] = as_token(self._tokens[at])
            items = self._rebuild([self._tokens[at] for at in places])
            for at, item in zip(places, items, strict=True):
                self._items[at] = item


def replayed(tokens: list[Any], notes: list[Any], changes: Sequence[Sequence[Any]]) -> None:
    """Do to a buffer's saved tokens and notes what was done to the buffer.

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
