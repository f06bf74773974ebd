"""Data of the corpus in a store of objects: its index lies in a folder of the user."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING
from unittest import mock

import obstore
from obstore.store import MemoryStore
from tests.corpus import formats
from tests.format_cases import source_of

import seekable as sk
from seekable.remote import mounts
from seekable.remote.stores.obstore_clients import Client
from seekable.remote.stores.obstore_store import ObstoreStore
from seekable.storage.addresses import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = "far"
"""The folder of the indexes."""

NAMES = ("jsonl", "jsonl: blocks", "parquet", "tar: key", "ark", "tokens: megatron")
"""The formats whose data lies in the store."""

_BUCKET = "s3://seekable-corpus"

_LISTINGS = "listings"


@contextlib.contextmanager
def in_a_store(root: Path) -> Iterator[None]:
    """Put the data of formats into a store in memory, whose etags follow from the order of the objects."""
    store = MemoryStore()
    for name in NAMES:
        for path in sorted((root / formats.FOLDER / formats.slug(name)).iterdir()):
            if path.is_file():
                obstore.put(store, path.relative_to(root).as_posix(), path.read_bytes())
    mounted = ObstoreStore(parse(_BUCKET), lambda: Client(store, "none"), secrets=[])
    with mock.patch.dict(mounts._stores, {(_BUCKET, os.getpid()): mounted}):
        yield


def opened(name: str, root: Path) -> sk.Dataset:
    """Open data in the store. How its folder was listed is written each time, and no part of the corpus."""
    case, folder = formats.FORMATS[name], f"{_BUCKET}/{formats.FOLDER}/{formats.slug(name)}"
    ds = sk.open(source_of(case.asked, folder), **case.options, index=sk.Index(folder=root / FOLDER))
    shutil.rmtree(root / FOLDER / _LISTINGS)
    return ds
