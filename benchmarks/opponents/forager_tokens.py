"""Forager: the tokens as tokenised samples of one length, found by an index of their places."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

DISTRIBUTION = "data-forager"
LENGTH = 2048
_BYTES = 2 * LENGTH


def convert(source: str, folder: str) -> None:
    """Link the file of tokens, and write the index of its samples as Forager's own store lays it out."""
    index = os.path.join(folder, "index")
    os.makedirs(index)
    tokens = os.path.join(folder, "corpus-tokenized-samples.bin")
    os.link(f"{source}.bin", tokens)
    count = os.path.getsize(tokens) // _BYTES
    with open(os.path.join(index, "file_location.txt"), "w") as file:
        file.write("corpus-tokenized-samples.bin\n")
    places = np.zeros((count, 3), "<u8")
    places[:, 1] = np.arange(count) * _BYTES
    places[:, 2] = _BYTES
    places.tofile(os.path.join(index, "sample_locations.bin"))


class Opponent:
    """A TokensDataset."""

    def __init__(self, folder: str) -> None:
        dataset = importlib.import_module("data_forager.datasets.tokens").TokensDataset
        self._dataset = dataset.create_from_index_on_filesystem(folder, token_dtype=np.uint16)

    def get(self, row: int) -> Any:
        """Return a sample of tokens as an array."""
        return self._dataset[row]

    def shown(self, row: int) -> int:
        """Return the number of tokens of a sample."""
        return len(self._dataset[row])
