r"""Decoders: from the bytes of a record to the record.

A decoder is given the range of the record as the index has it: the line, its line end, and blank
lines that may follow. ``\n`` and ``\r\n`` are line ends; a carriage return alone is not. A record of CSV may
be several lines, and its file's header tells how it is read.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, AnyStr

import msgspec

from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument, WrongType
from seekable.formats.registry import format_named

if TYPE_CHECKING:
    from seekable.formats.kaldi import named_objects
    from seekable.formats.kaldi.directory.utterances import Utterances
    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.formats.lines import csv, csv_dialect, json_fields
else:
    csv = lazy("seekable.formats.lines.csv")
    csv_dialect = lazy("seekable.formats.lines.csv_dialect")
    json_fields = lazy("seekable.formats.lines.json_fields")
    named_objects = lazy("seekable.formats.kaldi.named_objects")

Decode = str | Callable[[bytes], Any] | Mapping[str, Any]
"""A decoder as users name it: "json", "text", "bytes", or a function of the bytes of a line; of samples of
tar files and of Shar, also a dict by field."""

_HEADS_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Decoder:
    r"""Decodes the bytes of a record. Small, picklable if its function is, and safe from threads.

    Example:
        >>> decoder_named("text").fast(memoryview(b"good day\r\n"))
        'good day'
    """

    name: str
    """The name of the decoder: "json", "text", "bytes", or the qualified name of the function."""

    fast: Callable[[memoryview], Any]
    """Returns the record whose range is given, or raises."""

    recover: Callable[[bytes], Any] | None
    """Returns a record that `fast` raised for, or raises what is wrong with it; None if there is no
    second way."""

    function: Callable[[bytes], Any] | None = None
    """The function of the user, if it decodes the records; None otherwise."""

    form: str = ""
    """The format, if its records may be more than a line."""

    headed: bool = False
    """True if the head of a file decides how its records are read; `for_head` returns the decoder then."""

    column: str = ""
    """The key of the only value, if records are dicts of one value; otherwise empty."""

    field: str = ""
    """The only field that is kept of each record; empty for all fields."""

    fields: frozenset[str] | None = None
    """The only fields that are used of each record, which may have others too; None for all."""

    plain: Decoder | None = None
    """The decoder of the value of the column, or of all fields."""

    entries: EntryReader | None = None
    """The reader of the entries of Kaldi's tables; None for other formats."""

    utterances: Utterances | None = None
    """The reader of the utterances of a data directory of Kaldi; None for other formats."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, because some decoders are functions of C extensions."""
        if self.entries is not None:
            return entry_decoder, (self.entries,)
        if self.utterances is not None:
            return utterance_decoder, (self.utterances,)
        if self.plain is not None and self.fields is not None:
            return some_fields, (self.plain, self.fields)
        if self.plain is not None and self.field:
            return only_field, (self.plain, self.field)
        if self.plain is not None:
            return in_column, (self.plain, self.column)
        return decoder_named, (self.function or self.name, self.form)

    def as_json(self, into: Any) -> dict[str, Any]:
        """Return the decoder for a pipeline file; ``into`` is a `seekable.nodes.saving.Saving`."""
        own = self.entries if self.utterances is None else self.utterances
        if own is not None:
            return own.as_json(into)
        kept = {"column": self.column, "field": self.field}
        inner = self.plain or self
        named = into.named(inner.function or inner.name)
        return {"decode": named, **{name: text for name, text in kept.items() if text}}

    @classmethod
    def from_json(cls, value: Any, given: Any, where: str) -> Decoder:
        """Return the decoder that `as_json` wrote; ``given`` is a `seekable.nodes.saving.Loading`.

        Raises:
            CorruptState: it wrote no such thing.
        """
        said = given.checked(value, dict[str, Any], where)
        form = format_named(given.format(where))
        if form.saved_decoder:
            made: Decoder = form.decoder_from_json(said, given, where)
            return made
        decode = given.named(said.get("decode"), f"{where}.decode")
        try:
            decoder = decoder_named(decode, form.name if form.multiline else "")
        except InvalidArgument as error:
            message = f"{where}: {error}"
            raise CorruptState(message) from None
        if "field" in said:
            return only_field(decoder, given.checked(said["field"], str, f"{where}.field"))
        if "column" not in said:
            return decoder
        return in_column(decoder, given.checked(said["column"], str, f"{where}.column"))

    @property
    def needs_head_only(self) -> bool:
        """True if records are decoded from their first bytes, so that the rest need not be fetched."""
        return self.entries is not None and self.entries.kind == "ark" and self.entries.wanted != "object"

    @property
    def reads_objects(self) -> bool:
        """True if records are made of objects of Kaldi, which a line may name, and not of the line alone."""
        return self.entries is not None or self.utterances is not None

    @property
    def names_objects(self) -> bool:
        """True if records are made of objects of Kaldi that lines name."""
        entries = self.entries
        return self.utterances is not None or (entries is not None and entries.kind == "scp")

    def fetch_named(self, views: Iterable[memoryview]) -> list[object]:
        """Fetch the objects of stores that lines name; return what keeps their bytes in memory.

        Raises:
            Unreachable: a store does not answer.
        """
        if self.utterances is not None:
            lines = itertools.chain.from_iterable(map(self.utterances.named_lines, views))
            return named_objects.fetch_named(self.utterances.entries, lines)
        if self.entries is None or self.entries.wanted == "key":
            return []
        return named_objects.fetch_named(self.entries, map(bytes, views))

    def for_head(self, head: bytes) -> Decoder:
        """Return the decoder of the records of one file, if this one is `headed`.

        Args:
            head: the bytes before the file's first record.
        """
        return _csv_decoder(self.form, head, self.field)

    def span(self, view: memoryview) -> int:
        """Return the length of the record at the start of its range, without its line end."""
        if self.entries is not None and self.entries.kind == "ark":
            return len(view)
        return csv.record_span(view) if self.form else line_span(view)


def decoder_named(decode: Decode, form: str = "") -> Decoder:
    """Return the decoder that a user asks for with ``decode=``.

    Args:
        decode: "json", "text", "bytes", a function of the record's bytes, or the name of the format where
            that decodes its records itself.
        form: the name of the format if its records may be several lines; other names count as none.

    Raises:
        InvalidArgument: no decoder has this name.
        WrongType: it is neither a name nor a function.
    """
    form = form if form and csv_dialect.is_csv(form) else ""
    if isinstance(decode, str):
        if form and decode == form:
            return Decoder(form, _headless, None, form=form, headed=True)
        if decode not in _DECODERS:
            names = ", ".join(map(repr, [*_DECODERS, *filter(None, [form])]))
            message = f"decode must be one of {names} or a function of the line's bytes; got {decode!r}"
            raise InvalidArgument(message)
        return _of_several_lines(decode, form) if form else _DECODERS[decode]
    if not callable(decode):
        raise WrongType(f"decode must be a name or a function of the line's bytes; got {decode!r}")
    line = _record if form else _line
    return Decoder(_qualified_name(decode), _OnLine(decode, line), None, decode, form=form)


def entry_decoder(entries: EntryReader) -> Decoder:
    """Return the decoder of the entries of Kaldi's tables."""
    return Decoder(entries.holder.name, entries.read, None, entries=entries)


def utterance_decoder(utterances: Utterances) -> Decoder:
    """Return the decoder of the utterances of a data directory of Kaldi."""
    return Decoder("kaldi-directory", utterances, None, utterances=utterances)


def in_column(decoder: Decoder, column: str) -> Decoder:
    """Return a decoder whose records are dicts of one value, which another one decodes.

    Example:
        >>> in_column(decoder_named("text"), "text").fast(memoryview(b"good day"))
        {'text': 'good day'}
    """
    recover = None if decoder.recover is None else _InColumn(decoder.recover, column)
    fast = _InColumn(decoder.fast, column)
    name = f"{decoder.name} in {column!r}"
    return replace(decoder, name=name, fast=fast, recover=recover, column=column, plain=decoder)


def only_field(decoder: Decoder, field: str) -> Decoder:
    """Return a decoder of dicts that keeps one field of each; a record without the field cannot be decoded.

    Example:
        >>> only_field(decoder_named("json"), "text").fast(memoryview(b'{"id": 7, "text": "good day"}'))
        {'text': 'good day'}
    """
    recover = None if decoder.recover is None else _OnlyField(decoder.recover, field)
    lean = some_fields(decoder, frozenset([field]))
    fast = _OnlyField(lean.fast, field)
    name = f"{field!r} of {decoder.name}"
    return replace(decoder, name=name, fast=fast, recover=recover, field=field, plain=decoder)


def some_fields(decoder: Decoder, fields: frozenset[str]) -> Decoder:
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


@dataclass(frozen=True, slots=True)
class _RecordText:
    encoding: str

    def __call__(self, view: memoryview) -> str:
        return str(view[: csv.record_span(view)], self.encoding)


def _text(view: memoryview) -> str:
    line = str(view, "utf-8")
    return line[: _end(line, "\n", "\r")]


def _loosely(raw: bytes) -> Any:
    """Decode JSON as Python's own module does: NaN, Infinity, 1e400, lone surrogates.

    Raises:
        ValueError: it is no JSON, or Python does not read it: numbers are too long, or levels too many.
    """
    try:
        return json.loads(str(raw, "utf-8"))
    except RecursionError as error:
        message = f"it has more levels, one in the other, than Python reads: {error}"
        raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class _OnLine:
    function: Callable[[bytes], Any]
    line: Callable[[memoryview], bytes]

    def __call__(self, view: memoryview) -> Any:
        return self.function(self.line(view))


@dataclass(frozen=True, slots=True)
class _InColumn:
    decode: Callable[[Any], Any]
    column: str

    def __call__(self, view: Any) -> dict[str, Any]:
        return {self.column: self.decode(view)}


@dataclass(frozen=True, slots=True)
class _OnlyField:
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
def _json_fields(fields: frozenset[str]) -> Decoder:
    whole, lean = _DECODERS["json"], json_fields.JsonFields.of(sorted(fields))
    return replace(whole, fast=lean.decode, fields=fields, plain=whole)


@lru_cache(maxsize=_HEADS_REMEMBERED)
def _csv_decoder(form: str, head: bytes, field: str) -> Decoder:
    records = csv.csv_records(head, csv_dialect.dialect_of(form))
    decoder = Decoder(form, records.fast, records.recover, form=form)
    return only_field(decoder, field) if field else decoder


def _qualified_name(function: Callable[[bytes], Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


_DECODERS = {
    decoder.name: decoder
    for decoder in (
        Decoder("json", msgspec.json.Decoder().decode, _loosely),
        Decoder("text", _text, None),
        Decoder("bytes", _line, None),
    )
}


def _of_several_lines(decode: str, form: str) -> Decoder:
    """Return the decoder of a name for records of CSV, which may be several lines."""
    if decode == "json":
        return replace(_DECODERS["json"], form=form)
    if decode == "bytes":
        return Decoder("bytes", _record, None, form=form)
    return Decoder("text", _RecordText(csv_dialect.dialect_of(form).encoding), None, form=form)
