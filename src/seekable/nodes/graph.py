"""The part of a dataset's graph that reading needs: nodes, routers, readers and plans.

A dataset is a function from positions to records. A node does one of two things with a position:

* a ``Routed`` node names one of its children and a position there: pure arithmetic, no data.
* a ``Read`` node plans what must be read for a position, later reads it and makes a record of it.

Nodes of one class are compiled together: a router or a reader serves any number of nodes, and ``which`` holds
the number of its node for each position. So a mixture of 500 shuffled sources costs a few array operations
and not 500 calls. Arrays called ``which`` and ``slots`` have one element for each position, or a single one
for all.
"""

from __future__ import annotations

import fnmatch
import os
import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

import numpy as np

from seekable._cached import cached
from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.storage import addresses
    from seekable.storage.mapped import MappedFile
else:
    addresses = lazy("seekable.storage.addresses")

__all__ = [
    "HOLE",
    "MOST_DEEP",
    "ChildPlan",
    "ColumnarPlan",
    "DataFiles",
    "FileRanges",
    "Graph",
    "Hole",
    "JointPlan",
    "Origins",
    "Plan",
    "Read",
    "Reader",
    "Routed",
    "Router",
    "SearchRange",
    "SlicedPlan",
    "check_depth",
    "described",
    "each_once",
    "file_matches",
    "gathered",
    "held",
    "known_size",
    "must_be_steady",
    "nodes_of",
    "of_files",
    "of_places",
    "part_of",
    "with_children",
]


class Origins(Value, frozen=True):
    """The file and row of each of some records.

    Example:
        >>> import seekable as sk
        >>> sk.from_sequence("abc")._node.plan(np.array([2, 0])).origins().rows.tolist()
        [2, 0]
    """

    paths: tuple[str, ...]
    """The absolute paths of the files; a source in memory has a name in angle brackets."""

    names: tuple[str, ...]
    """The path of each file below the opened folder; its absolute path if that folder is unknown."""

    files: Int64s
    """The index in ``paths`` of each record's file: int64."""

    rows: Int64s
    """The number of each record in its file, from 0: int64."""

    def take(self, start: int, stop: int) -> Origins:
        """Return the origins of the records ``start`` to ``stop``."""
        return Origins(self.paths, self.names, self.files[start:stop], self.rows[start:stop])


def of_files(files: FileSet, numbers: Int64s, rows: Int64s) -> Origins:
    """Return the origins of records of indexed files.

    Args:
        files: the files.
        numbers: the index of each record's file, int64.
        rows: the number of each record, counted over all files, int64.
    """
    present, used = np.unique(numbers, return_inverse=True)
    paths = tuple(files.shown_path(file) for file in present.tolist())
    names = tuple(map(files.name, present.tolist()))
    if files.has_objects:
        names = tuple(map(addresses.plain_name, paths, names))
    return Origins(paths, names, used.astype(np.int64), rows - files.starts[numbers])


def of_places(places: Sequence[Any]) -> Origins:
    """Return the origins of records whose locations are given one by one.

    Raises:
        InvalidArgument: a record is made of several others.
    """
    numbers: dict[str, int] = {}
    for place in places:
        if isinstance(place, list | tuple):
            message = (
                "the file of a record was asked for, and here a record is made of several (by zip or batch): "
                "ask before they are put together"
            )
            raise InvalidArgument(message)
        numbers.setdefault(place.path, len(numbers))
    paths = tuple(numbers)
    files = np.array([numbers[place.path] for place in places], dtype=np.int64)
    return Origins(paths, paths, files, np.array([place.row for place in places], dtype=np.int64))


def gathered(size: int, parts: Iterable[tuple[NDArray[np.intp], Origins]]) -> Origins:
    """Return the origins of several parts together, each at the given indices."""
    paths: list[str] = []
    names: list[str] = []
    files, rows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for at, part in parts:
        files[at], rows[at] = part.files + len(paths), part.rows
        paths += part.paths
        names += part.names
    return Origins(tuple(paths), tuple(names), files, rows)


def file_matches(pattern: str, *, path: str, name: str) -> bool:
    """Return True if a file matches a pattern.

    A pattern that begins with ``/`` is compared with the absolute path. Any other one is compared with the
    name below the folder that was opened, and with that name's last part. ``*`` stands for anything, ``/``
    included; ``?`` and ``[...]`` are as in a shell.

    Example:
        >>> file_matches("*2024*", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        True
        >>> file_matches("a.jsonl", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        True
        >>> file_matches("*data*", path="/data/y2024/a.jsonl", name="y2024/a.jsonl")
        False
    """
    if pattern.startswith("/"):
        return fnmatch.fnmatchcase(path, pattern)
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(os.path.basename(name), pattern)


@final
class Hole:
    """The type of ``sk.HOLE``, of which there is one in a process.

    A hole keeps the position of a record, so that all others keep theirs. It passes through ``map`` and
    ``filter`` as it is, makes a hole of a ``zip``, and is left out of batches.

    Example:
        >>> import pickle, seekable as sk
        >>> sk.HOLE, pickle.loads(pickle.dumps(sk.HOLE)) is sk.HOLE
        (sk.HOLE, True)
    """

    __slots__ = ()

    def __new__(cls) -> Hole:
        """Return ``sk.HOLE``, the only instance."""
        return HOLE

    def __repr__(self) -> str:
        return "sk.HOLE"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as ``sk.HOLE`` of the process that unpickles."""
        return Hole, ()


HOLE: Final[Hole] = object.__new__(Hole)
"""The value in the place of a record that failed: ``errors=`` of ``sk.open`` or ``map`` gives it."""


T = TypeVar("T")
G = TypeVar("G", bound="Graph")


def part_of(which: Int64s, start: int, stop: int) -> Int64s:
    """Return a slice of an array that has one element for each position, or one for all."""
    return which if which.size == 1 else which[start:stop]


class Plan(ABC):
    """A plan to read the records at some positions, in the requested order; making it reads no data."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records of the plan."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Plan:
        """Return the plan of the positions ``start`` to ``stop``, ``0 <= start <= stop <= len(self)``."""

    @abstractmethod
    def read(self) -> list[Any]:
        """Read the records, in the requested order."""

    @property
    @abstractmethod
    def paths(self) -> set[str]:
        """The paths of the files that the plan reads."""

    @abstractmethod
    def advise(self) -> None:
        """Announce the reads to the operating system, if that can save waiting for a disk."""

    @property
    @abstractmethod
    def from_stores(self) -> bool:
        """True if some of the files may be objects of stores, whose bytes are fetched."""

    @abstractmethod
    def ranges(self) -> Iterator[FileRanges]:
        """Yield the byte ranges that ``read`` reads in files; no record is read.

        Of tables the footers and the page indexes are read, if they are not known yet. Not among the ranges
        are objects that only the contents of records name: those of scripts and of data directories of Kaldi.
        """

    @property
    @abstractmethod
    def bytes(self) -> int:
        """The number of bytes of files that the records take; 0 for records in memory."""

    @abstractmethod
    def locate(self) -> list[Any]:
        """Return a ``Location`` for each record, nested as the records are."""

    def origins(self) -> Origins:
        """Return the file and row of each record; some plans compute these faster than ``locate``.

        Raises:
            InvalidArgument: a record is made of several others.
        """
        return of_places(self.locate())

    def left_out(self) -> NDArray[np.bool_] | None:
        """Return a bool array: True for each record of which ``without`` left nothing.

        That is a hole, or a packed sample of nothing but padding. None, by default, stands for no such
        record. What else is a hole is one because a record failed.
        """
        return None

    def arrays(self) -> dict[str, Any] | None:
        """Return the records as columns, if they are read so without making a record.

        Returns:
            For each column an array with a first axis of records, or a list with a value for each record:
            the default collate function makes the same batch of them as of the records. None, by default,
            if the records are made one by one, or there is none.
        """
        return None


class ChildPlan(Plan):
    """A plan that makes its records from those of one other plan, and reads no file besides."""

    child: Plan

    @property
    def paths(self) -> set[str]:
        """The paths of the files that the child's plan reads."""
        return self.child.paths

    @property
    def from_stores(self) -> bool:
        """True if the child's plan may fetch bytes."""
        return self.child.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes that the child's plan reads."""
        return self.child.ranges()

    def advise(self) -> None:
        """Announce the reads of the child's plan to the operating system."""
        self.child.advise()

    @property
    def bytes(self) -> int:
        """The number of bytes that the child's plan reads."""
        return self.child.bytes


class JointPlan(Plan):
    """A plan that makes its records from those of several other plans, and reads no file besides."""

    @property
    @abstractmethod
    def below(self) -> Sequence[Plan]:
        """The plans that this one reads from."""

    @property
    def paths(self) -> set[str]:
        """The paths of the files that any of the plans reads."""
        return set().union(*(plan.paths for plan in self.below))

    @property
    def from_stores(self) -> bool:
        """True if one of the plans may fetch bytes."""
        return any(plan.from_stores for plan in self.below)

    def ranges(self) -> Iterator[FileRanges]:
        """Yield the ranges of bytes that any of the plans reads."""
        for plan in self.below:
            yield from plan.ranges()

    def advise(self) -> None:
        """Announce the reads of all plans to the operating system."""
        for plan in self.below:
            plan.advise()

    @property
    def bytes(self) -> int:
        """The number of bytes that all plans read."""
        return sum(plan.bytes for plan in self.below)


class ColumnarPlan(Plan):
    """A plan that can also return its records as one batch of Arrow columns."""

    @property
    @abstractmethod
    def columnar(self) -> bool:
        """True if the columns are read as columns: no record is made on the way, and none can be a hole."""

    @abstractmethod
    def table(self) -> Any:
        """Return the records as a ``pyarrow.RecordBatch``, in the requested order."""

    @abstractmethod
    def batches(self) -> Iterator[tuple[NDArray[np.intp], Any, Int64s]]:
        """Yield the record batches that the records lie in, whichever is cheapest to read.

        Each comes between the indices of those of its rows in the plan, and their numbers in the batch.
        """


class SlicedPlan(Plan):
    """A plan for records that are dicts of flat arrays; slices are copied without making a record."""

    counts: Int64s
    """The number of elements of each record's arrays."""

    @abstractmethod
    def copy_into(
        self, out: Mapping[str, Any], rows: Int64s, at: Int64s, starts: Int64s, counts: Int64s
    ) -> None:
        """Copy a slice of each record into arrays: ``out[name][rows[i], at[i] : at[i] + counts[i]]``.

        Args:
            out: an array of each name that is wanted: two dimensions, C-contiguous.
            rows: the row of the arrays that the slice of each record goes to, int64.
            at: the first column that it goes to, int64.
            starts: its first element in the record's arrays, int64.
            counts: its number of elements, int64.
        """

    @abstractmethod
    def advise_slices(self, starts: Int64s, counts: Int64s) -> None:
        """Announce the reads of a slice of each record to the operating system; see ``advise``."""

    @abstractmethod
    def ranges_of_slices(self, starts: Int64s, counts: Int64s) -> Iterator[FileRanges]:
        """Yield the byte ranges for a slice of each record's arrays; see ``ranges``."""

    @abstractmethod
    def locate_slices(self, starts: Int64s, counts: Int64s) -> list[Any]:
        """Return the ``Location`` of a slice in each record's first array."""


def held(plan: Plan, ranges: Iterator[FileRanges] | None = None) -> AbstractContextManager[None]:
    """Return a context in which the bytes that a plan reads of objects of stores are in memory.

    Entering it fetches all that is missing together; where all files are local it does nothing.

    Args:
        plan: the plan.
        ranges: the ranges that are read of its files; None for all of the plan.
    """
    if not plan.from_stores:
        return _NOTHING
    return far().reads.holding(plan.ranges() if ranges is None else ranges)


_NOTHING = nullcontext()


class Router(ABC):
    """Routes positions of many order nodes of one class."""

    @abstractmethod
    def route(self, which: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return two int64 arrays: the slot of a child, and the position in it, for each position."""


class Reader(ABC):
    """Plans the reading of positions in many record nodes of one class."""

    @abstractmethod
    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan to read each position from the node with the index in ``which``."""


class Graph(ABC):
    """A node as its parents use it: children, number of records, and steadiness."""

    @property
    @abstractmethod
    def children(self) -> tuple[Graph, ...]:
        """The nodes that this one takes records from."""

    @cached
    def depth(self) -> int:
        """The depth of the pipeline in steps; a node that takes more calls of Python counts more.

        A node that makes records counts three times, and one that puts several datasets in order twice.
        """
        children = self.children
        own = 3 if isinstance(self, Read) else min(2, len(children))
        deepest = 0
        for child in children:
            deepest = max(deepest, child.depth)
        return own + deepest

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The number of records of an epoch; None if the node is endless."""

    @property
    @abstractmethod
    def steady(self) -> bool:
        """True if each row is the same record in every epoch."""


class Routed(Graph):
    """A node that routes each position to one child."""

    @classmethod
    @abstractmethod
    def router(cls, nodes: Sequence[Any]) -> Router:
        """Return the router of some nodes of this class."""


class Read(Graph):
    """A node that reads or makes records."""

    @classmethod
    @abstractmethod
    def reader(cls, nodes: Sequence[Any]) -> Reader:
        """Return the reader of some nodes of this class."""


def known_size(node: Graph, needed_by: str) -> int:
    """Return the number of records of an epoch.

    Args:
        node: a node that must have a length.
        needed_by: the name of the operation that needs the length, for the error.

    Raises:
        EndlessDataset: the node is endless.
    """
    size = node.size  # Once: each node of a chain asks the one below it.
    if size is None:
        message = f"{needed_by} needs a length, and this dataset is endless: cut it with take(k) first"
        raise EndlessDataset(message)
    return size


def each_once(nodes: Iterable[T]) -> list[T]:
    """Return nodes without those that stand there again.

    A dataset may hold one node at many places: ``d + d`` twenty times over has two million, and 21 nodes.

    Example:
        >>> each_once(["a", "b", "a"])
        ['a', 'b']
    """
    return list({id(node): node for node in nodes}.values())


def nodes_of(node: G) -> list[G]:
    """Return a node and all nodes below it, each once, and those below before those above."""
    found: dict[int, G] = {}
    pending: list[tuple[Any, bool]] = [(node, False)]
    while pending:
        each, is_passed = pending.pop()
        if is_passed:
            found[id(each)] = each
        elif id(each) not in found:
            pending.append((each, True))
            pending.extend((child, False) for child in reversed(each.children))
    return list(found.values())


_MOST_DESCRIBED = 1 << 22
"""The nodes of a description, each counted as often as it stands there: some 500 MB of text."""


class _Descriptions(threading.local):
    """The descriptions that the outermost call of `described` in a thread has made."""

    made: dict[tuple[int, int | None], dict[str, Any]] | None = None
    counts: dict[int, int]


_descriptions = _Descriptions()


def described(node: Any, upto: int | None) -> dict[str, Any]:
    """Return the description of a node over others: its kind and arguments, and those of its children.

    A node that stands at many places is described once, and its description is one object at all of them.

    Args:
        node: the node.
        upto: the position before which the description holds; None for all positions.

    Raises:
        InvalidArgument: written out, it would have millions of nodes.
    """
    known = _descriptions
    is_outermost, key = known.made is None, (id(node), upto)
    if known.made is None:
        known.made, known.counts = {}, {}
    try:
        if key not in known.made:
            below, count = [], 1
            for slot, child in enumerate(node.children):
                stop = None if upto is None else node.child_range(slot, 0, upto)[1]
                if (part := known.made.get((id(child), stop))) is None:
                    part = known.made[id(child), stop] = child.describe(stop)
                below.append(part)
                count += known.counts.get(id(part), 1)
            if count > _MOST_DESCRIBED:
                message = (
                    f"one dataset stands at so many places of this pipeline that its description has more "
                    f"than {_MOST_DESCRIBED:,} nodes: ds.repeat(n) says n times the same in one"
                )
                raise InvalidArgument(message)
            known.made[key] = made = {"kind": node.kind, **node.arguments(upto), "of": below}
            known.counts[id(made)] = count
        return known.made[key]
    finally:
        if is_outermost:
            known.made = None


MOST_DEEP = 210
"""The greatest depth of a pipeline. Python follows calls 1,000 deep, those of the caller among them, and
a node takes up to ten of these where records are read, or the pipeline goes to a worker process."""


def check_depth(node: Graph) -> None:
    """Check that a pipeline is not deeper than Python can follow, wherever it is used.

    Raises:
        InvalidArgument: it is.
    """
    # The depths of nodes below, which may have been unpickled, come first: no call waits for another.
    pending = [node]
    while pending:
        if below := [child for child in pending[-1].children if "depth" not in vars(child)]:
            pending += below
        else:
            _ = pending.pop().depth
    if node.depth > MOST_DEEP:
        message = (
            f"this pipeline is {node.depth} steps deep, and {MOST_DEEP} are the most; those that make "
            f"records, such as map and zip, count three times, and concat and mix twice. Let one function do "
            f"what several do, and give sk.concat or sk.mix all datasets at once"
        )
        raise InvalidArgument(message)


def must_be_steady(node: Graph, needed_by: str) -> None:
    """Raise an error for a node whose rows differ between epochs.

    Args:
        node: a node that must be steady.
        needed_by: the name of the operation that needs it, for the error.

    Raises:
        InvalidArgument: the node is not steady.
    """
    if not node.steady:
        message = (
            f"{needed_by} needs rows that are the same record in every epoch, and here they are not: "
            f"put it before shuffle, pack, mix, without and map(rng=True), take one epoch of them with "
            f"epoch(e), or shuffle with fixed=True"
        )
        raise InvalidArgument(message)


def with_children(node: T, below: Mapping[int, Any]) -> T:
    """Return a copy of a node with other children that have the same records.

    The copy skips the checks of a new node, because ``node`` has passed them.

    Args:
        node: a dataclass whose fields hold its children, or tuples of them.
        below: the new child for each child, by its ``id``.
    """
    made = object.__new__(type(node))
    for field in fields(node):  # type: ignore[arg-type]  # every node that can be made is a dataclass
        object.__setattr__(made, field.name, _replaced(getattr(node, field.name), below))
    return made


def _replaced(value: Any, below: Mapping[int, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(below.get(id(part), part) for part in value)
    return below.get(id(value), value)


_MOST_FOUND = 10_000_000
"""The number of positions that one search may return."""

_LAST = np.iinfo(np.int64).max


class SearchRange(Value, frozen=True):
    """The positions ``start <= p < stop`` of a search.

    If ``stop`` is None, the range is some ``epochs``, of step 1, of the first nodes below that have epochs.
    """

    start: int
    stop: int | None
    epochs: range

    def holds(self, positions: Int64s) -> NDArray[np.bool_]:
        """Return a bool array: True for each position in the range."""
        return (positions >= self.start) & (positions < (_LAST if self.stop is None else self.stop))

    def in_each_epoch(self, rows: Int64s, size: int) -> Int64s:
        """Return the positions of some rows in each epoch of ``size`` rows that the range touches.

        Raises:
            InvalidArgument: there are more than 10 million such positions.
        """
        if not rows.size:
            return rows
        first, last = self.epochs.start, self.epochs.stop
        if self.stop is not None:
            first, last = self.start // size, max(self.start // size, -(-self.stop // size))
        if (last - first) * rows.size > _MOST_FOUND:
            message = (
                f"a row comes at more than {_MOST_FOUND:,} positions: search a part of the dataset, or "
                f"what is repeated instead of the repetition"
            )
            raise InvalidArgument(message)
        return (np.arange(first, last, dtype=np.int64)[:, None] * size + rows).ravel()


class DataFiles(Protocol):
    """Files that are given by their numbers, such as a ``FileSet``."""

    def mapped(self, file: int, /) -> MappedFile:
        """Return an open file.

        Raises:
            IndexStale: the file is not the one that was indexed.
        """
        ...

    def path(self, file: int, /) -> str:
        """Return the absolute path of a file, or its address."""
        ...


@final
class FileRanges(Value, frozen=True, eq=False):
    """Byte ranges in some files, in the order of the records that need them; one may be there twice.

    A range counts the bytes of the content: those that ``files.mapped(file).view`` has. Of a compressed file
    that is not the bytes of the file.
    """

    files: DataFiles
    which: Int64s
    """The index of each range's file."""
    starts: NDArray[np.uint64]
    """Its first byte."""
    ends: NDArray[np.uint64]
    """The byte after its last; equal to ``starts`` where a record has no bytes."""

    @classmethod
    def of(cls, files: DataFiles, which: Int64s, starts: Int64s, ends: Int64s) -> FileRanges:
        """Return ranges whose first and last bytes are int64."""
        return cls(files, which, starts.astype(np.uint64), ends.astype(np.uint64))

    @property
    def bytes(self) -> int:
        """The sum of the ranges' sizes; bytes in two ranges count twice."""
        return int((self.ends - self.starts).sum())
