"""Reads formats whose records are runs of bytes: JSON lines, text, CSV, and entries in Kaldi's archives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

import numpy as np

from seekable._lazy import lazy
from seekable.errors import IndexStale
from seekable.formats.table import card_named
from seekable.index.fileset import combine
from seekable.index.location import Location
from seekable.nodes.compile import GatheredPlan
from seekable.nodes.files.decoders import ColumnsDecoder
from seekable.nodes.files.leaf import RunsLeaf
from seekable.nodes.graph import FileRanges, Origins, Plan, Reader, held, of_files
from seekable.nodes.key import entry_key
from seekable.order.blocks import BLOCK_ROWS
from seekable.state.functions import describe_function
from seekable.storage.far import far
from seekable.storage.mapped import next_use
from seekable.storage.memory import DiskActivity, disk_reads
from seekable.storage.ranges import merge_near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.files import columns_plan
    from seekable.nodes.files.decoders import Decoder
    from seekable.nodes.files.leaf import OwnKeys
    from seekable.nodes.key import Keys
    from seekable.nodes.node import BatchForm
    from seekable.storage.mapped import View
else:
    columns_plan = lazy("seekable.nodes.files.columns_plan")

__all__ = ["FileSource"]

T = TypeVar("T")

_GAP_BYTES = 32 << 10
"""Ranges of a file that are nearer than this are fetched in one go: a disk reads that much in the time that
one more request takes."""

_DENSE_GAP_BYTES = 256 << 10
"""As much where reads are dense, because what lies between will be wanted soon."""

_DENSE = 64
"""Reads of one in so many rows are dense: those of a few windows are, those of a large shuffle are not."""


_FILES_AT_ONCE = 64
"""The files whose bytes are advised together before they are looked at: fewer than stay open."""

_SCHEME = b"://"
"""The mark of an address; where the first line of a local script has none, nothing is fetched at once."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class FileSource(RunsLeaf):
    """A source over indexed files: row ``r`` is record ``r``, one file after another."""

    files: FileSet
    decoder: Decoder
    format: str
    asked: str
    version: str | int | None
    keys: Keys | None = None
    errors: OnError | None = None

    kind: ClassVar[str] = "files"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the decoding, and every file by name, size, records and digests."""
        decode = self.described_decode(describe_function)
        more = self.decoder.described_besides()
        return {"format": self.format, "decode": decode, "files": self.files.described(), **more}

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return what decides the records of given bytes, JSON-safe."""
        return self.decoder.described(describe, self.version)

    def own_keys(self) -> OwnKeys | None:
        """Return the keys of entries of Kaldi's tables."""
        return self.decoder.own_keys(self)

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        return f"open({self.asked}{self.shown_options(entry_key, card_named(self.format).key)})"

    @property
    def decodes_itself(self) -> bool:
        """True if the library decodes lines; objects of Kaldi may have holders of the user."""
        return self.decoder.function is None and not self.decoder.reads_objects

    def beside(self) -> tuple[FileSet, ...]:
        """Return the other tables of a data directory of Kaldi."""
        return self.decoder.beside()

    @property
    def batch_form(self) -> BatchForm:
        """The form of records in columns; ``"python"`` where a function may replace corrupt records."""
        decoder = self.decoder
        return decoder.form if isinstance(decoder, ColumnsDecoder) and self.errors is None else "python"

    @property
    def finder(self) -> Finder:
        """The scanner that found the records."""
        return self.decoder.finder(self.format)

    @property
    def reads_all_bytes(self) -> bool:
        """True, unless the first bytes of a record are all that is decoded."""
        return not self.decoder.needs_head_only

    @classmethod
    def reader(cls, nodes: Sequence[FileSource]) -> Reader:
        """Return a reader that reads the files of all nodes as one source."""
        return _FilesReader(nodes)

    def record_of(self, file: int, row: int) -> Any:
        """Return the record of a row of a file.

        Raises:
            CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        view = self.files.bytes_of(file, row)
        decoder = self.decoder
        if decoder.headed:
            decoder = decoder.for_head(_head(self.files, file))
        try:
            return decoder.fast(view)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
            path, offset = self.files.shown_path(file), self.files.range(file, row)[0]
            return decoder.recovered(self.errors, view, error, path=path, row=row, offset=offset)

    def close_others(self) -> None:
        """Close the files that lines name, and the other tables of a directory."""
        self.decoder.close()

    def narrowed(self, columns: frozenset[str]) -> FileSource:
        """Return the source for some columns; the others of JSON and of utterances are not made."""
        decoder = self.decoder.narrowed(columns)
        return self if decoder is self.decoder else replace(self, decoder=decoder)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the column names of Kaldi's utterances; None for lines and entries."""
        return self.decoder.declared()


class _FilesReader(Reader):
    """Reads many sources as one: the files of all sources are numbered in one sequence."""

    def __init__(self, nodes: Sequence[FileSource]) -> None:
        self.files = combine([node.files for node in nodes]) if len(nodes) > 1 else nodes[0].files
        self.decoders: list[Decoder] = []
        """The decoder of each file. The nodes are not kept: they hold this reader."""
        self.fasts: list[Callable[[memoryview], Any] | None] = []
        """The function that decodes a record of each file; None where it depends on the head of the file."""
        self.errors: list[OnError | None] = []
        self.columns: dict[int, tuple[ColumnsDecoder, bool]] = {}
        """By source, the decoder of one that has columns, and True if a function replaces its records."""
        self.needs_heads_only, self.names_objects, has_heads = True, False, False
        lengths = []
        for number, node in enumerate(nodes):
            decoder, count, is_headed = node.decoder, len(node.files), node.decoder.headed
            if isinstance(decoder, ColumnsDecoder):
                self.columns[number] = decoder, node.errors is not None
                decoder = decoder.in_form("arrow")
            self.decoders += [decoder] * count
            self.fasts += [None if is_headed else decoder.fast] * count
            self.errors += [node.errors] * count
            self.needs_heads_only = self.needs_heads_only and decoder.needs_head_only
            self.names_objects = self.names_objects or decoder.names_objects
            has_heads = has_heads or is_headed
            lengths.append(node.size)
        first = self.decoders[0].many if self.decoders else None
        self.many = first if [node.decoder.many for node in nodes].count(first) == len(nodes) else None
        """The function that decodes many records of any of the files."""
        self.activity = DiskActivity()
        self.from_stores = self.files.has_objects
        self.slices = far().reads.slices(self.files, len(self.decoders)) if self.from_stores else None
        self.reads_more = self.from_stores and (self.names_objects or has_heads)
        """True if more is read of objects than the bytes of records: heads, and objects that lines name."""
        self._lengths = np.array(lengths, dtype=np.int64)
        self._first_rows = np.cumsum(self._lengths) - self._lengths
        self._starts = self.files.starts

    def decoder(self, file: int) -> Decoder:
        """Return the decoder of the records of a file that has a record."""
        decoder = self.decoders[file]
        return decoder.for_head(_head(self.files, file)) if decoder.headed else decoder

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if not self.columns:
            return self._plan(which, positions)
        if which.size == 1:
            return self._of_source(int(which[0]), which, positions)
        parts = []
        for number in np.unique(which).tolist():
            at = np.flatnonzero(which == number)
            parts.append((at, self._of_source(number, which[at], positions[at])))
        return parts[0][1] if len(parts) == 1 else GatheredPlan(positions.size, tuple(parts))

    def _plan(self, which: Int64s, positions: Int64s) -> _FilesPlan:
        rows = self._first_rows[which] + positions % self._lengths[which]
        files = np.searchsorted(self._starts, rows, side="right") - 1
        starts, ends = self.files.words(files, rows - self._starts[files])
        return _FilesPlan(self, rows, files, starts, ends)

    def _of_source(self, number: int, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan for some positions of one source."""
        plan = self._plan(which, positions)
        if number not in self.columns:
            return plan
        return columns_plan.ColumnsPlan(plan, *self.columns[number], columns_plan.RowsTogether(plan))


@dataclass(frozen=True, slots=True)
class _FilesPlan(Plan):
    reader: _FilesReader
    rows: Int64s
    """Counted over all files, so that sorting by row is sorting by file and offset."""
    files: Int64s
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        at = slice(start, stop)
        return _FilesPlan(self.reader, self.rows[at], self.files[at], self.starts[at], self.ends[at])

    def read(self) -> list[Any]:
        """Read file by file in the order of offsets; return the records in the order of the positions."""
        if self.reader.reads_more:
            with held(self):
                return self._read()
        return self._read()

    def _read(self) -> list[Any]:
        before, activity = disk_reads(), self.reader.activity
        named = self._fetch_named() if self.reader.names_objects else []
        if activity.may_wait:
            self._advise(np.argsort(self.rows))
        if self.reader.slices is not None:
            out = self._decoded(self.reader.slices.read(self.files, self.starts, self.ends))
        else:
            out = self._decoded_local()
        del named  # The objects of stores, which are in memory up to here.
        activity.note(disk_reads() - before)
        return out

    def with_views(self, use: Callable[[list[memoryview]], T]) -> T:
        """Call a function with the ranges of the records, which are in memory meanwhile; return its result.

        Raises:
            IndexStale: a file has changed.
        """
        with held(self):
            before, activity = disk_reads(), self.reader.activity
            if activity.may_wait:
                self._advise(np.argsort(self.rows))
            slices = self.reader.slices
            views = self._views() if slices is None else slices.read(self.files, self.starts, self.ends)
            made = use(views)
            activity.note(disk_reads() - before)
            return made

    def _views(self) -> list[memoryview]:
        files, starts, ends = self.files.tolist(), self.starts.tolist(), self.ends.tolist()
        different, use, now = dict.fromkeys(files), next_use(), monotonic_ns()
        if len(different) <= _FILES_AT_ONCE:
            opened = {file: self._opened(file, use, now) for file in different}
            spans = zip(files, starts, ends, strict=True)
            return [opened[file][start:end] for file, start, end in spans]
        copies: list[memoryview] = [memoryview(b"")] * len(files)  # A view keeps its file open.
        current = -1
        for place in np.argsort(self.rows).tolist():
            if files[place] != current:
                current = files[place]
                view = self._opened(current, use, now)
            copies[place] = memoryview(bytes(view[starts[place] : ends[place]]))
        return copies

    def _opened(self, file: int, use: int, now: int) -> View:
        mapped = self.reader.files.mapped(file, use)
        if now >= mapped.next_look_ns:
            mapped.check()
        return mapped.view

    def by_decoder(self) -> list[tuple[ColumnsDecoder, NDArray[np.intp]]]:
        """Return the decoders of records in columns, each with the indices of its records in the plan."""
        reader = self.reader
        decoder = reader.decoders[int(self.files[0])]
        assert isinstance(decoder, ColumnsDecoder)
        if not decoder.headed:
            return [(decoder, np.arange(len(self)))]
        files = np.unique(self.files)
        heads = [_head(reader.files, file) for file in files.tolist()]
        different = {head: number for number, head in enumerate(dict.fromkeys(heads))}
        numbers = np.array([different[head] for head in heads])[np.searchsorted(files, self.files)]
        return [
            (decoder.for_head(head), np.flatnonzero(numbers == number)) for head, number in different.items()
        ]

    def last_of_files(self) -> NDArray[np.bool_]:
        """Return True for each record that is the last one of its file."""
        last: NDArray[np.bool_] = self.rows == self.reader.files.starts[self.files + 1] - 1
        return last

    def _decoded_local(self) -> list[Any]:
        if self.reader.many is not None and len(set(self.files.tolist())) <= _FILES_AT_ONCE:
            try:
                return self.reader.many(self._views())
            except IndexStale:
                raise
            except Exception:  # noqa: BLE001, S110 - decoding them one by one says what is wrong with which
                pass
        order = np.argsort(self.rows)
        files, starts, ends = self.files[order], self.starts[order], self.ends[order]
        open_file, fasts = self.reader.files.mapped, self.reader.fasts
        out: list[Any] = [None] * order.size
        current, now, use = -1, monotonic_ns(), next_use()
        for place, file, start, end in zip(
            order.tolist(), files.tolist(), starts.tolist(), ends.tolist(), strict=True
        ):
            if file != current:
                current, mapped = file, open_file(file, use)
                if now >= mapped.next_look_ns:
                    mapped.check()
                view, decode = mapped.view, fasts[file] or self.reader.decoder(file).fast
            record = view[start:end]
            try:
                out[place] = decode(record)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
                out[place] = self._recovered(place, self.reader.decoder(file), record, error)
        return out

    def _decoded(self, records: list[memoryview]) -> list[Any]:
        decoders = {file: self.reader.decoder(file) for file in set(self.files.tolist())}
        out: list[Any] = [None] * len(records)
        for place, (file, record) in enumerate(zip(self.files.tolist(), records, strict=True)):
            try:
                out[place] = decoders[file].fast(record)
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
                out[place] = self._recovered(place, decoders[file], record, error)
        return out

    def _recovered(self, place: int, decoder: Decoder, record: memoryview, error: Exception) -> Any:
        """Return what stands for a record that cannot be decoded, by its place in the plan."""
        file, files = int(self.files[place]), self.reader.files
        return decoder.recovered(
            self.reader.errors[file],
            record,
            error,
            path=files.mapped(file).name,
            row=int(self.rows[place] - files.starts[file]),
            offset=int(self.starts[place]),
        )

    def _fetch_named(self) -> list[object]:
        """Fetch the objects of stores that the lines name, many at a time; return what keeps them."""
        fileset, lines = self.reader.files, dict[int, list[memoryview]]()
        columns = (self.files.tolist(), self.starts.tolist(), self.ends.tolist())
        for file, start, end in zip(*columns, strict=True):
            line = fileset.mapped(file).view[start:end]
            if not lines and not self.reader.from_stores and _SCHEME not in bytes(line):
                return []
            lines.setdefault(file, []).append(line)
        return [self.reader.decoders[file].fetch_named(some) for file, some in lines.items()]

    @property
    def paths(self) -> set[str]:
        return {self.reader.files.shown_path(file) for file in np.unique(self.files).tolist()}

    @property
    def from_stores(self) -> bool:
        return self.reader.from_stores

    def ranges(self) -> Iterator[FileRanges]:
        reader = self.reader
        headed = [file for file in np.unique(self.files).tolist() if reader.decoders[file].headed]
        if headed:
            ends = [reader.files.range(file, 0)[0] for file in headed]
            yield FileRanges.of(
                reader.files, np.array(headed), np.zeros(len(headed), np.int64), np.array(ends)
            )
        yield FileRanges(reader.files, self.files, self.starts, self.ends)

    def advise(self) -> None:
        activity = self.reader.activity
        if activity.may_wait:
            order = np.argsort(self.rows)
            before = disk_reads()
            self._advise(order)
            activity.note(disk_reads() - before)

    def _advise(self, order: NDArray[np.intp]) -> None:
        """Advise the system to fetch the bytes of the rows, in their order in the files."""
        if self.reader.needs_heads_only:
            return
        runs = np.count_nonzero(np.diff(self.rows[order] // BLOCK_ROWS)) + 1
        gap = _DENSE_GAP_BYTES if order.size * _DENSE >= runs * BLOCK_ROWS else _GAP_BYTES
        merged = merge_near(self.files[order], self.starts[order], self.ends[order], gap=gap)
        current = -1
        for file, start, end in zip(*map(np.ndarray.tolist, merged), strict=True):
            if file != current:
                current, mapped = file, self.reader.files.mapped(file)
            mapped.advise(start, end)

    @property
    def bytes(self) -> int:
        return int((self.ends - self.starts).sum())

    def origins(self) -> Origins:
        return of_files(self.reader.files, self.files, self.rows)

    def locate(self) -> list[Any]:
        with held(self):
            return self._located()

    def _located(self) -> list[Any]:
        """Look for the ends of the records, some files at a time, which stay open meanwhile."""
        before, activity = disk_reads(), self.reader.activity
        located: list[Any] = [None] * len(self)
        order = np.argsort(self.rows)
        _, numbers = np.unique(self.files[order], return_inverse=True)
        for group in np.split(order, np.flatnonzero(np.diff(numbers // _FILES_AT_ONCE)) + 1):
            if activity.may_wait:
                self._advise(group)
            self._locate(group, located)
        activity.note(disk_reads() - before)
        return located

    def _locate(self, order: NDArray[np.intp], located: list[Any]) -> None:
        fileset = self.reader.files
        columns = (order, self.rows[order], self.files[order], self.starts[order], self.ends[order])
        for at, row, file, start, end in zip(*(column.tolist() for column in columns), strict=True):
            mapped = fileset.mapped(file)
            mapped.check()
            length = self.reader.decoders[file].span(mapped.view[start:end])
            located[at] = Location(mapped.name, row - int(fileset.starts[file]), start, length)


def _head(files: FileSet, file: int) -> bytes:
    """Return the bytes before the first record of a file that has a record."""
    return bytes(files.mapped(file).view[: files.range(file, 0)[0]])
