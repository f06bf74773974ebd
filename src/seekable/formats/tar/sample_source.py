"""The source of the samples of tar files: WebDataset's archives, and those of Energon and Lhotse Shar."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.formats.tar.fields.decode_argument import FieldDecoders, check_fields
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
from seekable.formats.tar.tar_format import TarSurveyor, sample_rule_of
from seekable.index.key_files import keys_of_samples
from seekable.nodes.files.leaf import OwnKeys, RunsLeaf
from seekable.nodes.key import SAMPLE_KEY, KeyIn
from seekable.nodes.map import Map
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.graph import Reader
    from seekable.nodes.key import KeyOf, Keys
    from seekable.nodes.node import Node

__all__ = ["SampleSource", "check_columns"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampleSource(RunsLeaf):
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

    @cached
    def words(self) -> MemberWords:
        """The members of all samples."""
        return MemberWords(self.files)

    @cached
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of all files, in the order in which they come first."""
        return tuple(dict.fromkeys(name for schema in self.words.schemas for name in schema.fields))

    @property
    def finder(self) -> Finder:
        """The surveyor that found the samples."""
        return TarSurveyor(self.format)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the format, the decoding, the columns, and every file by name, size, records and digests."""
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        missing = {"missing": "none"} if self.fills else {}
        decode = self.described_decode(describe_function)
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
        options = self.shown_options(SAMPLE_KEY)
        return f"open({self.asked}{columns}{_shown_decode(self.decoders)}{missing}{options})"

    @classmethod
    def reader(cls, nodes: Sequence[SampleSource]) -> Reader:
        """Return a reader that reads the files of all nodes as one source."""
        return SamplesReader(
            [SampleFiles(node.files, node.words, node.shapes, node.errors) for node in nodes]
        )

    def record_of(self, file: int, row: int) -> Any:
        """Return the sample of a row of a file.

        Raises:
            CorruptRecord: a field cannot be decoded or is missing, and the source has no ``errors``.
            IndexStale: the file has changed.
        """
        mapped = self.files.mapped(file)
        mapped.check()
        start, shape = self.files.range(file, row)[0], self.shapes[self._schema_of[file]]
        try:
            return made_record(shape, mapped, start, self.words.of_sample(file, row))
        except FieldError as error:
            return recovered_sample(self.errors, error, mapped, start, row=row, rule=shape.rule)

    def described_decode(self, describe: Callable[..., dict[str, Any]]) -> Any:
        """Return what decides the fields of given bytes, JSON-safe."""
        return self.decoders.described(partial(describe, version=self.version))

    def own_keys(self) -> OwnKeys:
        """Return the keys of samples."""
        return _SampleKeys(self)

    def key_at(self, row: int) -> str:
        """Return the key of a row, whatever columns records have.

        Raises:
            IndexStale: the file has changed.
        """
        starts = self.files.starts
        file = int(starts.searchsorted(row, side="right")) - 1
        mapped = self.files.mapped(file)
        mapped.check()
        return key_at(
            mapped.view, self.files.range(file, row - int(starts[file]))[0], sample_rule_of(self.format)
        )

    def key_hashes(self, rows: Int64s) -> NDArray[np.uint64]:
        """Return the hashes of the keys of rows; no data file is read."""
        files = self.files.starts.searchsorted(rows, side="right") - 1
        return self.words.key_hashes(files, rows - self.files.starts[files])

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

    @property
    def reads_all_bytes(self) -> bool:
        """True if all fields are read."""
        return self.needed is None and self.columns is None

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


@final
@dataclass(frozen=True, slots=True)
class _SampleKeys(OwnKeys):
    """The keys of the samples of a source, of which the index has the hashes."""

    source: SampleSource

    @property
    def of(self) -> KeyOf:
        """The column of the key."""
        return SAMPLE_KEY

    def described(self) -> dict[str, Any]:
        """Return the format that finds samples."""
        return keys_of_samples(self.source.files.entry(0).format)

    def hashes(self, rows: Int64s) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the hashes of the index; each sample has a key."""
        return self.source.key_hashes(rows), np.ones(len(rows), np.bool_)

    def key_at(self, row: int) -> str:
        """Return the key of a row, which is read from the header of its first member."""
        return self.source.key_at(row)

    def alone(self, keys: Keys) -> Node:
        """Return the keys of samples whose fields are not read."""
        alone = replace(self.source, columns=(SAMPLE_KEY,), needed=frozenset([SAMPLE_KEY]))
        return Map(alone, KeyIn(SAMPLE_KEY), None, "keys")


def check_columns(source: SampleSource) -> None:
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


def _shown_decode(decoders: FieldDecoders) -> str:
    if decoders.by_field:
        return f", decode={{{', '.join(repr(field) for field, _ in decoders.by_field)}: ...}}"
    if decoders.every is None:
        return ""
    return f", decode={getattr(decoders.every, '__qualname__', repr(decoders.every))}"
