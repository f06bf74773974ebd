"""The DataLoader of PyTorch, over a seekable dataset: only its own work is compared."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines import BATCH, WORKERS, heavy

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION = "torch"
_FILE = "records.jsonl"


def convert(source: str, folder: str) -> None:
    """Point to the JSON lines."""
    os.makedirs(folder)
    os.symlink(os.path.abspath(source), os.path.join(folder, _FILE))


class Opponent:
    """Loaders whose workers stay from one epoch to the next."""

    def __init__(self, folder: str) -> None:
        ds = sk.open(os.path.join(folder, _FILE))
        self._light, self._heavy = _loader(ds), _loader(ds.map(heavy))

    def epoch(self) -> Iterable[Any]:
        """Return the records of an epoch, one by one."""
        return (
            {"id": int(number), "source": source, "text": text}
            for batch in self._light
            for number, source, text in zip(batch["id"], batch["source"], batch["text"], strict=True)
        )

    def loaded(self, *, with_map: bool) -> Iterable[Any]:
        """Return an epoch's batches, made by workers."""
        return self._heavy if with_map else self._light


def _loader(ds: sk.Dataset) -> Iterable[Any]:
    made: Iterable[Any] = importlib.import_module("torch.utils.data").DataLoader(
        ds, batch_size=BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )
    return made
