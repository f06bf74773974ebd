"""Hugging Face datasets: the tokens as rows of an Arrow table, in the format of NumPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

DISTRIBUTION = "datasets"
LENGTH = 2048


def convert(source: str, folder: str) -> None:
    """Write the tokens as a table of lists of one length."""
    datasets, arrow = importlib.import_module("datasets"), importlib.import_module("pyarrow")
    tokens = np.fromfile(f"{source}.bin", dtype=np.uint16)
    whole = tokens[: len(tokens) // LENGTH * LENGTH]
    table = arrow.table({"tokens": arrow.FixedSizeListArray.from_arrays(arrow.array(whole), LENGTH)})
    datasets.Dataset(table).save_to_disk(folder)


class Opponent:
    """The table, whose rows are read many at a time."""

    def __init__(self, folder: str) -> None:
        self._table = importlib.import_module("datasets").load_from_disk(folder).with_format("numpy")

    def get(self, row: int) -> Any:
        """Return the tokens of a row as an array."""
        return self._table[row]["tokens"]

    def get_many(self, rows: list[int]) -> bool:
        """Read the tokens of some rows as one array."""
        return len(self._table[rows]["tokens"]) == len(rows)

    def shown(self, row: int) -> int:
        """Return the number of tokens of a row."""
        return len(self.get(row))
