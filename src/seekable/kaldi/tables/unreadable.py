"""What readers of tables have in common: keys, and option ``p``, which leaves out what cannot be read."""

from __future__ import annotations

import re
import warnings
from typing import Final, final

from seekable.errors import (
    CorruptTable,
    InvalidArgument,
    KaldiWarning,
    PipeRefused,
    UnsupportedFormat,
    WrongType,
)

__all__ = ["UNREADABLE", "LeftOut", "check_key"]

_KEY: Final = re.compile("[^\\x00-\\x20\\x7f\\udcff]+")
"""A token, as `seekable.kaldi.is_token` says."""

UNREADABLE: Final = (CorruptTable, UnsupportedFormat, OSError)
"""The errors of data that cannot be read; `LeftOut.warn` raises `PipeRefused` all the same."""


@final
class LeftOut:
    """The warnings of one reader: one for each kind of error."""

    def __init__(self, rspecifier: str) -> None:
        """Take the rspecifier, for messages."""
        self._rspecifier = rspecifier
        self._warned: set[type[BaseException]] = set()

    def warn(self, error: BaseException, what: str) -> None:
        """Warn about an error, unless there was one of its class before.

        Args:
            error: what happened.
            what: what is left out.

        Raises:
            PipeRefused: it is this error.
        """
        if isinstance(error, PipeRefused):
            raise error
        if type(error) not in self._warned:
            self._warned.add(type(error))
            message = (
                f"{self._rspecifier}: option p leaves out {what}: {error}. Further errors of this kind have "
                f"no warning"
            )
            warnings.warn(message, KaldiWarning, stacklevel=4)


def check_key(key: object) -> None:
    """Raise an error for an argument that no table can have as a key.

    Raises:
        WrongType: it is no str.
        InvalidArgument: it is empty, or has whitespace or control characters.
    """
    if not isinstance(key, str):
        raise WrongType(f"key must be a str (got {key!r} of type {type(key).__name__})")
    if not _KEY.fullmatch(key):
        raise InvalidArgument(f"key must be a word without whitespace or control characters (got {key!r})")
