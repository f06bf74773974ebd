"""Option ``p`` (permissive) of readers: entries that cannot be read are left out, with a warning."""

from __future__ import annotations

import warnings
from typing import Final, final

from seekable.errors import (
    CorruptTable,
    KaldiWarning,
    PipeRefused,
    UnsupportedFormat,
)

__all__ = ["UNREADABLE", "PermissiveWarnings"]

UNREADABLE: Final = (CorruptTable, UnsupportedFormat, OSError)
"""The errors of data that cannot be read; `PermissiveWarnings.warn` raises `PipeRefused` all the same."""


@final
class PermissiveWarnings:
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
