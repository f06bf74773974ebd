"""What the child processes of the fork matrix run: importable, so that spawned ones find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import seekable as sk

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def read_rows(dataset: sk.Dataset, rows: list[int], answers: Connection) -> None:
    """Send the ids of records, or the name of the error."""
    for row in rows:
        try:
            answers.send(dataset[row]["id"])
        except sk.errors.ForkUnsafe as error:
            answers.send(f"ForkUnsafe: {error}")
