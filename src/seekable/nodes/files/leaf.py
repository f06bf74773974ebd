"""The base of the sources over indexed files, and what all of them are asked.

A source of lines, entries, samples, tables or tokens is a ``FilesLeaf``: its rows are those of its files, one
file after another. Whoever looks for keys, conditions, columns of folders or damage asks it, and never which
class it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from msgspec import Struct

from seekable._cached import cached
from seekable._log import warn_caller
from seekable.nodes.key import itself
from seekable.nodes.node import LeafNode, NamedFiles
from seekable.nodes.readahead import read_rows
from seekable.order.blocks import default_blocks_within
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.errors import CorruptRecord
    from seekable.formats.contract import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.index.integrity import VerificationProblem
    from seekable.nodes.conditions import Bounds, Where
    from seekable.nodes.graph import FileRanges
    from seekable.nodes.key import KeyOf, Keys
    from seekable.nodes.node import Node

    """The shapes of objects: an array if all have as many dimensions, else a list, with None for holes."""

    Bad = dict[str, tuple[CorruptRecord, int]]
    """By path, the first record of a file that cannot be decoded, and the number of such records."""

__all__ = ["FilesLeaf", "OwnKeys", "RunsLeaf", "SlicedAxis", "SlicedLeaf", "undecodable", "warn_of_files"]

_MOST_WARNED = 5
"""The most files that one warning names."""

_STREAK, _STREAK_BEGINS = 64, 8
"""Of rows read one by one in their order: the rows between two announcements, and before the first one."""


class OwnKeys(ABC):
    """The keys of a source that has them without its records; a small value, picklable."""

    @property
    @abstractmethod
    def of(self) -> KeyOf:
        """The definition of these keys."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return what decides the keys besides the files, JSON-safe, for the file of their index."""

    @abstractmethod
    def hashes(self, rows: Int64s) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the hash of the key of each row, and an array that is False for rows without a key."""

    @abstractmethod
    def key_at(self, row: int) -> str:
        """Return the key of a row.

        Raises:
            IndexStale: the file has changed.
        """

    @abstractmethod
    def alone(self, keys: Keys) -> Node:
        """Return the same rows, whose records are their keys.

        Args:
            keys: the index of these keys.
        """


class FilesLeaf(LeafNode):
    """A source over one set of indexed files: row ``r`` is record ``r``, one file after another."""

    files: FileSet
    errors: OnError | None

    if TYPE_CHECKING:

        @property
        def format(self) -> str:
            """The name of the format, with what decides where records start."""

        @property
        def version(self) -> str | int | None:
            """The version that stands for the code of the user's functions."""

    @cached
    def size(self) -> int:
        """The number of records of all files."""
        return int(self.files.starts[-1])

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows, counted over all files, of a row in each file of that path."""
        return self.files.rows_of(path, row)

    def named_files(self) -> NamedFiles:
        """Return the files as fingerprints know them."""
        files = self.files
        return NamedFiles(files.plain_names(), files.digests("head_tail"), files.records)

    def close(self) -> None:
        """Close the files of the source. They are opened again when a record is read."""
        self.files.close()
        self.close_others()

    def close_others(self) -> None:
        """Close the files that are read besides; a source of ``files`` alone has none."""

    @property
    @abstractmethod
    def finder(self) -> Finder:
        """The surveyor that found the records in the files."""

    def over(self, files: FileSet) -> Self:
        """Return the same source over other files."""
        return replace(self, files=files)  # type: ignore[type-var]  # every concrete node is a dataclass

    def shown_options(self, *own: KeyOf) -> str:
        """Return ``key=`` and ``errors=`` as they stand in the call of ``sk.open``, each after a comma.

        Args:
            own: the keys that a source of this format has without being asked for them.
        """
        key = "" if self.keys is None or self.keys.of in own else f", key={self.keys.name}"
        if self.errors is None:
            return key
        return f"{key}, errors={getattr(self.errors, '__qualname__', self.errors)}"

    def own_keys(self) -> OwnKeys | None:
        """Return the keys that records have without being read; None if they have none."""
        return None

    def keys_alone(self) -> tuple[Node, KeyOf]:
        """Return the source for keys alone; keys that records have without being read are its records."""
        own = self.own_keys()
        if self.keys is None or own is None or own.of != self.keys.of:
            return super().keys_alone()
        return own.alone(self.keys), itself

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return what decides the records of given bytes, JSON-safe.

        Args:
            describe: returns the description of a function with the version that stands for its code.
        """
        return None

    def declared_by_file(self) -> list[tuple[str, str, Mapping[str, Any]]] | None:
        """Return for each file its path, its name below the opened folder, and the columns that it has.

        Returns:
            For each column an Arrow type; None for the whole where only records show which columns there are.
        """
        return None

    def may_match_knowing(self, where: Where, known: Sequence[Mapping[str, Bounds]]) -> Int64s:
        """Return the runs of rows that may pass, where bounds of some columns are known without the files.

        Args:
            where: the conditions.
            known: for each file the known bounds; a file that these rule out is not opened.

        Returns:
            An array of shape (runs, 2), as of ``may_match``.
        """
        passing: dict[int, bool] = {}
        for bounds in known:
            if id(bounds) not in passing:
                passing[id(bounds)] = where.may_pass(bounds)
        may_pass = [False, *(passing[id(bounds)] for bounds in known), False]
        edges = np.flatnonzero(np.diff(np.array(may_pass, dtype=np.int8)))
        return self.files.starts[edges].reshape(-1, 2)

    def beside(self) -> tuple[FileSet, ...]:
        """Return the other indexed files that records are made of; their finder is that of ``files``."""
        return ()

    def problems(self) -> Sequence[VerificationProblem]:
        """Return what is wrong with the content of files that the index does not see; all bytes are read."""
        return ()

    def bad_rows(self, start: int, stop: int) -> Bad:
        """Return the records of some rows that cannot be decoded; any process can call it."""
        return undecodable(self, start, stop)


def warn_of_files(source: Any, kind: type[Warning]) -> None:
    """Warn about the first five strange things that the surveys of files found.

    Args:
        source: a source whose ``words`` have the schemas of its files, each with its warnings.
        kind: the class of the warning.
    """
    schemas = source.words.schemas
    if not any(schema.warnings for schema in schemas):
        return
    texts = [
        f"{source.files.shown_path(file)}: {text}"
        for file, schema in enumerate(source.words.schema_of.tolist())
        for text in schemas[schema].warnings
    ]
    more = f"\nand {len(texts) - _MOST_WARNED:,} more" if len(texts) > _MOST_WARNED else ""
    warn_caller("\n".join(texts[:_MOST_WARNED]) + more, kind)


def undecodable(leaf: LeafNode, start: int, stop: int) -> Bad:
    """Return which records of some rows cannot be decoded."""
    found: list[CorruptRecord] = []
    collecting = replace(leaf, errors=found.append)  # type: ignore[type-var]  # each source has the field
    for _ in read_rows(collecting, np.arange(start, stop, dtype=np.int64)):
        pass  # Each corrupt record is collected, and reading goes on with the next one.
    bad: Bad = {}
    for error in sorted(found, key=lambda error: error.row):
        first, before = bad.get(error.path, (error, 0))
        bad[error.path] = first, before + 1
    return bad


class RunsLeaf(FilesLeaf):
    """A source whose blocks are runs of rows; rows read one by one in their order are announced ahead."""

    @cached
    def blocks(self) -> Int64s:
        """The edges of blocks of 1,024 rows, int64; no block crosses files."""
        return default_blocks_within(self.files.records)

    @property
    def cache_bytes(self) -> int:
        """The bytes that the operating system can cache."""
        return cache_bytes()

    @property
    def reads_all_bytes(self) -> bool:
        """True if a record is made of nearly all bytes of its row, so that rows are announced as a whole."""
        return True

    @abstractmethod
    def record_of(self, file: int, row: int) -> Any:
        """Return the record of a row of a file.

        Raises:
            CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
            IndexStale: the file has changed.
        """

    def record(self, position: int) -> Any:
        """Return the record at a position; positions go on over the epochs.

        Raises:
            CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        reads = self._reads
        starts = reads.starts
        row = position % starts[-1]
        file = bisect_right(starts, row) - 1
        row -= starts[file]
        if position == reads.expected:
            reads.length += 1
            if reads.length % _STREAK == _STREAK_BEGINS and self.reads_all_bytes:
                self._announce(file, row)
        else:
            reads.length = 0
        reads.expected = position + 1
        return self.record_of(file, row)

    def _announce(self, file: int, row: int) -> None:
        """Advise the system to fetch the rows of a file from this one on."""
        last = min(row + 2 * _STREAK, int(self.files.records[file])) - 1
        self.files.mapped(file).advise(self.files.range(file, row)[0], self.files.range(file, last)[1])

    @cached
    def _reads(self) -> _SingleReads:
        return _SingleReads(self.files.starts.data)


class SlicedAxis(ABC):
    """The elements of all records in one sequence; windows of it are copied without making a record.

    ``starts`` are the first elements of windows, counted over all files, int64.
    """

    @property
    @abstractmethod
    def from_stores(self) -> bool:
        """True if some of the files are objects of stores."""

    @abstractmethod
    def copy_into(self, out: Mapping[str, NDArray[Any]], starts: Int64s) -> None:
        """Copy a window of elements into each row of arrays.

        Args:
            out: an array of each name that is wanted, of shape (windows, elements of a window), C-contiguous.
            starts: the windows.

        Raises:
            IndexStale: a file has changed.
        """

    @abstractmethod
    def advise(self, starts: Int64s, width: int) -> None:
        """Announce the reads of windows to the operating system, if that can save waiting for a disk."""

    @abstractmethod
    def ranges(self, starts: Int64s, width: int, columns: Container[str]) -> Iterator[FileRanges]:
        """Yield the byte ranges of windows of so many elements, in the arrays with these names."""

    @abstractmethod
    def paths(self, starts: Int64s, width: int) -> set[str]:
        """Return the paths of the files that windows of so many elements lie in."""


class SlicedLeaf(RunsLeaf):
    """A source whose records are dicts of flat arrays, such as token files; its plans are `SlicedPlan`s.

    Arrays of spans, whose type is `SPAN`, have an element for each span, and are not copied in slices.
    """

    @property
    @abstractmethod
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The type of each array in records, in native byte order; it holds the values of all files."""

    @property
    @abstractmethod
    def trained(self) -> int | None:
        """The number of elements of all records that are in the loss; None where the files do not say it."""

    @abstractmethod
    def lengths_between(self, start: int, stop: int) -> Int64s:
        """Return the number of elements of consecutive records, int64; no data file is read."""

    @property
    @abstractmethod
    def axis(self) -> SlicedAxis | None:
        """The elements of all records end to end; None if something else lies between them in a file."""


class _SingleReads(Struct):
    """Counts positions that are read one after another; a race between threads costs one fetch at most."""

    starts: memoryview
    """The first rows of the files of the source."""
    expected: int = 0
    """The position after the last one."""
    length: int = 0
    """How many positions were read so."""
