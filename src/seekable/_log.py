"""The logger of the library, and the variable ``SEEKABLE_LOG`` that makes it visible.

The library logs to the logger ``seekable`` and sets nothing up: that is for the program. For programs that
have no logging, ``SEEKABLE_LOG=info`` (or ``debug``, ``warning``) prints the messages on stderr. Where a
program has handlers, they alone print, and the variable sets the level. The root logger is never changed.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import warnings

from seekable.errors import InvalidArgument

__all__ = ["LOG", "warn_caller"]

_VARIABLE = "SEEKABLE_LOG"

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


class _UnlessHandled(logging.Handler):
    """Writes messages to stderr while no other handler gets them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message on a line of its own, unless the program has a handler for it."""
        if not self._is_handled_elsewhere():
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()

    def _is_handled_elsewhere(self) -> bool:
        own = [handler for handler in LOG.handlers if handler is not self]
        return bool(own) or (LOG.propagate and LOG.parent is not None and LOG.parent.hasHandlers())


def _show(level: str) -> None:
    """Make messages of a level visible.

    Raises:
        InvalidArgument: there is no such level.
    """
    if level.lower() not in _LEVELS:
        message = f"{_VARIABLE} must be one of {', '.join(_LEVELS)} (got {level!r}): correct it, or unset it"
        raise InvalidArgument(message)
    LOG.setLevel(_LEVELS[level.lower()])
    LOG.addHandler(_UnlessHandled())


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn with the line of the nearest caller outside of the library, however deep the warning is found."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "seekable":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


LOG = logging.getLogger("seekable")
"""The logger of all messages of the library."""

if os.environ.get(_VARIABLE):
    _show(os.environ[_VARIABLE])
