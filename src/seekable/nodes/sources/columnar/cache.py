"""Decoded blocks of tables that are kept in memory, bounded in bytes, for the whole process."""

from __future__ import annotations

import os
from typing import Any

from seekable.storage.cache import Cache

__all__ = ["DECODED"]

DECODED: Cache[Any] = Cache()
"""Of this process."""

# In a child process the lock may be held, by a thread that the child does not have.
os.register_at_fork(after_in_child=DECODED.forget)
