"""The builder of sources of lines: it decides from the arguments of ``sk.open`` how records are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.formats.decoding import decoder_named, in_column, only_field
from seekable.nodes.files.byte_source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.formats.decoding import Decoder
    from seekable.formats.registry import Format
    from seekable.formats.source_options import SourceOptions
    from seekable.index.fileset import FileSet

__all__ = ["line_source", "refuse_options_of_tables", "source_of"]


_COLUMN_VALUES = ("text", "bytes", "json")
"""The decodings of a line that is the only value of a record."""


def line_source(form: Format, options: SourceOptions) -> Callable[[FileSet], FileSource]:
    """Return a function from indexed files to the source of their lines.

    Args:
        form: the format.
        options: the decoding of lines; those of tables must be left out.

    Raises:
        InvalidArgument: there is no such decoding, or an option is for tables.
        WrongType: ``decode`` is neither a name nor a function.
    """
    refuse_options_of_tables(form.name, options)
    if options.column is not None:
        decoder = _column_decoder(options.column, options.decode)
    elif options.field is not None:
        decoder = _field_decoder(form, options.field, options.decode)
    else:
        decoder = _decoder_of(form, form.decode if options.decode is None else options.decode)

    def source(files: FileSet) -> FileSource:
        return source_of(files, decoder, form, options)

    return source


def source_of(files: FileSet, decoder: Decoder, form: Format, options: SourceOptions) -> FileSource:
    """Return the source of the records of indexed files, with the arguments of ``sk.open`` for them."""
    return FileSource(
        files,
        decoder,
        format=form.name,
        asked=options.shown,
        version=options.version,
        errors=options.errors,
    )


def _decoder_of(form: Format, decode: Any) -> Decoder:
    """Return the decoder that a user names; that of CSV has the dialect of the format.

    Raises:
        InvalidArgument: no decoder has this name.
        WrongType: it is neither a name nor a function.
    """
    if form.multiline:
        return decoder_named(form.name if decode == form.decode else decode, form.name)
    return decoder_named(decode)


def _column_decoder(column: str, decode: Any) -> Decoder:
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


def _field_decoder(form: Format, field: str, decode: Any) -> Decoder:
    """Return the decoder of records of which one field is read.

    Raises:
        InvalidArgument: records are not decoded into fields.
    """
    if decode is None or decode == form.decode:
        return only_field(_decoder_of(form, form.decode), field)
    message = (
        f"decode={decode!r} returns no fields, and the spec chooses the field {field!r} of {form.name}: "
        f"leave :{field} out of the spec, or decode="
    )
    raise InvalidArgument(message)


def refuse_options_of_tables(name: str, options: SourceOptions) -> None:
    """Refuse the options that are for columns of tables.

    Raises:
        InvalidArgument: there is such an option.
    """
    if options.columns is not None:
        message = (
            f"columns= is for tables (Parquet, Arrow), and this is {name}: say "
            f"sk.open(...).select_columns({list(options.columns)!r}), which makes no values of the others"
        )
        raise InvalidArgument(message)
    if options.strict:
        message = f"strict= is for tables (Parquet, Arrow), and this is {name}"
        raise InvalidArgument(message)
