"""WebDataset: one tar, read from its beginning to its end."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION = "webdataset"
_FILE = "records.tar"


def convert(source: str, folder: str) -> None:
    """Write each line as a sample with one member."""
    webdataset = importlib.import_module("webdataset")
    os.makedirs(folder)
    with open(source, "rb") as lines, webdataset.TarWriter(os.path.join(folder, _FILE)) as writer:
        for number, line in enumerate(lines):
            writer.write({"__key__": f"{number:08d}", "json": line})


class Opponent:
    """A pipeline over the tar."""

    def __init__(self, folder: str) -> None:
        webdataset = importlib.import_module("webdataset")
        decode = msgspec.json.Decoder().decode
        samples = webdataset.WebDataset(os.path.join(folder, _FILE), shardshuffle=False)
        self._records = samples.map(lambda sample: decode(sample["json"]))

    def epoch(self) -> Iterable[Any]:
        """Return all records in the order of the tar."""
        records: Iterable[Any] = self._records
        return records
