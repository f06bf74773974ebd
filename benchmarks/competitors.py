"""The opponents that run in this process, if they are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Forager:
    """Forager, over one folder of JSON lines."""

    name: str
    folder: str

    def forget(self) -> None:
        """Remove its index, which it refuses to replace."""
        shutil.rmtree(os.path.join(self.folder, "index"), ignore_errors=True)

    def build(self) -> None:
        """Index the folder."""
        indexer = importlib.import_module("data_forager.indexers.jsonl_indexer")
        indexer.create_default_jsonl_indexer(self.folder)()

    def open(self) -> Any:
        """Return its dataset, after indexing the folder if need be."""
        if not os.path.exists(os.path.join(self.folder, "index")):
            self.build()
        dataset = importlib.import_module("data_forager.datasets.jsonl").JsonlDataset
        return dataset.create_from_index_on_filesystem(self.folder)


@dataclass(frozen=True, slots=True)
class Lhotse:
    """Lhotse, over one file of JSON lines."""

    name: str
    path: str

    def build(self) -> None:
        """Index the file, in place of an index that is there."""
        importlib.import_module("lhotse.indexing").create_jsonl_index(self.path)

    def open(self) -> Any:
        """Return its reader of single records."""
        return importlib.import_module("lhotse.indexing").IndexedJsonlReader(self.path)

    def shuffled(self, *, seed: int) -> Iterator[Any]:
        """Return its iterator over the records, shuffled, as dicts."""
        lazy = importlib.import_module("lhotse.lazy")
        iterator = lazy.LazyIndexedManifestIterator(
            self.path, shuffle=True, seed=seed, decode=lazy.GraphOriginDict
        )
        return iter(iterator)

    def graph(
        self, paths: Sequence[str], passes: Callable[[Any], bool], fn: Callable[[Any], Any]
    ) -> Iterator[Any]:
        """Return its iterator over some files, shuffled, mixed as 7 to 3, filtered and mapped."""
        lazy, indexing = importlib.import_module("lhotse.lazy"), importlib.import_module("lhotse.indexing")
        for path in paths:
            if not os.path.exists(f"{path}.idx"):
                indexing.create_jsonl_index(path)
        sources = [
            lazy.LazyIndexedManifestIterator(path, shuffle=True, seed=seed, decode=lazy.GraphOriginDict)
            for seed, path in enumerate(paths)
        ]
        mixed = lazy.LazyIteratorMultiplexer(*sources, weights=[7, 3], seed=0)
        return iter(lazy.LazyMapper(lazy.LazyFilter(mixed, passes), fn))


FORAGER, LHOTSE = "Forager 0.2.0", "Lhotse 2.0.0a7"
"""The names in the table of opponents that are not installed."""


def forager(folder: str) -> Forager | None:
    """Return Forager, if it is installed."""
    version = _version("data-forager", "data_forager")
    return Forager(f"Forager {version}", folder) if version else None


def lhotse(path: str) -> Lhotse | None:
    """Return Lhotse, if it is installed."""
    version = _version("lhotse", "lhotse.indexing")
    return Lhotse(f"Lhotse {version}", path) if version else None


def _version(distribution: str, module: str) -> str | None:
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
        return importlib.metadata.version(distribution)
    return None
