"""The files that a dataset is read from, compared between this process and the nodes of a cluster."""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import DataNotFound
from seekable.index.catalog import CATALOG
from seekable.index.fileset import FileSet
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.graph import nodes_of
from seekable.nodes.saved_rows import KeptRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from seekable.nodes.node import Node
    from seekable.parallel import cluster
else:
    cluster = lazy("seekable.parallel.cluster")

__all__ = ["check_seen"]


def check_seen(executor: Executor | None, *datasets: Node | FileSet, folder: str | None = None) -> None:
    """Check that the nodes of a cluster see what datasets are read from; see `check_nodes`.

    Args:
        executor: does the work; nothing is done for one that is of no cluster, and for None.
        datasets: the datasets, or their files.
        folder: where the workers will write.

    Raises:
        DataNotFound: a node sees other data, another index, or other kept rows, or lacks them.
        InvalidArgument: a node has other software.
    """
    if executor is None or not isinstance(executor, cluster.ClusterExecutor):
        return
    paths = {path for dataset in datasets for path in _paths(dataset)}
    try:
        cluster.check_nodes(executor, sorted(paths), folder=folder)
    except DataNotFound as error:
        error.add_note(
            "sk.Index(folder=) or SEEKABLE_INDEX_DIR puts indexes on a shared disk, and save= the rows of "
            "filter, flatten and sort"
        )
        raise


def _paths(dataset: Node | FileSet) -> Iterator[str]:
    """Yield the ends of each run of data files, the catalogs of indexes, and the files of kept rows."""
    if isinstance(dataset, FileSet):
        yield from _ends(dataset)
        return
    for source in (part for leaf in leaves_of(dataset) for part in leaf.parts):
        if isinstance(source, FilesLeaf):
            yield from _ends(source.files)
    yield from _kept(dataset)


def _ends(files: FileSet) -> Iterator[str]:
    first = 0
    for _, folder, count in files.runs:
        if count:
            yield files.path(first)
            yield files.path(first + count - 1)
            yield os.path.join(folder, CATALOG)
        first += count


def _kept(node: Node) -> Iterator[str]:
    for each in filter(is_dataclass, nodes_of(node)):
        values = (getattr(each, field.name) for field in fields(each))
        yield from (value.path for value in values if isinstance(value, KeptRows) and value.count)
