"""The reading of samples of tar files: the members that records need, planned for many samples at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.layout import MemberWords
from seekable.formats.tar.member_name import NAME_BYTES
from seekable.formats.tar.sample_records import FieldError, made_record, recovered_sample
from seekable.index.fileset import combine
from seekable.index.location import Location
from seekable.nodes.graph import FileRanges, Origins, Plan, Reader, held, of_files
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.tar.sample_records import SampleShape
    from seekable.index.fileset import FileSet

__all__ = ["SampleFiles", "SamplesReader"]

_GAP_BYTES = 4 << 10
"""Ranges of a file that are nearer than this are fetched in one go: two members with headers between them."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleFiles:
    """The files of one source, with all that their samples are read by."""

    files: FileSet
    """The files."""

    words: MemberWords
    """The members of their samples."""

    shapes: Sequence[SampleShape]
    """The shape of the records of each schema of the words."""

    errors: OnError | None
    """Returns what is delivered instead of a sample that cannot be decoded."""


class SamplesReader(Reader):
    """Reads many sources as one: the files of all sources are numbered in one sequence."""

    def __init__(self, nodes: Sequence[SampleFiles]) -> None:
        """Combine the files of some sources."""
        self.files: FileSet = combine([node.files for node in nodes]) if len(nodes) > 1 else nodes[0].files
        self.words = MemberWords(self.files) if len(nodes) > 1 else nodes[0].words
        self.shapes = [shape for node in nodes for shape in node.shapes]
        """The shapes of all sources."""
        counts = np.array([len(node.shapes) for node in nodes], np.int64)
        firsts = (np.cumsum(counts) - counts).tolist()
        of_nodes = [first + node.words.schema_of for first, node in zip(firsts, nodes, strict=True)]
        self.shape_of: Int64s = np.concatenate(of_nodes)
        """The number of the shape of each file, int64."""
        self.errors = [node.errors for node in nodes for _ in range(len(node.files))]
        self.keyed = np.array([shape.keyed for shape in self.shapes], np.bool_)
        """True for each shape whose records have the key."""
        self._wanted = _table([shape.wanted for shape in self.shapes])
        self.activity = DiskActivity()
        self.from_stores = self.files.has_objects
        self._lengths = np.array([node.files.starts[-1] for node in nodes], np.int64)
        self._first_rows = np.cumsum(self._lengths) - self._lengths
        self.starts = self.files.starts

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan to read samples, with the places of all members that it reads."""
        rows = self._first_rows[which] + positions % self._lengths[which]
        files = np.searchsorted(self.starts, rows, side="right") - 1
        within = rows - self.starts[files]
        starts, _ = self.files.ranges(files, within)
        edges, payloads, sizes, fields = self._members(files, within)
        return _SamplesPlan(self, rows, files, starts, edges, payloads, sizes, fields)

    def _members(
        self, files: Int64s, rows: Int64s
    ) -> tuple[Int64s, NDArray[np.uint64], NDArray[np.uint64], Int64s]:
        """Return the members that are read: their edges by sample, first bytes, sizes and fields."""
        if not self._wanted.any():
            none = np.zeros(0, np.uint64)
            return np.zeros(len(rows) + 1, np.int64), none, none, np.zeros(0, np.int64)
        first, behind = self.words.first_members(files, rows)
        counts = behind - first
        ends = np.cumsum(counts)
        total = int(ends[-1]) if ends.size else 0
        of = np.repeat(files, counts)
        numbers = np.arange(total) + np.repeat(first - (ends - counts), counts)
        payloads, sizes, fields = self.words.members(of, numbers)
        edges = np.concatenate([np.zeros(1, np.int64), ends])
        kept = self._wanted[self.shape_of[of], fields]
        if kept.all():
            return edges, payloads, sizes, fields
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return before[edges], payloads[kept], sizes[kept], fields[kept]


def _table(rows: Sequence[Sequence[bool]]) -> NDArray[np.bool_]:
    """Return rows of different lengths as one table, False where a row has ended."""
    table = np.zeros((len(rows), max(map(len, rows), default=0)), np.bool_)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True, slots=True)
class _SamplesPlan(Plan):
    reader: SamplesReader
    rows: Int64s
    """Counted over all files, so that sorting by row is sorting by file and offset."""
    files: Int64s
    starts: NDArray[np.uint64]
    edges: Int64s
    """The number of the first member that is read of each sample, and of that behind its last."""
    payloads: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    fields: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        at, edges = slice(start, stop), self.edges[start : stop + 1]
        members = slice(int(edges[0]), int(edges[-1]))
        return _SamplesPlan(
            self.reader,
            self.rows[at],
            self.files[at],
            self.starts[at],
            edges - edges[0],
            self.payloads[members],
            self.sizes[members],
            self.fields[members],
        )

    def read(self) -> list[Any]:
        """Read file by file in the order of offsets; return the records in the order of the positions."""
        with held(self):
            return self._read()

    def _read(self) -> list[Any]:
        reader, fileset = self.reader, self.reader.files
        before = disk_reads()
        if reader.activity.may_wait:
            self._advise()
        order = np.argsort(self.rows)
        members = list(zip(self.payloads.tolist(), self.sizes.tolist(), self.fields.tolist(), strict=True))
        firsts, ends = self.edges[:-1][order].tolist(), self.edges[1:][order].tolist()
        files, starts = self.files[order].tolist(), self.starts[order].tolist()
        out: list[Any] = [None] * order.size
        current = -1
        for place, file, start, first, end in zip(order.tolist(), files, starts, firsts, ends, strict=True):
            if file != current:
                current, mapped, shape = file, fileset.mapped(file), reader.shapes[reader.shape_of[file]]
                mapped.check()
            try:
                out[place] = made_record(shape, mapped, start, members[first:end])
            except FieldError as error:
                row = int(self.rows[place] - fileset.starts[file])
                out[place] = recovered_sample(
                    reader.errors[file], error, mapped, start, row=row, rule=shape.rule
                )
        reader.activity.note(disk_reads() - before)
        return out

    @property
    def paths(self) -> set[str]:
        return {self.reader.files.shown_path(file) for file in np.unique(self.files).tolist()}

    @property
    def from_stores(self) -> bool:
        return self.reader.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        yield FileRanges(self.reader.files, *self._ranges())

    def advise(self) -> None:
        activity = self.reader.activity
        if activity.may_wait:
            before = disk_reads()
            self._advise()
            activity.note(disk_reads() - before)

    def _advise(self) -> None:
        """Advise the system to fetch the bytes of the members that are read."""
        files, starts, ends = self._ranges()
        order = np.lexsort((starts, files))
        merged = merge_near(files[order], starts[order], ends[order], gap=_GAP_BYTES)
        for file, start, end in zip(*(column.tolist() for column in merged), strict=True):
            self.reader.files.mapped(file).advise(start, end)

    def _ranges(self) -> tuple[Int64s, NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the file and the bytes of all members that are read, and of the headers with the keys."""
        keyed = self.reader.keyed[self.reader.shape_of[self.files]]
        files = np.concatenate([np.repeat(self.files, np.diff(self.edges)), self.files[keyed]])
        starts = np.concatenate([self.payloads, self.starts[keyed]])
        ends = np.concatenate([self.payloads + self.sizes, self.starts[keyed] + np.uint64(NAME_BYTES)])
        return files, starts, ends

    @property
    def bytes(self) -> int:
        keyed = self.reader.keyed[self.reader.shape_of[self.files]]
        return int(self.sizes.sum()) + NAME_BYTES * int(np.count_nonzero(keyed))

    def origins(self) -> Origins:
        return of_files(self.reader.files, self.files, self.rows)

    def locate(self) -> list[Any]:
        fileset, words = self.reader.files, self.reader.words
        located = []
        for row, file, start in zip(
            self.rows.tolist(), self.files.tolist(), self.starts.tolist(), strict=True
        ):
            mapped = fileset.mapped(file)
            mapped.check()
            within = row - int(fileset.starts[file])
            # The payload of a hard link lies before its sample.
            ends = (payload + size for payload, size, _ in words.of_sample(file, within) if payload >= start)
            end = max(ends, default=start + BLOCK_BYTES)
            located.append(Location(mapped.name, within, start, end - start))
        return located
