"""Nodes whose rows are found by reading all records once, when the dataset is made.

Before processes of a cluster read them, the files of the dataset are compared with what its nodes see.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.errors import DataNotFound, InvalidArgument
from seekable.index.catalog import CATALOG
from seekable.index.fileset import FileSet
from seekable.nodes.bases import UnaryNode, leaves_of
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.graph import known_size, must_be_steady, nodes_of
from seekable.nodes.saved_rows import KeptRows, RowsOrigin, keep_unnamed, saved_rows
from seekable.parallel.progress import watched
from seekable.state.functions import python_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.parallel import cluster, map_ranges
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressChoice, Watch
else:
    cluster = lazy("seekable.parallel.cluster")
    map_ranges = lazy("seekable.parallel.map_ranges")

__all__ = ["Evaluated", "Evaluation", "EvaluationOptions", "check_seen", "evaluated_rows", "row_files_of"]


class Evaluated(UnaryNode):
    """A node whose records or order depend on a file of rows of the child, which is steady."""

    rows: KeptRows
    """Rows of the child, found by reading its records."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The question that is put to all records of a dataset: what decides the rows, besides the dataset."""

    operation: str
    """The method of a dataset that finds the rows."""

    doing: str
    """The operation as a word for what is going on: ``"filtering"``."""

    function: dict[str, Any]
    """The name and version of the function, and what else decides the rows, JSON-safe."""

    code: str | None
    """The digest of the function's code; None without a function, or where a version replaces it."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The arguments of a user for how an evaluation runs and where its rows are kept."""

    save: str | os.PathLike[str] | None
    jobs: int | None
    executor: Executor | None
    progress: ProgressChoice


def evaluated_rows(
    child: Node,
    question: Evaluation,
    find: Callable[[int, ExecutionOptions, Watch], Iterable[Int64s]],
    running: EvaluationOptions,
) -> KeptRows:
    """Return the rows that an evaluation finds, or that an earlier one kept in the file ``save=``.

    Args:
        child: the dataset whose records are read.
        question: what decides the rows.
        find: returns arrays of the rows; its arguments are the number of records, the processes that it may
            use, and what it calls as it goes on.
        running: how it runs and where rows are kept.

    Raises:
        EndlessDataset: the dataset has no length.
        InvalidArgument: the dataset is not steady, or ``save`` names something else.
        DataNotFound: there is no folder for the file of ``save``, or a node of a cluster sees other data.
        StateMismatch: the saved rows are those of another dataset, operation or function.
        CorruptState: the saved rows are damaged.
    """
    call = f"{question.operation}()"
    size = known_size(child, call)
    must_be_steady(child, call)
    using = map_ranges.execution_options(running.jobs, running.executor, at_once=True)
    path = None if running.save is None else _checked_path(running.save)
    with watched(running.progress, task=question.doing, rows=size) as watch:

        def rows() -> Iterator[Int64s]:
            check_seen(running.executor, child)
            yield from find(size, using, watch)
            if not size:
                watch(0)

        if path is None:
            return keep_unnamed(rows(), question.operation)
        notice = f"another process is {question.doing} into {path!r}: waiting for it"
        origin = RowsOrigin(
            question.operation, child.fingerprint, size, question.function, question.code, python_version()
        )
        with map_ranges.FinishedRanges(f"{path}.part", of=asdict(origin)) as finished:
            using = replace(using, finished=finished)
            kept = saved_rows(path, origin, rows, waiting=lambda: watch(0, notice=notice))
            finished.remove()
            return kept


def _checked_path(save: object) -> str:
    path = checked_path(save)
    if not os.path.basename(path):
        message = f"save must name a file (got {path!r})"
        raise InvalidArgument(message)
    whole = os.path.abspath(path)
    folder = os.path.dirname(whole)
    if not os.path.isdir(folder):
        raise DataNotFound(f"there is no folder {folder!r} for save={path!r}: make it first")
    return whole


def row_files_of(node: Node) -> dict[str, str]:
    """Return the paths of the files that ``save=`` named for a graph, by the digest of their rows."""
    found = (each.rows for each in nodes_of(node) if isinstance(each, Evaluated))
    return {rows.digest: rows.path for rows in found if rows.named}


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
    """Yield the first and last file in each run of data files, the catalogs, and files of kept rows."""
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
