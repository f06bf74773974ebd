"""The lengths of documents in a dataset, as packing needs them: by document, end to end, sorted by length.

Where records hold lists of tokens, all rows are read once. Lists of tables are counted from the offsets that
Arrow has for them; no list is made. The lengths lie in a temporary file, which is memory-mapped, as the rows
that ``filter`` keeps.
"""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final
from weakref import WeakKeyDictionary

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable.errors import IndexStale, InvalidArgument, WrongType
from seekable.index.index_location import find_index
from seekable.index.offsets import drop_read_pages
from seekable.nodes.bases import leaves_of, with_leaves
from seekable.nodes.columns.names import must_have
from seekable.nodes.display import describe_place
from seekable.nodes.evaluated import check_seen
from seekable.nodes.files.leaf import SlicedLeaf
from seekable.nodes.graph import SlicedPlan, known_size, must_be_steady
from seekable.nodes.node import node_of
from seekable.nodes.saved_rows import keep_unnamed
from seekable.packing.length_columns import CHUNK, ColumnBuild, DocumentChunks, open_columns_of
from seekable.packing.nodes.lists import NotAList, lists_of
from seekable.packing.nodes.sample_form import TOKENS
from seekable.packing.order.axis import OffsetsAxis
from seekable.packing.order.length_order import length_order, offsets_of
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched
from seekable.storage.files import has_access

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from seekable._typing import Int64s
    from seekable.index.build import commit
    from seekable.nodes.node import HoldsNode, Node
    from seekable.nodes.saved_rows import KeptRows
    from seekable.nodes.saving import Loading, Saving
    from seekable.packing.order.length_order import LengthOrder
    from seekable.parallel.progress import ProgressChoice
else:
    commit = lazy("seekable.index.build.commit")

__all__ = [
    "MOST_IN_MEMORY",
    "CountedDocuments",
    "Documents",
    "IndexedDocuments",
    "RowLengths",
    "document_lengths",
    "has_documents",
    "packing_columns",
    "row_lengths",
    "token_lengths",
]


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
    """Return how many tokens each of some consecutive rows has: int64; no data file is read.

    Args:
        node: a steady dataset for which `has_documents` is True.
        start: the first row.
        stop: the row after the last one; all further rows if left out.
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
"""The lengths of datasets, as long as the array is used elsewhere: they may be asked for in a loop."""


def token_lengths(dataset: HoldsNode) -> Int64s:
    """Return the token count of each document in token files: int64, one a record; it cannot be written.

    No data file is read: the counts come from the index.

    Args:
        dataset: documents of token files. The rows may be chosen and put into any fixed order.

    Raises:
        InvalidArgument: the rows are no documents of token files, or differ between epochs.
        EndlessDataset: the dataset has no length.

    Example:
        >>> import tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = sk.from_sequence([{"tokens": [5, 6, 7]}, {"tokens": [9]}]).write_tokens(folder)
        ...     sk.formats.token_lengths(sk.open(folder)).tolist()
        [3, 1]
    """
    node = node_of(dataset)
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
    progress: ProgressChoice = None,
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
    chunks = DocumentChunks(_LengthsOf(node), documents, chunk or CHUNK)
    build = ColumnBuild(folder, name, files, chunks)
    return build.run(using=execution_options(jobs, executor, at_once=False), progress=progress)


class Documents(ABC):
    """The lengths of documents in the orders that packing needs, and the types of their arrays."""

    @property
    @abstractmethod
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64."""

    @property
    @abstractmethod
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then the number of all tokens: int64."""

    @property
    @abstractmethod
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order."""

    @property
    @abstractmethod
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths."""

    @property
    @abstractmethod
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of the tokens, by the name ``"tokens"``, and of the aligned arrays."""


@final
@dataclass(frozen=True)
class CountedDocuments(Documents):
    """Documents whose lengths were found by reading their lists once."""

    rows: RowLengths

    @property
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64, memory-mapped."""
        return self.rows.lengths

    @cached
    def offsets(self) -> Int64s:
        """The number of tokens before each document, then the number of all tokens: int64."""
        return offsets_of(self.lengths)

    @cached
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order."""
        return OffsetsAxis.of(self.offsets)

    @cached
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths, made in memory."""
        return length_order(self.lengths)

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type that holds the numbers of all rows of each array; the tokens' name is ``"tokens"``."""
        (_, tokens), *aligned = self.rows.dtypes
        return {TOKENS: np.dtype(tokens), **{str(name): np.dtype(dtype) for name, dtype in aligned}}


@final
@dataclass(frozen=True)
class IndexedDocuments(Documents):
    """Documents of token files, whose lengths follow from the index."""

    child: Node

    @cached
    def lengths(self) -> Int64s:
        """The number of tokens of each document: int64."""
        return document_lengths(self.child)

    @cached
    def offsets(self) -> Int64s:
        """The tokens before each document, counted, then all: int64; a memory map if there are many."""
        if known_size(self.child, "lengths") > MOST_IN_MEMORY:
            return self.order.offsets
        return offsets_of(self.lengths)

    @cached
    def axis(self) -> OffsetsAxis:
        """The documents end to end in natural order; no page of a memory map is read for it."""
        if known_size(self.child, "lengths") > MOST_IN_MEMORY:
            return OffsetsAxis(self.order.offsets, self.order.coarse)
        return OffsetsAxis.of(self.offsets)

    @cached
    def order(self) -> LengthOrder:
        """The documents in the order of their lengths: columns of the index above 2**20 documents."""
        return packing_columns(self.child)

    @cached
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each array of documents, which holds the types in all sources."""
        types: dict[str, list[np.dtype[Any]]] = {}
        for leaf in leaves_of(self.child):
            assert isinstance(leaf, SlicedLeaf)
            for name, dtype in leaf.dtypes.items():
                types.setdefault(name, []).append(dtype)
        return {name: np.result_type(*some) for name, some in types.items()}


_PLANNED = 4096
"""The most rows whose reading is planned together."""

_BYTES = 64 << 20
"""About the bytes of files that are read at a time."""


@final
@dataclass(frozen=True, eq=False)
class RowLengths:
    """The tokens that each row of a dataset has, counted, and the types of the arrays with them."""

    rows: KeptRows
    """The file of the lengths."""

    dtypes: tuple[tuple[str | None, str], ...]
    """The name of each array, and the type that holds the numbers of all rows (``"int64"``); tokens first."""

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the file of the lengths, and the types."""
        return {"rows": into.rows(self.rows), "dtypes": self.dtypes}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> RowLengths:
        """Return the lengths that `as_json` wrote; errors are those of `seekable.nodes.saving.Loading`."""
        said = given.checked(value, dict[str, Any], where)
        rows = given.rows(said.get("rows"), f"{where}.rows")
        dtypes = given.checked(said.get("dtypes"), tuple[tuple[str | None, str], ...], f"{where}.dtypes")
        return cls(rows, dtypes)

    @cached
    def lengths(self) -> Int64s:
        """The number of tokens of each row: int64, memory-mapped.

        Raises:
            IndexStale: the file is gone, because the process that made it has ended.
        """
        try:
            return self.rows.array
        except IndexStale as error:
            message = (
                f"the lengths of the rows in {self.rows.path!r} are gone: they lasted as long as the process "
                f"that found them; make the packed dataset again in this process"
            )
            raise IndexStale(message) from error

    @property
    def digest(self) -> str:
        """The xxh3_64 digest of the lengths as little-endian 64-bit numbers."""
        return self.rows.digest


def row_lengths(
    child: Node,
    key: str | None,
    *,
    align: tuple[str, ...] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
    call: str = "pack()",
) -> RowLengths:
    """Read the lists of a dataset once, and return how many tokens each row has.

    Of tables only the named columns are read. A hole has no tokens.

    Args:
        child: the dataset; it must be steady and have a length.
        key: the name of the list of tokens; None if the records are the lists.
        align: the names of lists that must be as long as those of the tokens.
        jobs: the most processes; None for as many as there are processors, where they are worth their start.
        executor: does the work instead.
        progress: a function that is called as it goes on; False for none. By default a bar on a terminal.
        call: the method that needs the lengths, for errors.

    Raises:
        EndlessDataset: the dataset has no length.
        InvalidArgument: the dataset is not steady.
        MissingColumn: there is no column of a name; of records the error names the file and the row.
        WrongType: a record has no flat list of integers there, or lists of other lengths; the error names
            the file and the row.
    """
    size = known_size(child, call)
    must_be_steady(child, call)
    names = (key, *align)
    columns = [name for name in names if name is not None]
    must_have(child, call, columns)
    narrowed = child.narrowed(frozenset(columns)) if key is not None else child
    job = _Lengths(narrowed, names, call)
    using = execution_options(jobs, executor, at_once=True)
    check_seen(executor, child)
    dtypes: list[set[str]] = [set() for _ in names]

    def lengths() -> Iterator[Int64s]:
        with contextlib.closing(map_ranges(job, size, using=using)) as found:
            for done, (some, kinds) in found:
                watch(done)
                for known, new in zip(dtypes, kinds, strict=True):
                    known.update(new)
                yield some
        if not size:
            watch(0)

    with watched(progress, task="reading lengths", rows=size) as watch:
        rows = keep_unnamed(lengths(), "pack")
    allowed = ["iub", *["iubf"] * len(align)]
    common = [_common(*each, call=call) for each in zip(names, dtypes, allowed, strict=True)]
    return RowLengths(rows, tuple(zip(names, common, strict=True)))


def _common(name: str | None, dtypes: set[str], allowed: str, *, call: str) -> str:
    """Return the type that holds the numbers of all rows; int64 where no row has any.

    Raises:
        WrongType: there is no such type.
    """
    common = np.result_type(*sorted(dtypes)) if dtypes else np.dtype(np.int64)
    if common.kind not in allowed:
        where = "the dataset" if name is None else repr(name)
        message = (
            f"{call}: no integer type holds arrays of {' and '.join(sorted(dtypes))}, as {where} has them: "
            f"convert them in a map() before"
        )
        raise WrongType(message)
    return str(common)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """A picklable job that finds the lengths and the types of arrays in a range of rows."""

    child: Node
    names: tuple[str | None, ...]
    call: str

    def __call__(self, start: int, stop: int) -> tuple[Int64s, list[frozenset[str]]]:
        found = [np.empty(0, dtype=np.int64)]
        dtypes: list[frozenset[str]] = [frozenset() for _ in self.names]
        for first in range(start, stop, _PLANNED):
            rows = np.arange(first, min(first + _PLANNED, stop), dtype=np.int64)
            plan = self.child.plan(rows)
            step = max(1, min(rows.size, rows.size * _BYTES // max(1, plan.bytes)))
            for at in range(0, rows.size, step):
                lengths, kinds = self._some(plan.slice(at, min(at + step, rows.size)), first + at)
                found.append(lengths)
                dtypes = [known | new for known, new in zip(dtypes, kinds, strict=True)]
        return np.concatenate(found), dtypes

    def _some(self, plan: Any, first: int) -> tuple[Int64s, list[set[str]]]:
        """Return the lengths of consecutive rows, and the types of arrays that are not empty."""
        try:
            lists = lists_of(plan, self.names, [name for name in self.names[1:] if name is not None])
        except NotAList as error:
            raise error.placed(self.child, first + error.record, self.call) from None
        lengths = lists[0].lengths
        for name, other in zip(self.names[1:], lists[1:], strict=True):
            if (wrong := np.flatnonzero(other.lengths != lengths)).size:
                row = int(wrong[0])
                message = (
                    f"{describe_place(self.child, first + row)}: {self.call} needs as many numbers in "
                    f"{name!r} as there are tokens, {lengths[row]:,} (got {other.lengths[row]:,})"
                )
                raise WrongType(message)
        return lengths, [each.dtypes for each in lists]
