"""The progress of a build on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.index.progress import ProgressHook


def terminal_progress() -> ProgressHook | None:
    """Return nothing."""
    return None
