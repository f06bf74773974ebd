"""Hugging Face datasets: a table in Arrow's format, memory-mapped."""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

DISTRIBUTION = "datasets"


def convert(source: str, folder: str) -> None:
    """Write the JSON lines as an Arrow table."""
    datasets = importlib.import_module("datasets")
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as cache:
        datasets.Dataset.from_json(source, cache_dir=cache).save_to_disk(folder)


class Opponent:
    """The table, and the call that torch's DataLoader makes for a batch."""

    def __init__(self, folder: str) -> None:
        table = importlib.import_module("datasets").load_from_disk(folder)
        self.get: Callable[[int], Any] = table.__getitem__
        self.get_many: Callable[[list[int]], list[Any]] = table.__getitems__
