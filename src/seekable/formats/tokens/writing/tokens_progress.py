"""The tokens of a store that is being written, for reports of progress."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, final

from seekable.formats.tokens.tokenizing.store_document import (
    FACTS,
    HIDDEN_DOCUMENT,
    decode_facts,
    read_document,
)

if TYPE_CHECKING:
    from seekable.parallel.progress import Progress, ProgressHook

__all__ = ["counting_tokens", "tokens_in"]


def counting_tokens(hook: ProgressHook | None, folder: str) -> ProgressHook:
    """Return a hook that adds the number of tokens to reports, and passes them on.

    Args:
        hook: is called with the reports; None for no reports.
        folder: the folder of the store.
    """
    return _ignored if hook is None else _TokenCounter(hook, folder)


def _ignored(progress: Progress) -> None:
    """Do nothing with a report."""


def tokens_in(folder: str) -> int:
    """Return the number of tokens of the finished parts of a store, or of whole samples; 0 for no folder."""
    if samples := read_document(folder, HIDDEN_DOCUMENT):
        return samples.tokens
    counter = _TokenCounter(_ignored, folder)
    counter.count()
    return counter.tokens


@final
class _TokenCounter:
    """Counts the tokens of finished parts, and estimates those of the records behind them by their mean."""

    def __init__(self, hook: ProgressHook, folder: str) -> None:
        self._hook = hook
        self._folder = folder
        self._seen: set[str] = set()
        self._documents = 0
        self.tokens = 0
        """The number of tokens of finished parts."""

    def __call__(self, progress: Progress) -> None:
        self.count()
        mean = self.tokens / max(1, self._documents)
        beyond = max(0, progress.records - self._documents)
        self._hook(replace(progress, task="tokenizing", tokens=self.tokens + int(beyond * mean)))

    def count(self) -> None:
        """Count the parts that were finished since the last report."""
        try:
            names = {name for name in os.listdir(self._folder) if _is_facts(name)}
        except (FileNotFoundError, NotADirectoryError):  # The writer makes the folder, or refuses it.
            return
        for name in names - self._seen:
            try:
                with open(os.path.join(self._folder, name), "rb") as file:
                    facts = decode_facts(file.read())
            except (OSError, ValueError):  # It is removed, as a part of another call; the writer checks it.
                continue
            self._seen.add(name)
            self._documents += facts.documents
            self.tokens += facts.tokens


def _is_facts(name: str) -> bool:
    return name.endswith(f".{FACTS}") and not name.startswith(".")
