"""Functions that tests send to worker processes: what these import needs no pytest."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np

import seekable as sk


def picky(record: int) -> int:
    if record == 50:
        message = "cannot take 50"
        raise LookupError(message)
    return record


def deadly(record: int) -> int:
    if record == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    return record


def stuck_at_50(record: int, *, tells: str) -> int:
    """Hang at a record, and say so through a pipe before."""
    if record == 50:
        Path(tells).write_bytes(b".")
        threading.Event().wait()
    return record


def stuck_at_a_line(line: str) -> str:
    if line == "5":
        threading.Event().wait()
    return line


def large(record: int) -> dict[str, Any]:
    return {"x": np.full(200_000, record, dtype=np.float64), "n": record}


def even_or_hole(record: int) -> Any:
    return sk.HOLE if record % 11 == 5 else record
