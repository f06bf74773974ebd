r"""Lines: their decoders, and the base of their formats, which decides how records are decoded.

``\n`` and ``\r\n`` are line ends; a carriage return alone is not. A record of CSV may be several lines,
and its file's header tells how it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, AnyStr, final

import msgspec

from seekable._arguments import checked_columns
from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import CorruptState, InvalidArgument, WrongType
from seekable.formats.contract import Format, Reading
from seekable.formats.lines.json_fields import JsonFields, decode_lines
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.decoders import Decode, Decoder

if TYPE_CHECKING:
    import json
    from collections.abc import Callable, Mapping, Sequence

    from seekable.formats.lines import csv, line_columns
    from seekable.index.fileset import FileSet
    from seekable.nodes.saving import Loading, Saving
else:
    json = lazy("json")
    csv = lazy("seekable.formats.lines.csv")
    line_columns = lazy("seekable.formats.lines.line_columns")

__all__ = [
    "LineDecoder",
    "Lines",
    "decoder_named",
    "in_column",
    "line_span",
    "only_field",
    "refuse_columns",
    "some_fields",
    "source_of",
]

_HEADS_REMEMBERED = 256

_OF_SEVERAL_LINES = frozenset({"csv", "tsv"})
"""The formats whose records may be several lines."""

_COLUMN_FORMS = frozenset({"numpy", "arrow"})
"""The decodings that make columns of records, many at once."""

_COLUMN_VALUES = ("text", "bytes", "json")
"""The decodings of a line that is the only value of a record."""


@final
@dataclass(frozen=True, slots=True)
class LineDecoder(Decoder):
    r"""Decodes a line, or a record of CSV, which may be several lines.

    Example:
        >>> decoder_named("text").fast(memoryview(b"good day\r\n"))
        'good day'
    """

    name: str
    fast: Callable[[memoryview], Any]
    recover: Callable[[bytes], Any] | None
    function: Callable[[bytes], Any] | None = None
    form: str = ""
    """The format, if its records may be more than a line."""

    headed: bool = False

    column: str = ""
    """The key of the only value, if records are dicts of one value; otherwise empty."""

    field: str = ""
    """The only field that is kept of each record; empty for all fields."""

    fields: frozenset[str] | None = None
    """The only fields that are used of each record, which may have others too; None for all."""

    plain: LineDecoder | None = None
    """The decoder of the value of the column, or of all fields."""

    many: Callable[[Sequence[memoryview]], list[Any]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, because some decoders are functions of C extensions."""
        if self.plain is not None and self.fields is not None:
            return some_fields, (self.plain, self.fields)
        if self.plain is not None and self.field:
            return only_field, (self.plain, self.field)
        if self.plain is not None:
            return in_column, (self.plain, self.column)
        return decoder_named, (self.function or self.name, self.form)

    def for_head(self, head: bytes) -> LineDecoder:
        """Return the decoder of the records of one file, if this one is `headed`.

        Args:
            head: the bytes before the file's first record.
        """
        return _csv_decoder(self.form, head, self.field)

    def span(self, view: memoryview) -> int:
        """Return the length of the record at the start of its range, without its line end."""
        return csv.record_span(view) if self.form else line_span(view)

    def narrowed(self, columns: frozenset[str]) -> LineDecoder:
        """Return a decoder that makes no values of other fields; itself if records are not JSON."""
        return some_fields(self, columns)

    def of_key(self, field: str) -> LineDecoder | None:
        """Return a decoder of JSON objects to one field, several times as fast as one to all fields.

        A line that is not an object gets the key None. There is no such decoder for other forms, nor for
        a few odd names.
        """
        return _key_of_json(field) if self.name == "json" else None

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the decoding, and the only column or field."""
        kept = {"column": self.column, "field": self.field}
        inner = self.plain or self
        asked = into.named(inner.function or inner.name)
        return {"decode": asked, **{name: text for name, text in kept.items() if text}}


def decoder_named(decode: Decode, form: str = "") -> LineDecoder:
    """Return the decoder that a user asks for with ``decode=``.

    Args:
        decode: "json", "text", "bytes", a function of the record's bytes, or the name of the format where
            that decodes its records itself.
        form: the name of the format if its records may be several lines; other names count as none.

    Raises:
        InvalidArgument: no decoder has this name.
        WrongType: it is neither a name nor a function.
    """
    form = form if form.partition("-")[0] in _OF_SEVERAL_LINES else ""
    if isinstance(decode, str):
        if form and decode == form:
            return LineDecoder(form, _headless, None, form=form, headed=True)
        if decode not in _DECODERS:
            names = ", ".join(map(repr, [*_DECODERS, *filter(None, [form])]))
            message = f"decode must be one of {names} or a function of the line's bytes; got {decode!r}"
            raise InvalidArgument(message)
        return _of_several_lines(decode, form) if form else _DECODERS[decode]
    if not callable(decode):
        raise WrongType(f"decode must be a name or a function of the line's bytes; got {decode!r}")
    line = _record if form else _line
    return LineDecoder(_qualified_name(decode), _OnLine(decode, line), None, decode, form=form)


def in_column(decoder: LineDecoder, column: str) -> LineDecoder:
    """Return a decoder whose records are dicts of one value, which another one decodes.

    Example:
        >>> in_column(decoder_named("text"), "text").fast(memoryview(b"good day"))
        {'text': 'good day'}
    """
    recover = None if decoder.recover is None else _InColumn(decoder.recover, column)
    fast = _InColumn(decoder.fast, column)
    name = f"{decoder.name} in {column!r}"
    return replace(decoder, name=name, fast=fast, recover=recover, column=column, plain=decoder, many=None)


def only_field(decoder: LineDecoder, field: str) -> LineDecoder:
    """Return a decoder of dicts that keeps one field of each; a record without the field cannot be decoded.

    Example:
        >>> only_field(decoder_named("json"), "text").fast(memoryview(b'{"id": 7, "text": "good day"}'))
        {'text': 'good day'}
    """
    recover = None if decoder.recover is None else _OnlyField(decoder.recover, field)
    lean = some_fields(decoder, frozenset([field]))
    fast = _OnlyField(lean.fast, field)
    name = f"{field!r} of {decoder.name}"
    return replace(decoder, name=name, fast=fast, recover=recover, field=field, plain=decoder, many=None)


def some_fields(decoder: LineDecoder, fields: frozenset[str]) -> LineDecoder:
    """Return a decoder of the same name for a caller that uses only some fields of the records.

    It is the same decoder, unless records are JSON and the names of the fields are ASCII.

    Example:
        >>> some_fields(decoder_named("json"), frozenset(["b"])).fast(memoryview(b'{"a": 7, "b": "hi"}'))
        {'b': 'hi'}
    """
    is_json = decoder is _DECODERS["json"] or decoder.fields is not None
    # msgspec (0.22 for one) finds no other names: it takes the key "" for each of them.
    is_ascii = all(map(str.isascii, fields))
    return _json_fields(fields) if is_json and is_ascii else decoder


def line_span(view: memoryview) -> int:
    r"""Return the length of the line at the start of a record's range, without its line end.

    Example:
        >>> line_span(memoryview(b"good day\r\n\n"))
        8
    """
    return _end(bytes(view), b"\n", b"\r")


def _end(line: AnyStr, newline: AnyStr, carriage_return: AnyStr) -> int:
    end = line.find(newline)
    return len(line) if end < 0 else end - line.endswith(carriage_return, 0, end)


def _line(view: memoryview) -> bytes:
    line = bytes(view)
    return line[: _end(line, b"\n", b"\r")]


def _record(view: memoryview) -> bytes:
    return bytes(view[: csv.record_span(view)])


class _RecordText(Value, frozen=True):
    encoding: str

    def __call__(self, view: memoryview) -> str:
        return str(view[: csv.record_span(view)], self.encoding)


def _text(view: memoryview) -> str:
    line = str(view, "utf-8")
    return line[: _end(line, "\n", "\r")]


def _loosely(raw: bytes) -> Any:
    """Decode JSON as Python's own module does: NaN, Infinity, 1e400, lone surrogates.

    Raises:
        ValueError: it is not JSON, or Python does not read it: numbers are too long, or levels too many.
    """
    try:
        return json.loads(str(raw, "utf-8"))
    except RecursionError as error:
        message = f"it has more levels, one in the other, than Python reads: {error}"
        raise ValueError(message) from None


class _OnLine(Value, frozen=True):
    function: Callable[[bytes], Any]
    line: Callable[[memoryview], bytes]

    def __call__(self, view: memoryview) -> Any:
        return self.function(self.line(view))


class _InColumn(Value, frozen=True):
    decode: Callable[[Any], Any]
    column: str

    def __call__(self, view: Any) -> dict[str, Any]:
        return {self.column: self.decode(view)}


class _OnlyField(Value, frozen=True):
    decode: Callable[[Any], Any]
    field: str

    def __call__(self, view: Any) -> dict[str, Any]:
        record = self.decode(view)
        if not isinstance(record, dict):
            message = f"it is no object with a field {self.field!r}, but {type(record).__name__}"
            raise ValueError(message)  # noqa: TRY004 - it is the data that is wrong
        if self.field not in record:
            fields = ", ".join(map(repr, record)) or "none"
            message = (
                f"it has no field {self.field!r}; its fields are {fields}. errors= of sk.open says what to "
                f"deliver instead"
            )
            raise ValueError(message)
        return {self.field: record[self.field]}


def _headless(_: memoryview) -> Any:
    message = "records of CSV are decoded with the header of their file: take the decoder of for_head"
    raise ValueError(message)


@lru_cache(maxsize=_HEADS_REMEMBERED)
def _json_fields(fields: frozenset[str]) -> LineDecoder:
    whole, lean = _DECODERS["json"], JsonFields(sorted(fields))
    return replace(whole, fast=lean.decode, fields=fields, plain=whole, many=lean.decode_many)


@lru_cache(maxsize=_HEADS_REMEMBERED)
def _csv_decoder(form: str, head: bytes, field: str) -> LineDecoder:
    records = csv.csv_records(head, csv.dialect_of(form))
    decoder = LineDecoder(form, records.fast, records.recover, form=form)
    return only_field(decoder, field) if field else decoder


@lru_cache(maxsize=16)
def _key_of_json(field: str) -> LineDecoder | None:
    """Return the decoder to a field, None where msgspec takes no such name, as one with quotes."""
    try:
        lean = msgspec.defstruct("Lean", [("key", Any, msgspec.field(name=field))], gc=False)
    except ValueError:
        return None
    return LineDecoder("json", msgspec.json.Decoder(lean).decode, lambda _: lean(None))


def _qualified_name(function: Callable[[bytes], Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

_DECODERS = {
    decoder.name: decoder
    for decoder in (
        LineDecoder("json", _JSON.decode, _loosely, many=partial(decode_lines, _JSON)),
        LineDecoder("text", _text, None),
        LineDecoder("bytes", _line, None),
    )
}


def _of_several_lines(decode: str, form: str) -> LineDecoder:
    """Return the decoder of a name for records of CSV, which may be several lines."""
    if decode == "json":
        return replace(_DECODERS["json"], form=form, many=None)
    if decode == "bytes":
        return LineDecoder("bytes", _record, None, form=form)
    return LineDecoder("text", _RecordText(csv.dialect_of(form).encoding), None, form=form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Format):
    """The base of formats whose records are lines; one of them has a card, a finder and a decoding.

    Example:
        >>> from seekable.formats.table import format_named
        >>> format_named("text").decoding
        'text'
    """

    @property
    def decoding(self) -> str:
        """The ``decode=`` of records by default."""
        return "text"

    @property
    def only_column(self) -> str | None:
        """The name of the only column that records have; None if a record is what the line holds."""
        return None

    @property
    def only_field(self) -> str | None:
        """The only field to read of each record; None for all fields."""
        return None

    def check(self, reading: Reading) -> None:
        """Check the decoding, and that folders can be columns.

        Raises:
            InvalidArgument: there is no such decoding, or an argument is for tables.
            WrongType: ``decode`` is neither a name nor a function.
        """
        if reading.decode is not None or reading.columns is not None:  # the defaults are right
            self.decoder(reading)
        decode = self.decoding if reading.decode is None else reading.decode
        if getattr(self, "partitions", None) and decode in ("text", "bytes") and self.only_column is None:
            message = (
                f"partitions= adds columns, so records must be dicts, and decode={decode!r} makes none: open "
                f"lines of text as 'txt:PATH:COLUMN'"
            )
            raise InvalidArgument(message)

    def leaf(self, files: FileSet, reading: Reading) -> FileSource:
        """Return the source of the lines of indexed files."""
        source = source_of(files, self.decoder(reading), self.name, reading)
        if reading.decode is None or not self.in_columns(reading.decode):
            return source
        made = line_columns.columns_of(source, reading.decode, reading.columns)
        return replace(source, decoder=made)

    def found_again(self, files: FileSet, described: Mapping[str, Any], shown: str) -> FileSource:
        """Return the source of a described one whose files were found; its records are bytes."""
        return source_of(files, decoder_named(self.raw, self.name), self.name, Reading(shown=shown))

    def in_columns(self, decode: Any) -> bool:
        """Return True if a decoding makes columns of the records, which are dicts."""
        return isinstance(decode, str) and decode in _COLUMN_FORMS and self.decoding not in ("text", "bytes")

    def decoder_from_json(self, said: Mapping[str, Any], given: Loading, where: str) -> Decoder:
        """Return the decoder that ``as_json`` of one wrote.

        Raises:
            CorruptState: it wrote no such thing.
        """
        decode = given.named(said.get("decode"), f"{where}.decode")
        if self.in_columns(decode):
            columns = given.checked(said.get("columns"), list[str] | None, f"{where}.columns")
            reading = Reading(shown="", decode=decode, columns=columns)
            found: Decoder = self.leaf(given.arguments["files"], reading).decoder
            return found
        try:
            decoder = decoder_named(decode, self.name)
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None
        if "field" in said:
            return only_field(decoder, given.checked(said["field"], str, f"{where}.field"))
        if "column" not in said:
            return decoder
        return in_column(decoder, given.checked(said["column"], str, f"{where}.column"))

    def decoder(self, reading: Reading) -> LineDecoder:
        """Return the decoder of records.

        Raises:
            InvalidArgument: there is no such decoding, or an argument is for tables.
            WrongType: ``decode`` is neither a name nor a function.
        """
        decode, name = reading.decode, self.name
        if decode is not None and self.in_columns(decode) and self.only_field is None:
            if reading.columns is not None:
                checked_columns(reading.columns)
            return decoder_named(self.decoding, name)  # what columns are made of
        refuse_columns(name, reading)
        if self.only_column is not None:
            return _column_decoder(self.only_column, decode)
        if self.only_field is None:
            return decoder_named(self.decoding if decode is None else decode, name)
        if decode in (None, self.decoding):
            return only_field(decoder_named(self.decoding, self.name), self.only_field)
        message = (
            f"decode={decode!r} returns no fields, and the spec chooses the field {self.only_field!r} of "
            f"{self.name}: leave :{self.only_field} out of the spec, or decode="
        )
        raise InvalidArgument(message)


def source_of(files: FileSet, decoder: Decoder, name: str, reading: Reading) -> FileSource:
    """Return the source of records in indexed files.

    Args:
        files: the indexed files.
        decoder: makes a record of its bytes.
        name: the name of the format in the index.
        reading: the arguments of ``sk.open``.
    """
    return FileSource(
        files,
        decoder,
        format=name,
        asked=reading.shown,
        version=reading.version,
        errors=reading.errors,
    )


def _column_decoder(column: str, decode: Any) -> LineDecoder:
    """Return the decoder of lines that are the only value of a record.

    Raises:
        InvalidArgument: the value cannot be decoded so.
    """
    if decode is None or decode in _COLUMN_VALUES:
        return in_column(decoder_named(decode or "text"), column)
    message = (
        f"decode must be one of {', '.join(map(repr, _COLUMN_VALUES))} for txt:PATH:COLUMN (got {decode!r}); "
        f"a function of records goes into ds.map"
    )
    raise InvalidArgument(message)


def refuse_columns(name: str, reading: Reading) -> None:
    """Refuse ``columns=``, which is for columns of tables.

    Raises:
        InvalidArgument: it is given.
    """
    if reading.columns is not None:
        message = (
            f"columns= is for tables (Parquet, Arrow), and this is {name}: say "
            f"sk.open(...).select_columns({reading.columns!r}), which makes no values of the others"
        )
        raise InvalidArgument(message)
