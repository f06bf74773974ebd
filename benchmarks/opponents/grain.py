"""Grain over ArrayRecord: records are bytes, and the JSON in them is decoded as everywhere here."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import msgspec
from benchmarks.pipelines import BATCH, WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DISTRIBUTION = "grain"
_FILE = "records.array_record"
_DECODER = msgspec.json.Decoder()


def convert(source: str, folder: str) -> None:
    """Write each line as a record, in groups of one: its reader warns of larger ones."""
    array_record = importlib.import_module("array_record.python.array_record_module")
    os.makedirs(folder)
    writer = array_record.ArrayRecordWriter(os.path.join(folder, _FILE), "group_size:1")
    with open(source, "rb") as lines:
        for line in lines:
            writer.write(line)
    writer.close()


class Opponent:
    """A MapDataset, as it is and shuffled."""

    def __init__(self, folder: str) -> None:
        grain = importlib.import_module("grain.python")
        source = grain.ArrayRecordDataSource([os.path.join(folder, _FILE)])
        self.get: Callable[[int], Any] = grain.MapDataset.source(source).map(_decoded).__getitem__
        self._shuffled = grain.MapDataset.source(source).shuffle(seed=0).map(_decoded)
        self._workers = grain.MultiprocessingOptions(num_workers=WORKERS)

    def epoch(self) -> Iterable[Any]:
        """Return all records, shuffled, read ahead by its default number of threads."""
        records: Iterable[Any] = self._shuffled.to_iter_dataset()
        return records

    def loaded(self, *, with_map: bool) -> Iterable[Any]:
        """Return an epoch's batches, made by workers."""
        assert not with_map
        batches: Iterable[Any] = self._shuffled.batch(BATCH, batch_fn=list).to_iter_dataset()
        return batches.mp_prefetch(self._workers)  # type: ignore[attr-defined, no-any-return]


def _decoded(line: bytes) -> Any:
    """Decode in a function that can be sent to its workers, which a decoder's own method cannot."""
    return _DECODER.decode(line)
