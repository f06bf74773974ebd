"""The lengths of the documents of a dataset, and the columns that packing looks documents up in."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, final
from weakref import WeakKeyDictionary

import numpy as np

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.index.index_location import find_index
from seekable.index.offsets import drop_read_pages
from seekable.nodes.bases import leaves_of, with_leaves
from seekable.nodes.evaluated import check_seen
from seekable.nodes.files.leaf import SlicedLeaf
from seekable.nodes.graph import SlicedPlan, known_size, must_be_steady
from seekable.packing.lengths.length_columns import open_columns_of
from seekable.packing.order.length_order import length_order
from seekable.parallel.map_ranges import execution_options
from seekable.storage.files import has_access

if TYPE_CHECKING:
    import os
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.index.build import commit
    from seekable.nodes.node import Node
    from seekable.packing.lengths import sort_lengths
    from seekable.packing.order.length_order import LengthOrder
    from seekable.parallel.progress import ProgressHook
else:
    commit = lazy("seekable.index.build.commit")
    sort_lengths = lazy("seekable.packing.lengths.sort_lengths")

__all__ = ["MOST_IN_MEMORY", "document_lengths", "has_documents", "lengths_of_documents", "packing_columns"]

MOST_IN_MEMORY = 1 << 20
"""The most documents whose columns are made in memory at each opening, in a tenth of a second."""

_ROWS_AT_ONCE = 1 << 16
"""The rows whose lengths are looked up together."""


def has_documents(node: Node) -> bool:
    """Return True if the rows of a dataset are documents of token files, in whatever order."""
    first, *others = leaves_of(node)
    if not isinstance(first, SlicedLeaf) or any(type(leaf) is not type(first) for leaf in others):
        return False  # A plan over leaves of several classes has no counts.
    return with_leaves(node, lambda leaf: leaf, past_records=False) is not None


def document_lengths(node: Node, start: int = 0, stop: int | None = None) -> Int64s:
    """Return the number of tokens of consecutive rows of a dataset, int64; no data file is read.

    Args:
        node: a steady dataset for which `has_documents` is True.
        start: the first row.
        stop: the row behind the last one; all further rows if left out.
    """
    stop = known_size(node, "lengths") if stop is None else stop
    lengths = np.empty(stop - start, np.int64)
    for first in range(start, stop, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, stop)
        if isinstance(node, SlicedLeaf):
            found = node.lengths_between(first, last)
        else:
            plan = node.plan(np.arange(first, last, dtype=np.int64))
            assert isinstance(plan, SlicedPlan)
            found = plan.counts
        lengths[first - start : last - start] = found
    return lengths


_kept: WeakKeyDictionary[Node, weakref.ref[Int64s]] = WeakKeyDictionary()
"""The lengths of datasets, as long as the array is used elsewhere: `lengths` may be read in a loop."""


def lengths_of_documents(node: Node) -> Int64s:
    """Return the number of tokens of each row of a dataset: int64, it cannot be written.

    Raises:
        InvalidArgument: the rows are no documents of token files, or differ between epochs.
        EndlessDataset: the dataset has no length.
    """
    known = _kept.get(node)
    lengths = None if known is None else known()
    if lengths is None:
        if not has_documents(node):
            message = (
                f"lengths are those of documents of token files, and these are rows of {node.expression()}: "
                f"take them before map() and other changes of records; pack() itself counts lists of other "
                f"records, in the column that key= names"
            )
            raise InvalidArgument(message)
        must_be_steady(node, "lengths")
        lengths = document_lengths(node)
        lengths.flags.writeable = False
        _kept[node] = weakref.ref(lengths)
    return lengths


@final
@dataclass(frozen=True, slots=True)
class _LengthsOf:
    """`document_lengths` of a dataset, as a function that can be sent to other processes."""

    node: Node

    def __call__(self, start: int, stop: int) -> Int64s:
        lengths = document_lengths(self.node, start, stop)
        # Else the pages of the index, read once, would count as memory of this process.
        drop_read_pages()
        return lengths


def packing_columns(
    node: Node,
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    index_dir: str | os.PathLike[str] | None = None,
    most_in_memory: int = MOST_IN_MEMORY,
    chunk: int | None = None,
) -> LengthOrder:
    """Return the columns that packing looks documents up in.

    Up to 2**20 documents they are made in memory. Above, they are columns of the index, memory-mapped, and
    built at first use: once for all lengths of samples, methods and seeds.

    Args:
        node: a steady dataset for which `has_documents` is True.
        jobs: the most processes that sort documents; None for one to a processor.
        executor: does the work instead; it stays open.
        progress: is called with the number of documents that are done.
        index_dir: the folder for indexes, if the index of the files cannot be written.
        most_in_memory: the most documents whose columns are made in memory.
        chunk: the documents that are sorted together, a multiple of 256; None for the default.

    Raises:
        InvalidArgument: rows of the dataset differ between epochs, or are no documents of token files.
        AccessDenied: no folder for the index can be written.
        WorkerDied: a worker process ended too early.
    """
    must_be_steady(node, "packing")
    documents = known_size(node, "packing")
    if documents <= max(most_in_memory, 0) or not documents:
        return length_order(document_lengths(node))
    if not has_documents(node):
        message = f"packing needs documents of token files, and these are rows of {node.expression()}"
        raise InvalidArgument(message)
    files = next(leaf.files for leaf in leaves_of(node) if isinstance(leaf, SlicedLeaf) and leaf.size)
    root, own, _ = files.runs[0]
    name = node.fingerprint.rpartition(":")[2]
    folders = dict.fromkeys((own, find_index(root, index_dir=index_dir).folder))
    for folder in folders:
        if (found := open_columns_of(folder, name)) is not None:
            return found
    folder = next((folder for folder in folders if has_access(folder, 7)), list(folders)[-1])
    check_seen(executor, node, folder=folder)
    commit.make_folder(folder)
    chunks = sort_lengths.Chunks(_LengthsOf(node), documents, chunk or sort_lengths.CHUNK)
    build = sort_lengths.ColumnBuild(folder, name, files, chunks)
    return build.run(using=execution_options(jobs, executor, at_once=False), progress=progress)
