"""Grain over ArrayRecord: records are bytes, and the JSON in them is decoded as everywhere here."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DISTRIBUTION = "grain"
_FILE = "records.array_record"


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
        decode = msgspec.json.Decoder().decode
        self.get: Callable[[int], Any] = grain.MapDataset.source(source).map(decode).__getitem__
        self._shuffled = grain.MapDataset.source(source).shuffle(seed=0).map(decode)

    def epoch(self) -> Iterable[Any]:
        """Return all records, shuffled, read ahead by its default number of threads."""
        records: Iterable[Any] = self._shuffled.to_iter_dataset()
        return records
