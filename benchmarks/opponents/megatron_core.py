"""Megatron-core: the items of a ``GPTDataset`` over the pair of files that the others read."""

from __future__ import annotations

import importlib
import os
import shutil
from typing import Any

import numpy as np

DISTRIBUTION = "megatron-core"
LENGTH = 2048


def convert(source: str, folder: str) -> None:
    """Copy the pair of files: the indexes are cached beside it."""
    os.makedirs(folder)
    for suffix in (".bin", ".idx"):
        shutil.copyfile(source + suffix, os.path.join(folder, f"corpus{suffix}"))


class _Tokenizer:
    vocab_size = 50_000
    eod = 0
    unique_identifiers: dict[str, str] = {}  # noqa: RUF012 - that is what Megatron reads


class Opponent:
    """One epoch of the items, without dense masks."""

    def __init__(self, folder: str) -> None:
        gpt = importlib.import_module("megatron.core.datasets.gpt_dataset")
        indexed = importlib.import_module("megatron.core.datasets.indexed_dataset")
        utils: Any = importlib.import_module("megatron.core.datasets.utils")
        importlib.import_module("torch").set_num_threads(1)
        prefix = os.path.join(folder, "corpus")
        config = gpt.GPTDatasetConfig(
            random_seed=1234,
            sequence_length=LENGTH,
            blend=([prefix], None),
            split="1,0,0",
            tokenizer=_Tokenizer(),
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            create_attention_mask=False,
        )
        documents = indexed.IndexedDataset(prefix)
        rows = np.arange(len(documents), dtype=np.int32)
        self._dataset = gpt.GPTDataset(documents, prefix, rows, None, utils.Split.train, config)

    def get(self, row: int) -> Any:
        """Return an item of tensors."""
        return self._dataset[row]

    def shown(self, row: int) -> list[int]:
        """Return the tokens of an item."""
        tokens: list[int] = self._dataset[row]["tokens"].tolist()
        return tokens
