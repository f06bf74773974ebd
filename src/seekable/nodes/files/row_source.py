"""The source of formats whose files another library reads, some rows of a file at a time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import msgspec
import numpy as np

from seekable.errors import CorruptRecord, CorruptState, InvalidArgument, SeekableError
from seekable.formats.contract import Format, Reading
from seekable.formats.table import format_named
from seekable.index.fileset import combine
from seekable.index.location import Location
from seekable.nodes.bases import InMemoryPlan
from seekable.nodes.columns.names import checked_names
from seekable.nodes.files.leaf import FilesLeaf
from seekable.nodes.graph import Origins, Plan, Reader, of_files
from seekable.order.blocks import default_blocks_within
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.key import Keys
    from seekable.nodes.saving import Loading, Saving

__all__ = ["RowFormat", "RowSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat(Format):
    """A format whose files another library reads, some rows at a time; a frozen dataclass of its options.

    A class that is derived from this one has ``card``, ``finder`` and ``read_rows``. The finder is mostly a
    ``TableIndexer``, which says how many rows a file has. ``docs/howto/extend.md`` shows one.
    """

    raw: ClassVar[Any] = None

    @abstractmethod
    def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
        """Return the records of some rows of a file; called from several threads and processes.

        Args:
            path: the absolute path of the file.
            rows: the indexes of the rows in the file, ascending, each once.
            columns: the columns that the user named, or that are used; None for all.

        Returns:
            A record for each row, in the order of ``rows``. An error that is raised is that of a single
            record if this is called with one row; then the user's ``errors=`` may replace the record.
        """

    def check(self, reading: Reading) -> None:
        """Check that records are not to be decoded further, and the names of columns.

        Raises:
            InvalidArgument: ``decode`` is given, a name comes twice, or an option is not JSON-safe.
            WrongType: ``columns`` has something else than names.
        """
        if reading.decode is not None:
            message = (
                f"decode= is not for {self.card.name}, whose records another library makes (got "
                f"{reading.decode!r}): leave it out; a function of records goes into ds.map"
            )
            raise InvalidArgument(message)
        if reading.columns is not None:
            checked_names("columns", reading.columns)
        self.options()

    def leaf(self, files: FileSet, reading: Reading) -> RowSource:
        """Return the source of indexed files."""
        columns = None if reading.columns is None else tuple(reading.columns)
        return RowSource(files, self, reading.shown, columns, reading.version, errors=reading.errors)

    def options(self) -> dict[str, Any]:
        """Return the options that are not the default ones, JSON-safe, by name.

        Raises:
            InvalidArgument: an option has no default, or is not JSON-safe.
        """
        if lacking := [field.name for field in fields(self) if _has_no_default(field)]:
            message = f"the option {lacking[0]!r} of {type(self).__name__} must have a default"
            raise InvalidArgument(message)
        default, found = type(self)(), {}
        for field in fields(self):
            value = _plain(self, field.name)
            if value != _plain(default, field.name):
                found[field.name] = value
        return found

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the format as JSON, for a pipeline file."""
        return {"name": self.name, "options": self.options()}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> Self:
        """Return the format that a pipeline file has.

        Raises:
            CorruptState: there is no such format, or it has no such options.
            MissingDependency: its package cannot be imported.
        """
        try:
            form: Any = format_named(value["name"])
            made: Self = replace(form, **value["options"])
        except (KeyError, TypeError, InvalidArgument) as error:
            message = f"{where} must be a format of a package that is installed, with its options: {error}"
            raise CorruptState(message) from None
        return made


def _has_no_default(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _plain(form: RowFormat, name: str) -> Any:
    """Return an option of a format as JSON has it.

    Raises:
        InvalidArgument: it is a function, an array, or something else that JSON lacks.
    """
    value = getattr(form, name)
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        message = (
            f"the option {name!r} of {type(form).__name__} must be a number, a text, or lists and dicts of "
            f"those, because it is a part of fingerprints (got {value!r:.200})"
        )
        raise InvalidArgument(message) from None


@final
@dataclass(frozen=True, eq=False, repr=False)
class RowSource(FilesLeaf):
    """A source over files that a `RowFormat` reads: row ``r`` is row ``r`` of the files, in order."""

    files: FileSet
    form: RowFormat
    asked: str
    columns: tuple[str, ...] | None = None
    """The columns that the user named, in their order; None for all."""
    version: str | int | None = None
    needed: frozenset[str] | None = None
    """The columns that are used above; None for all. They are not part of the description."""
    keys: Keys | None = None
    errors: OnError | None = None

    kind: ClassVar[str] = "rows"

    @property
    def format(self) -> str:
        """The name of the format."""
        return self.form.name

    @property
    def finder(self) -> Finder:
        """The surveyor that found the rows in the files."""
        return self.form.finder

    @property
    def blocks(self) -> Int64s:
        """The edges of blocks of 1,024 rows, int64; no block crosses files."""
        return default_blocks_within(self.files.records)

    @property
    def cache_bytes(self) -> int:
        """The bytes that the operating system can cache."""
        return cache_bytes()

    @property
    def decodes_itself(self) -> bool:
        """True: the format makes records, and no function of the user."""
        return True

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, its options, the columns, and every file by name, size, records and digests."""
        options = self.form.options()
        more: dict[str, Any] = {"options": options} if options else {}
        if self.columns is not None:
            more["columns"] = list(self.columns)
        return {"format": self.form.name, **more, "files": self.files.described()}

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return the options of the format, which decide the records of given bytes."""
        return self.form.options()

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        return f"open({self.asked}{columns}{self.shown_options()})"

    @classmethod
    def reader(cls, nodes: Sequence[RowSource]) -> Reader:
        """Return a reader that reads the files of all nodes as one source."""
        return _RowReader(nodes)

    def record(self, position: int) -> Any:
        """Return the record at a position; positions go on over the epochs.

        Raises:
            CorruptRecord: the record cannot be read, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        row = position % self.size
        file = int(np.searchsorted(self.files.starts, row, side="right")) - 1
        (found,) = self.read(file, [row - int(self.files.starts[file])])
        return found

    def read(self, file: int, rows: list[int]) -> Sequence[Any]:
        """Return the records of some rows of a file, ascending and each once.

        Raises:
            CorruptRecord: a record cannot be read, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        self.files.mapped(file).check()
        path = self.files.path(file)
        try:
            found = self.form.read_rows(path, rows, self._wanted)
        except (SeekableError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - another library may raise anything; its cause is kept
            if len(rows) > 1:
                return [self.read(file, [row])[0] for row in rows]
            return [self._recovered(file, rows[0], error)]
        if not hasattr(found, "__len__") or len(found) != len(rows):
            what = f"{len(found):,} records" if hasattr(found, "__len__") else repr(found)[:200]
            message = (
                f"{type(self.form).__name__}.read_rows returned {what} for {len(rows):,} rows of {path!r}: "
                f"it must return a list with a record for each, in their order"
            )
            raise InvalidArgument(message)
        return found

    @property
    def _wanted(self) -> tuple[str, ...] | None:
        """The columns to read, in the order of records."""
        if self.needed is None:
            return self.columns
        names = sorted(self.needed) if self.columns is None else self.columns
        return tuple(name for name in names if name in self.needed)

    def _recovered(self, file: int, row: int, error: Exception) -> Any:
        corrupt = CorruptRecord(
            self.files.shown_path(file), row, offset=0, length=0, preview=b"", cause=error
        )
        if self.errors is None:
            raise corrupt from error
        return self.errors(corrupt)

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer columns to read."""
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)


class _RowReader(Reader):
    """Reads many sources as one: the files of all sources are numbered in one sequence."""

    def __init__(self, nodes: Sequence[RowSource]) -> None:
        self.files = combine([node.files for node in nodes]) if len(nodes) > 1 else nodes[0].files
        # Of a twin of each node, which does not hold this reader, as the nodes do.
        self._own = [(replace(node), file) for node in nodes for file in range(len(node.files))]
        self._lengths = np.array([node.size for node in nodes], dtype=np.int64)
        self._first_rows = np.cumsum(self._lengths) - self._lengths

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        rows = self._first_rows[which] + positions % self._lengths[which]
        files = np.searchsorted(self.files.starts, rows, side="right") - 1
        return _RowPlan(self, files, rows - self.files.starts[files])

    def read(self, file: int, rows: list[int]) -> Sequence[Any]:
        node, own = self._own[file]
        return node.read(own, rows)


@dataclass(frozen=True, slots=True)
class _RowPlan(InMemoryPlan):
    """A plan of rows; the bytes that a library reads for them are its own business."""

    reader: _RowReader
    numbers: Int64s
    """The index of the file of each record."""
    rows: Int64s
    """Its row in the file."""

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        return _RowPlan(self.reader, self.numbers[start:stop], self.rows[start:stop])

    @property
    def paths(self) -> set[str]:
        return {self.reader.files.path(file) for file in np.unique(self.numbers).tolist()}

    def read(self) -> list[Any]:
        """Read each row once, file by file; return the records in the order of the positions."""
        out: list[Any] = [None] * self.rows.size
        for file in np.unique(self.numbers).tolist():
            at = np.flatnonzero(self.numbers == file)
            rows, of_row = np.unique(self.rows[at], return_inverse=True)
            found = self.reader.read(file, rows.tolist())
            for place, number in zip(at.tolist(), of_row.tolist(), strict=True):
                out[place] = found[number]
        return out

    def locate(self) -> list[Any]:
        files = self.reader.files
        return [
            Location(files.shown_path(file), row, 0, 0)
            for file, row in zip(self.numbers.tolist(), self.rows.tolist(), strict=True)
        ]

    def origins(self) -> Origins:
        files = self.reader.files
        return of_files(files, self.numbers, self.rows + files.starts[self.numbers])
