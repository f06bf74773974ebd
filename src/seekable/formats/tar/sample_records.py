"""The record of a sample of a tar file: its key and its fields, decoded, or the error for a bad one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptRecord, IndexStale, MissingColumn, MissingDependency
from seekable.formats.tar.member_name import member_name
from seekable.formats.tar.sample_rule import split_name
from seekable.nodes.key import SAMPLE_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.contract import OnError
    from seekable.formats.tar.fields.decode_argument import FieldDecoders
    from seekable.formats.tar.layout import TarSchema
    from seekable.formats.tar.sample_rule import SampleRule
    from seekable.storage.mapped import MappedFile, View

__all__ = ["FILE_COLUMN", "FieldError", "SampleShape", "key_at", "made_record", "recovered_sample"]

FILE_COLUMN = "__url__"
"""The column that has the path of the file, where records are those of webdataset."""


@dataclass(frozen=True, slots=True)
class SampleShape:
    """The record of the samples of one schema: the fields that are read, their decoders, and their order."""

    names: tuple[str, ...]
    """The name of each field, by its number."""

    decoders: tuple[Callable[[memoryview], Any] | None, ...]
    """The decoder of each field, by its number; None for a field that is not read."""

    keyed: bool
    """True if records have the key."""

    with_file: bool
    """True if records have the path of their file."""

    columns: tuple[str, ...] | None
    """The columns that each record has, in their order; None for the key and the fields of the sample."""

    fills: bool
    """True if a column that a sample lacks is None; else that is an error."""

    rule: SampleRule
    """The rule by which the name of a member has a key."""

    @classmethod
    def of(
        cls,
        schema: TarSchema,
        decoders: FieldDecoders,
        rule: SampleRule,
        *,
        columns: tuple[str, ...] | None,
        needed: frozenset[str] | None,
        fills: bool,
    ) -> SampleShape:
        """Return the shape of the records of samples of a schema.

        Args:
            schema: the fields of the samples.
            decoders: their decoders.
            rule: the rule by which the name of a member has a key.
            columns: the columns that the user named; None for the key and all fields.
            needed: the columns that are used; None for all.
            fills: True if a column that a sample lacks is None.
        """
        if columns is not None and needed is not None:
            columns = tuple(name for name in columns if name in needed)
        wanted = needed if columns is None else frozenset(columns)
        of_fields = (
            decoders.of(name).decode if wanted is None or name in wanted else None for name in schema.fields
        )
        keyed = wanted is None or SAMPLE_KEY in wanted
        with_file = decoders.with_url and (wanted is None or FILE_COLUMN in wanted)
        return cls(schema.fields, tuple(of_fields), keyed, with_file, columns, fills, rule)

    @property
    def wanted(self) -> list[bool]:
        """True for each field that is read, by its number."""
        return [decoder is not None for decoder in self.decoders]


def key_at(view: View, start: int, rule: SampleRule) -> str:
    """Return the key of a sample, from the header of its first member."""
    found = split_name(member_name(view, start), rule)
    if found is None:
        message = f"the member at byte {start:,} is part of no sample; the file was changed"
        raise IndexStale(message)
    return str(found[0], "utf-8", "surrogateescape")


def made_record(
    shape: SampleShape, mapped: MappedFile, start: int, members: Sequence[tuple[int, int, int]]
) -> dict[str, Any]:
    """Return the record of a sample.

    Args:
        shape: the fields that are read.
        mapped: the file.
        start: the first byte of the sample.
        members: the first byte, the size and the number of the field of each member that is read.

    Raises:
        FieldError: a field cannot be decoded, or is missing.
    """
    view, names, decoders = mapped.view, shape.names, shape.decoders
    record: dict[str, Any] = {SAMPLE_KEY: key_at(view, start, shape.rule)} if shape.keyed else {}
    if shape.with_file:
        record[FILE_COLUMN] = mapped.name
    payload = size = field = 0
    try:
        for payload, size, field in members:
            decoder = decoders[field]
            if decoder is not None:
                record[names[field]] = decoder(view[payload : payload + size])
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
        raise FieldError(payload, size, names[field], error) from None
    if shape.columns is None:
        return record
    return _in_columns(record, shape, start)


def _in_columns(record: dict[str, Any], shape: SampleShape, start: int) -> dict[str, Any]:
    columns = shape.columns or ()
    if len(record) == len(columns):
        return record if len(columns) == 1 else {name: record[name] for name in columns}
    if shape.fills:
        return {name: record.get(name) for name in columns}
    lacking = next(name for name in columns if name not in record)
    raise FieldError(start, 0, lacking, MissingColumn(f"has no field {lacking!r}"))


class FieldError(Exception):
    """Carries the member that could not be decoded to the place where the file and the row are known."""

    def __init__(self, payload: int, size: int, field: str, cause: Exception) -> None:
        super().__init__(payload, size, field)
        self.payload, self.size, self.field, self.cause = payload, size, field, cause


def recovered_sample(
    errors: OnError | None, found: FieldError, mapped: MappedFile, start: int, *, row: int, rule: SampleRule
) -> Any:
    """Return what is delivered instead of a sample that cannot be decoded.

    Raises:
        CorruptRecord: the source has no ``errors``.
        IndexStale: the file was changed.
        MissingDependency: the decoder needs a package that is not installed.
    """
    if isinstance(found.cause, IndexStale | MissingDependency):
        raise found.cause
    corrupt = CorruptRecord(
        mapped.name,
        row,
        offset=found.payload,
        length=found.size,
        preview=bytes(mapped.view[found.payload : found.payload + min(found.size, 80)]),
        cause=found.cause,
        key=key_at(mapped.view, start, rule),
        field=found.field,
    )
    corrupt.__cause__ = found.cause
    if errors is None:
        raise corrupt
    return errors(corrupt)
