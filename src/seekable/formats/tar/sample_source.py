"""The source of the samples of tar files: WebDataset's archives, and those of Energon and Lhotse Shar."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

from seekable._cached import cached
from seekable.errors import InvalidArgument, TarWarning
from seekable.formats.registry import format_named
from seekable.formats.tar.fields.decode_argument import FieldDecoders, check_fields, checked_decode
from seekable.formats.tar.layout import MemberWords
from seekable.formats.tar.sample_reading import SampleFiles, SamplesReader
from seekable.formats.tar.sample_records import (
    FILE_COLUMN,
    FieldError,
    SampleShape,
    key_at,
    made_record,
    recovered_sample,
)
from seekable.formats.tar.tar_format import sample_rule_of
from seekable.nodes.columns.names import checked_names
from seekable.nodes.contract import Leaf
from seekable.nodes.keys.key import SAMPLE_KEY
from seekable.nodes.readahead import STREAK, STREAK_BEGINS, SequentialReads
from seekable.order.blocks import default_blocks_within
from seekable.state.functions import describe_function
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.registry import Format
    from seekable.formats.source_options import OnError, SourceOptions
    from seekable.index.fileset import FileSet
    from seekable.index.surveyor import Surveyor
    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Reader
    from seekable.nodes.keys.key import KeyOf, Keys

__all__ = ["SampleSource", "sample_source"]

_MOST_WARNED = 5
"""The most files that one warning names."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampleSource(Leaf):
    """A source over indexed tar files: row ``r`` is sample ``r``, one file after another."""

    files: FileSet
    format: str
    decoders: FieldDecoders
    asked: str
    columns: tuple[str, ...] | None = None
    """The columns that the user named, in their order; None for the key and all fields of each sample."""
    needed: frozenset[str] | None = None
    """The columns that are used above; None for all. They are no part of the description."""
    fills: bool = False
    """True if a column of ``columns`` that a sample lacks is None."""
    version: str | int | None = None
    keys: Keys | None = None
    errors: OnError | None = None

    kind: ClassVar[str] = "samples"

    @classmethod
    def over_files(cls, files: FileSet, arguments: Mapping[str, Any], *, asked: str) -> Self:
        """Return the source of described archives, whose fields are bytes."""
        return cls(files, arguments["format"], checked_decode("bytes"), asked=asked)

    @property
    def cache_bytes(self) -> int:
        """The bytes that the operating system can cache."""
        return cache_bytes()

    @cached
    def size(self) -> int:
        """The number of samples of all files."""
        return int(self.files.starts[-1])

    @cached
    def blocks(self) -> Int64s:
        """The edges of blocks of 1,024 rows, int64; no block holds rows of two files."""
        return default_blocks_within(self.files.records)

    @cached
    def words(self) -> MemberWords:
        """The members of all samples."""
        return MemberWords(self.files)

    @cached
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of all files, in the order in which they come first."""
        return tuple(dict.fromkeys(name for schema in self.words.schemas for name in schema.fields))

    @property
    def scanner(self) -> Surveyor:
        """The surveyor that found the samples."""
        found: Surveyor = format_named(self.format).scanner  # type: ignore[assignment]
        return found

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the decoding, the columns, and every file by name, size, records and digests."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        missing = {"missing": "none"} if self.fills else {}
        decode = self.decoders.described(partial(describe_function, version=self.version))
        return {
            "format": self.format,
            "decode": decode,
            **columns,
            **missing,
            "files": self.files.described(),
        }

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.open``."""
        columns = "" if self.columns is None else f", columns={list(self.columns)}"
        missing = ", missing='none'" if self.fills else ""
        own = self.keys is None or self.keys.of == SAMPLE_KEY
        key = "" if own or self.keys is None else f", key={self.keys.name}"
        errors = (
            "" if self.errors is None else f", errors={getattr(self.errors, '__qualname__', self.errors)}"
        )
        return f"open({self.asked}{columns}{_shown_decode(self.decoders)}{missing}{key}{errors})"

    @classmethod
    def reader(cls, nodes: Sequence[SampleSource]) -> Reader:
        """Return a reader that reads the files of all nodes as one source."""
        return SamplesReader(
            [SampleFiles(node.files, node.words, node.shapes, node.errors) for node in nodes]
        )

    def record(self, position: int) -> Any:
        """Return the sample at a position; positions go on over the epochs.

        Raises:
            CorruptRecord: a field cannot be decoded or is missing, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        file, row = self._place(position)
        streak = self._streak
        if position == streak.expected:
            streak.length += 1
            if streak.length % STREAK == STREAK_BEGINS:
                self._advise(file, row)
        else:
            streak.length = 0
        streak.expected = position + 1
        mapped = self.files.mapped(file)
        mapped.check()
        start, shape = self.files.range(file, row)[0], self.shapes[self._schema_of[file]]
        try:
            return made_record(shape, mapped, start, self.words.of_sample(file, row))
        except FieldError as error:
            return recovered_sample(self.errors, error, mapped, start, row=row, rule=shape.rule)

    def key_at(self, row: int) -> str:
        """Return the key of a row, whatever columns records have.

        Raises:
            IndexStale: the file has changed.
        """
        file, row = self._place(row)
        mapped = self.files.mapped(file)
        mapped.check()
        return key_at(mapped.view, self.files.range(file, row)[0], sample_rule_of(self.format))

    def keys_alone(self) -> tuple[Node, KeyOf]:
        """Return the source for keys alone; for those of samples no field is read."""
        if self.keys is None or self.keys.of != SAMPLE_KEY:
            return super().keys_alone()
        return replace(self, columns=(SAMPLE_KEY,), needed=None), SAMPLE_KEY

    def key_hashes(self, rows: Int64s) -> NDArray[np.uint64]:
        """Return the hashes of the keys of rows; no data file is read."""
        files = self.files.starts.searchsorted(rows, side="right") - 1
        return self.words.key_hashes(files, rows - self.files.starts[files])

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows, counted over all files, of a row in each file of that path."""
        return self.files.rows_of(path, row)

    def close(self) -> None:
        """Close the files of the source. They are opened again when a record is read."""
        self.files.close()

    def narrowed(self, columns: frozenset[str]) -> Self:
        """Return the source with fewer fields to read and decode."""
        needed = columns if self.needed is None else columns & self.needed
        return replace(self, needed=needed)

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns; their types only records show. None without a sample."""
        if self.columns is not None:
            return dict.fromkeys(self.columns)
        return dict.fromkeys(self.there) if self.size else None

    @property
    def there(self) -> tuple[str, ...]:
        """The names of all columns that records can have."""
        file = (FILE_COLUMN,) if self.decoders.with_url else ()
        return (SAMPLE_KEY, *file, *self.fields)

    def _place(self, position: int) -> tuple[int, int]:
        """Return the number of the file of a position, and the row in that file."""
        starts = self._starts
        row = position % starts[-1]
        file = bisect_right(starts, row) - 1
        return file, row - starts[file]

    def _advise(self, file: int, row: int) -> None:
        """Advise the system to fetch the rows of a file from this one on."""
        if self.needed is None and self.columns is None:
            last = min(row + 2 * STREAK, int(self.files.records[file])) - 1
            self.files.mapped(file).advise(self.files.range(file, row)[0], self.files.range(file, last)[1])

    @cached
    def shapes(self) -> list[SampleShape]:
        """The shape of the records of each schema of the files."""
        rule = sample_rule_of(self.format)
        return [
            SampleShape.of(
                schema, self.decoders, rule, columns=self.columns, needed=self.needed, fills=self.fills
            )
            for schema in self.words.schemas
        ]

    @cached
    def _schema_of(self) -> list[int]:
        numbers: list[int] = self.words.schema_of.tolist()
        return numbers

    @cached
    def _streak(self) -> SequentialReads:
        return SequentialReads()

    @cached
    def _starts(self) -> memoryview:
        return self.files.starts.data


def sample_source(form: Format, options: SourceOptions) -> Callable[[FileSet], SampleSource]:
    """Return a function from indexed tar files to the source of their samples.

    The function raises ``InvalidArgument`` if no file has one of the columns, and ``UnsupportedFormat`` if
    records would have a field that is pickled.

    Args:
        form: the format, with the options that decide where samples start.
        options: the columns and the decoding of fields.

    Raises:
        InvalidArgument: an option breaks a rule, or is for other formats.
        WrongType: an option is of the wrong type.
    """
    if options.strict:
        message = (
            "strict= is for tables (Parquet, Arrow), and samples of tar files may differ in their fields"
        )
        raise InvalidArgument(message)
    columns = None if options.columns is None else checked_names("columns", options.columns)
    decoders = checked_decode(options.decode)

    def source(files: FileSet) -> SampleSource:
        made = SampleSource(
            files,
            form.name,
            decoders,
            asked=options.shown,
            columns=columns,
            fills=options.missing == "none",
            version=options.version,
            errors=options.errors,
        )
        _check_columns(made)
        _warn(made)
        return made

    return source


def _check_columns(source: SampleSource) -> None:
    """Check that some file has each column, and that each can be decoded.

    Raises:
        InvalidArgument: no file has a column, or ``decode`` has a name that fits no field.
        UnsupportedFormat: a column is pickled.
        MissingDependency: the decoder of a column needs a package that is not installed.
    """
    for name in source.columns or ():
        if name not in source.there and source.size:
            message = f"no sample has a field {name!r}; there are {', '.join(map(repr, source.there))}"
            raise InvalidArgument(message)
    wanted = [name for name in source.fields if source.columns is None or name in source.columns]
    check_fields(wanted, source.decoders, fields=source.fields, where=source.asked)


def _warn(source: SampleSource) -> None:
    """Warn of what the walk of the files found strange.

    Warns:
        TarWarning: a file has no end mark, say.
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
    warnings.warn("\n".join(texts[:_MOST_WARNED]) + more, TarWarning, stacklevel=4)


def _shown_decode(decoders: FieldDecoders) -> str:
    if decoders.by_field:
        return f", decode={{{', '.join(repr(field) for field, _ in decoders.by_field)}: ...}}"
    if decoders.every is None:
        return ""
    return f", decode={getattr(decoders.every, '__qualname__', repr(decoders.every))}"
