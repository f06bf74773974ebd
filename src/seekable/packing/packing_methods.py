"""The methods of a dataset that pack its documents: ``seekable.dataset.dataset`` has their names and docs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from seekable.nodes.columns.names import must_have
from seekable.nodes.graph import known_size, must_be_steady
from seekable.packing.document_lengths import (
    MOST_IN_MEMORY,
    has_documents,
    packing_columns,
)
from seekable.packing.nodes.packed_node import PackNode, WindowsNode
from seekable.packing.nodes.sample_cut import checked_cut, windows_cut
from seekable.packing.nodes.sample_form import checked_form
from seekable.packing.packing_options import checked_packing
from seekable.packing.row_lengths import row_lengths
from seekable.packing.varlen import Varlen

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from seekable.nodes.node import Node
    from seekable.packing.nodes.packed_node import PackedNode
    from seekable.packing.nodes.sample_form import SampleForm
    from seekable.packing.order.fill_in_middle import Fim
    from seekable.packing.packing_options import Packing
    from seekable.packing.row_lengths import RowLengths
    from seekable.parallel.progress import ProgressChoice

__all__ = ["Varlen", "pack", "windows"]

Packed = TypeVar("Packed", bound="PackedNode")


def windows(  # noqa: PLR0913 - keywords
    dataset: Node,
    length: int,
    *,
    next_token: bool = False,
    align: Iterable[str] = (),
    columns: Iterable[str] | None = None,
    key: str | None = "tokens",
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
) -> WindowsNode:
    """Return the node of ``Dataset.windows``."""
    form = checked_form(
        "windows()", default=("tokens",), key=key, align=align, columns=columns, next_token=next_token
    )
    _checked_order(dataset, "windows()")
    cut = windows_cut(length, extra=form.extra)
    lengths = _lengths(dataset, "windows()", form, jobs, executor, progress)
    return _checked(WindowsNode(dataset, cut, form, lengths))


def pack(  # noqa: PLR0913 - keywords
    dataset: Node,
    length: int,
    *,
    seed: int,
    method: Literal["concat", "best_fit"] | Packing = "concat",
    fim: Fim | None = None,
    next_token: bool = False,
    labels: Literal["within", "across"] | None = None,
    align: Iterable[str] = (),
    key: str | None = "tokens",
    columns: Iterable[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
) -> PackNode:
    """Return the node of ``Dataset.pack``."""
    how = checked_packing(method)
    form = checked_form(
        "pack()",
        default=("tokens", "segment_ids", "positions"),
        key=key,
        align=align,
        columns=columns,
        next_token=next_token,
        labels=labels,
        positions=how.positions,
        pad=how.pad,
    )
    documents = _checked_order(dataset, "pack()")
    cut = checked_cut(length, seed=seed, how=how, fim=fim, extra=form.extra, documents=documents)
    lengths = _lengths(dataset, "pack()", form, jobs, executor, progress)
    return _checked(PackNode(dataset, cut, form, lengths))


def _checked_order(dataset: Node, call: str) -> int:
    """Return the number of documents, if they have one order.

    Raises:
        EndlessDataset: the dataset has no length.
        InvalidArgument: its rows differ between epochs.
    """
    must_be_steady(dataset, call)
    return known_size(dataset, call)


def _lengths(
    dataset: Node,
    call: str,
    form: SampleForm,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressChoice,
) -> RowLengths | None:
    """Return the lengths of documents, read once; None if the index of token files has them."""
    if form.key is not None and has_documents(dataset):
        must_have(dataset, call, (form.key, *form.align))
        if known_size(dataset, call) > MOST_IN_MEMORY:
            packing_columns(dataset, jobs=jobs, executor=executor, progress=progress)
        return None
    return row_lengths(
        dataset,
        form.key,
        align=form.align,
        jobs=jobs,
        executor=executor,
        progress=progress,
        call=call,
    )


def _checked(node: Packed) -> Packed:
    """Return a node that has at least one sample, and whose tokens fit their type.

    Raises:
        InvalidArgument: it has none, or a token does not fit.
    """
    node.check()
    return node
