"""Nodes whose rows are found by reading all records once, when the dataset is made."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.errors import DataNotFound, InvalidArgument
from seekable.nodes.bases import UnaryNode
from seekable.nodes.graph import known_size, must_be_steady, nodes_of
from seekable.nodes.saved_rows import KeptRows, Origin, keep_unnamed, saved_rows
from seekable.parallel.finished_ranges import FinishedRanges
from seekable.parallel.progress import watched
from seekable.state.functions import python_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.nodes import cluster_files
    from seekable.nodes.node import Node
    from seekable.parallel import map_ranges
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook, Watch
else:
    cluster_files = lazy("seekable.nodes.cluster_files")
    map_ranges = lazy("seekable.parallel.map_ranges")

__all__ = ["Evaluated", "Evaluation", "Running", "evaluated_rows", "row_files_of"]


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
class Running:
    """The arguments of a user for how an evaluation runs and where its rows are kept."""

    save: str | os.PathLike[str] | None
    jobs: int | None
    executor: Executor | None
    progress: ProgressHook | None


def evaluated_rows(
    child: Node,
    question: Evaluation,
    find: Callable[[int, ExecutionOptions, Watch], Iterable[Int64s]],
    running: Running,
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
            cluster_files.check_seen(running.executor, child)
            yield from find(size, using, watch)
            if not size:
                watch(0)

        if path is None:
            return keep_unnamed(rows(), question.operation)
        notice = f"another process is {question.doing} into {path!r}: waiting for it"
        origin = Origin(
            question.operation, child.fingerprint, size, question.function, question.code, python_version()
        )
        with FinishedRanges(f"{path}.part", of=asdict(origin)) as finished:
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
