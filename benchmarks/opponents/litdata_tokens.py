"""LitData: the tokens in chunks of its own, read as blocks of one length."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

DISTRIBUTION = "litdata"
LENGTH = 2048


def convert(source: str, folder: str) -> None:
    """Write the tokens as chunks of 64 MB, one item for each block."""
    writer = importlib.import_module("litdata.streaming.writer")
    loader = importlib.import_module("litdata").TokensLoader(block_size=LENGTH)
    tokens = np.fromfile(f"{source}.bin", dtype=np.uint16)
    chunks = writer.BinaryWriter(folder, chunk_bytes="64MB", item_loader=loader)
    for number, start in enumerate(range(0, len(tokens) - LENGTH + 1, LENGTH)):
        chunks.add_item(number, tokens[start : start + LENGTH])
    chunks.done()
    chunks.merge(1)


class Opponent:
    """A StreamingDataset of blocks."""

    def __init__(self, folder: str) -> None:
        litdata = importlib.import_module("litdata")
        importlib.import_module("torch").set_num_threads(1)
        self._dataset = litdata.StreamingDataset(
            folder, item_loader=litdata.TokensLoader(block_size=LENGTH), shuffle=False
        )

    def get(self, row: int) -> Any:
        """Return a block of tokens as a tensor."""
        return self._dataset[row]

    def shown(self, row: int) -> int:
        """Return the number of tokens of a block."""
        return len(self._dataset[row])
