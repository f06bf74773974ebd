"""The choice of the keys of a table that are copied, by files of keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.formats.kaldi.files.opening import open_rx

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes

__all__ = ["KeyFilter", "key_filter"]


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """A condition on the keys of entries.

    Example:
        >>> keys = KeyFilter(frozenset({"a", "b"}), frozenset({"b"}))
        >>> [keys.passes(key) for key in "abc"]
        [True, False, False]
    """

    include: frozenset[str] | None
    """The keys that pass; None for all."""

    exclude: frozenset[str]
    """The keys that do not pass, also if they are in ``include``."""

    def passes(self, key: str) -> bool:
        """Return True if a key passes."""
        return (self.include is None or key in self.include) and key not in self.exclude


def key_filter(include: str | None, exclude: str | None, *, pipes: Pipes) -> KeyFilter:
    """Return the condition that two files of keys describe.

    The key is the first word of a line, so that a script file and ``utt2spk`` are files of keys too. Empty
    lines count as no key. Lines may end with CR LF.

    Args:
        include: the rxfilename of the keys that pass; None for all.
        exclude: the rxfilename of the keys that do not pass; None for none.
        pipes: the commands that may run.

    Raises:
        SeekableError: a file cannot be read; see `open_rx`.
    """
    return KeyFilter(
        None if include is None else frozenset(_keys_in(include, pipes)),
        frozenset() if exclude is None else frozenset(_keys_in(exclude, pipes)),
    )


def _keys_in(rxfilename: str, pipes: Pipes) -> Iterator[str]:
    with open_rx(rxfilename, header=False, pipes=pipes) as file:
        for line in file:
            if words := line.split(None, 1):
                yield words[0].decode("utf-8", "surrogateescape")
