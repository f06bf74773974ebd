"""Energon: its indexed reader of single samples, over the tar files as they are."""

from __future__ import annotations

import glob
import importlib
import os
import tarfile
from array import array
from typing import Any

DISTRIBUTION = "megatron-energon"


def convert(source: str, folder: str) -> None:
    """Link the tar files and index each, as ``energon prepare`` does."""
    os.makedirs(folder)
    for path in sorted(glob.glob(os.path.join(source, "*.tar"))):
        linked = os.path.join(folder, os.path.basename(path))
        os.link(path, linked)
        starts, key = array("Q"), None
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if (stem := member.name.partition(".")[0]) != key:
                    key = stem
                    starts.append(member.offset)
            starts.append(tar.offset)
        with open(f"{linked}.idx", "wb") as file:
            starts.tofile(file)


class Opponent:
    """Single samples by number."""

    def __init__(self, folder: str) -> None:
        reader = importlib.import_module("megatron.energon.flavors.webdataset.itar_reader")
        structs = importlib.import_module("megatron.energon.flavors.webdataset.structs")
        path = importlib.import_module("megatron.energon.epathlib").EPath
        tars = sorted(glob.glob(os.path.join(folder, "*.tar")))
        infos = [
            structs.ShardInfo(
                name=os.path.basename(tar), path=path(tar), count=os.path.getsize(f"{tar}.idx") // 8 - 1
            )
            for tar in tars
        ]
        self._reader = reader.ShardInfosITarReader(path(folder), infos, itar_cache_size=len(tars))

    def get(self, row: int) -> Any:
        """Return a sample: a dict of bytes."""
        return self._reader[row]

    def shown(self, row: int) -> Any:
        """Return the names and the sizes of a sample's fields."""
        fields = self.get(row).items()
        return {name: len(value) for name, value in fields if isinstance(value, bytes)}
