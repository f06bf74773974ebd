"""The methods of a dataset that pack its documents: ``seekable.dataset.dataset`` has their names and docs.

``Varlen`` makes one flat batch of packed samples, for attention kernels that take documents of many lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, final

import numpy as np

from seekable._spans import is_spans
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.columns.names import must_have
from seekable.nodes.graph import known_size, must_be_steady
from seekable.packing.document_lengths import MOST_IN_MEMORY, has_documents, packing_columns, row_lengths
from seekable.packing.nodes.packed_node import PackNode, WindowsNode
from seekable.packing.nodes.sample_form import checked_form
from seekable.packing.packing_options import checked_cut, checked_packing, windows_cut

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.packing.document_lengths import RowLengths
    from seekable.packing.nodes.packed_node import PackedNode
    from seekable.packing.nodes.sample_form import SampleForm
    from seekable.packing.order.fill_in_middle import Fim
    from seekable.packing.packing_options import Packing
    from seekable.parallel.progress import ProgressChoice

    Columns = dict[str, Any]

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


_MADE_ANEW = frozenset({"segment_ids", "cu_seqlens", "max_seqlen"})
"""The keys of samples from which the ends of the pieces of a batch are made."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Varlen:
    """A collate function that joins samples to one flat sequence; ``sk.collate.varlen()`` makes it."""

    pad_documents: int | None
    """The number of pieces that ``cu_seqlens`` is filled up to; None to leave it as long as it is."""

    key: str
    """The key of the tokens."""

    rest: Callable[[Any], Any]
    """The collate function for the values that are not one for each token."""

    columnar: ClassVar[bool] = True

    def __call__(self, records: Any) -> dict[str, Any]:
        """Return the flat batch of some samples.

        Args:
            records: a list of dicts; or columns: a dict of arrays and lists, or a record batch of Arrow.

        Raises:
            InvalidArgument: there are no samples, a sample lacks the tokens, samples have different keys, or
                there are more pieces than ``pad_documents``.
            WrongType: a sample is no dict.
        """
        columns = _columns(records)
        if self.key not in columns:
            message = (
                f"varlen() needs the key {self.key!r} of the tokens (got {', '.join(map(repr, columns))}): "
                f"pass varlen(key=...)"
            )
            raise InvalidArgument(message)
        lengths = _list_lengths(columns[self.key])
        edges = _edges(columns, lengths)
        batch: dict[str, Any] = {
            self.key: _flat(columns[self.key]),
            "cu_seqlens": self._filled(edges),
            "max_seqlen": int(np.diff(edges).max(initial=0)),
        }
        if "positions" not in columns:
            starts = np.repeat(edges[:-1], np.diff(edges))
            batch["positions"] = (np.arange(edges[-1]) - starts).astype(np.int32)
        for name, column in columns.items():
            if name not in batch and name not in _MADE_ANEW:
                if _has_spans(column):
                    batch[name] = _joined_spans(column, np.cumsum(lengths) - lengths)
                    continue
                batch[name] = _flat(column) if _is_aligned(column, lengths) else self.rest(list(column))
        return batch

    def _filled(self, edges: Int64s) -> NDArray[np.int32]:
        count, most = len(edges) - 1, self.pad_documents
        if most is None:
            return edges.astype(np.int32)
        if count > most:
            message = (
                f"a batch has {count:,} pieces of documents (the padding of a sample counts as one), more "
                f"than pad_documents={most:,}: pass at least {count:,}, or take smaller batches"
            )
            raise InvalidArgument(message)
        return np.concatenate([edges, np.full(most - count, edges[-1])]).astype(np.int32)


def _columns(records: Any) -> Columns:
    """Return the columns of a batch: for each key an array or a list of one value a sample."""
    if isinstance(records, Mapping):
        return dict(records)
    if type(records).__name__ == "RecordBatch" and hasattr(records, "to_pylist"):
        records = records.to_pylist()
    if not len(records):
        message = "varlen() needs at least one sample (got none)"
        raise InvalidArgument(message)
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            message = (
                f"varlen() takes samples that are dicts with tokens (got a {type(record).__name__}, sample "
                f"{number} of the batch)"
            )
            raise WrongType(message)
        if record.keys() != records[0].keys():
            differing = ", ".join(sorted(map(repr, record.keys() ^ records[0].keys())))
            message = f"samples must have the same keys: sample {number} and sample 0 differ in {differing}"
            raise InvalidArgument(message)
    return {name: [record[name] for record in records] for name in records[0]}


def _list_lengths(tokens: Any) -> Int64s:
    if isinstance(tokens, np.ndarray) and tokens.ndim > 1:
        return np.full(len(tokens), tokens.shape[1])
    return np.array([len(sample) for sample in tokens], dtype=np.int64)


def _is_aligned(column: Any, lengths: Int64s) -> bool:
    """Return True if a column has one value for each token."""
    if isinstance(column, np.ndarray):
        return column.ndim > 1 and column.shape[:2] == (len(lengths), lengths[0])
    return all(
        isinstance(value, np.ndarray | list) and np.ndim(value) > 0 and len(value) == length
        for value, length in zip(column, lengths.tolist(), strict=True)
    )


def _has_spans(column: Any) -> bool:
    return all(isinstance(value, np.ndarray) and is_spans(value.dtype) for value in column)


def _joined_spans(column: Any, starts: Int64s) -> NDArray[Any]:
    """Return the spans of all samples, counted from the first token of the batch."""
    moved = np.concatenate(list(column))
    shifts = np.repeat(starts, [len(value) for value in column])
    moved["start"] += shifts
    moved["end"] += shifts
    return moved


def _flat(column: Any) -> NDArray[Any]:
    if isinstance(column, np.ndarray) and column.ndim > 1:
        return column.reshape(-1, *column.shape[2:])
    return np.concatenate([np.asarray(value) for value in column])


def _edges(columns: Columns, lengths: Int64s) -> Int64s:
    """Return where pieces start in the flat batch, then its end: int64, ascending, distinct."""
    stops = np.cumsum(lengths)
    is_edge = np.zeros(stops[-1] + 1, dtype=np.bool_)
    is_edge[0] = True
    is_edge[stops] = True
    if "segment_ids" in columns:
        segments = _flat(columns["segment_ids"])
        is_edge[1:-1] |= segments[1:] != segments[:-1]
    elif "cu_seqlens" in columns:
        for start, length, edges in zip(stops - lengths, lengths, columns["cu_seqlens"], strict=True):
            is_edge[start + np.minimum(edges, length)] = True
    return np.flatnonzero(is_edge)
