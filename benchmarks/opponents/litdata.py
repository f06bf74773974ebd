"""LitData: chunks in its own format."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines import BATCH, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION = "litdata"


def convert(source: str, folder: str) -> None:
    """Write the records as chunks of 64 MB, as its guide does."""
    writer = importlib.import_module("litdata.streaming.writer").BinaryWriter(folder, chunk_bytes="64MB")
    with open(source, "rb") as lines:
        for number, line in enumerate(lines):
            writer.add_item(number, json.loads(line))
    writer.done()
    writer.merge(1)


class Opponent:
    """A StreamingDataLoader whose chunks are all here."""

    def __init__(self, folder: str) -> None:
        litdata = importlib.import_module("litdata")
        dataset = litdata.StreamingDataset(folder, shuffle=True, seed=0)
        self._loader = litdata.StreamingDataLoader(
            dataset, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
        )

    def epoch(self) -> Iterable[Any]:
        """Return all records, shuffled in its default way."""
        return (
            {"id": int(number), "source": source, "text": text}
            for batch in self._loader
            for number, source, text in zip(batch["id"], batch["source"], batch["text"], strict=True)
        )

    def loaded(self, *, with_map: bool) -> Iterable[Any]:
        """Return an epoch's batches, made by workers."""
        assert not with_map
        batches: Iterable[Any] = self._loader
        return batches
