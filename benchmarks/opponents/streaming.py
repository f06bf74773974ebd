"""MosaicML Streaming: shards in its own format, MDS."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines import BATCH, WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

DISTRIBUTION = "mosaicml-streaming"
_COLUMNS = {"id": "int", "source": "str", "text": "str"}


def convert(source: str, folder: str) -> None:
    """Write the JSON lines as shards of its default size."""
    streaming = imported()
    with open(source, "rb") as lines, streaming.MDSWriter(out=folder, columns=_COLUMNS) as writer:
        for line in lines:
            writer.write(json.loads(line))


class Opponent:
    """A StreamingDataset whose shards are all here."""

    def __init__(self, folder: str) -> None:
        streaming = imported()
        torch = importlib.import_module("torch.utils.data")
        # What a process that was killed has left would be taken for another rank of this one.
        importlib.import_module("streaming.base.util").clean_stale_shared_memory()
        self._dataset = streaming.StreamingDataset(
            local=folder, shuffle=True, shuffle_seed=0, batch_size=BATCH
        )
        self.get: Callable[[int], Any] = self._dataset.__getitem__
        self._loader = torch.DataLoader(
            self._dataset, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
        )

    def epoch(self) -> Iterable[Any]:
        """Return all records, shuffled in its default way."""
        records: Iterable[Any] = self._dataset
        return records

    def loaded(self, *, with_map: bool) -> Iterable[Any]:
        """Return an epoch's batches, made by workers."""
        assert not with_map
        batches: Iterable[Any] = self._loader
        return batches


def imported() -> ModuleType:
    """Return it, imported with a torchvision that does not fit its torch too.

    It imports torchvision for its pictures. One that was built for a GPU, beside a torch that was built
    without, misses its own operators when it is imported; none of them is used here.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = importlib.import_module("torch.library")
        for operator in ("nms", "qnms"):
            library.define(f"torchvision::{operator}", "(Tensor boxes, Tensor scores, float most) -> Tensor")
    return importlib.import_module("streaming")
