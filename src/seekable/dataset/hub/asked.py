"""What users ask for together with a spec, checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.dataset.hub.spec import HubSpec, TextSpec, spec_of
from seekable.errors import InvalidArgument
from seekable.formats.decoding import decoder_named, in_column
from seekable.formats.registry import format_named
from seekable.storage.compression import COMPRESSED
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.dataset.hub.spec import Spec
    from seekable.formats.decoding import Decoder
    from seekable.formats.registry import Format
    from seekable.storage.listing import Found

__all__ = ["column_decoder", "columns_of", "format_of_spec", "refuse_specs_among", "text_files"]

_FORMATS = {HubSpec: "parquet", TextSpec: "text"}
_VALUES = ("text", "bytes", "json")


def format_of_spec(spec: Spec, format_name: str | None) -> Format:
    """Return the format that a spec stands for.

    Raises:
        InvalidArgument: another one was asked for.
    """
    kind = format_named(_FORMATS[type(spec)])
    if format_name not in (None, kind.name):
        message = f"{spec.text!r} is {kind.name}; leave format={format_name!r} out"
        raise InvalidArgument(message)
    return kind


def columns_of(spec: HubSpec, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns to read: that of the spec, or those that were asked for, or all.

    Raises:
        InvalidArgument: both say which.
    """
    if spec.column is None:
        return columns
    if columns is not None:
        message = (
            f"{spec.text!r} and columns={list(columns)!r} both say which columns to read: "
            f"write {spec.text.removesuffix(f':{spec.column}')!r} to have columns="
        )
        raise InvalidArgument(message)
    return [spec.column]


def column_decoder(column: str, decode: Any) -> Decoder:
    """Return the decoder of lines that are the only value of a record.

    Raises:
        InvalidArgument: they shall be decoded in a way that there is not.
    """
    if decode is None or decode in _VALUES:
        return in_column(decoder_named(decode or "text"), column)
    message = (
        f"decode must be one of {', '.join(map(repr, _VALUES))} for txt:PATH:COLUMN (got {decode!r}); a "
        f"function of records goes into ds.map"
    )
    raise InvalidArgument(message)


def text_files(spec: TextSpec) -> tuple[Found, ...]:
    """Return the files of a spec; of a folder those of lines of text.

    Raises:
        DataNotFound: there is none.
        AccessDenied: this user may not look there.
    """
    endings = [
        f"{suffix}{more}"
        for suffix in format_named(_FORMATS[TextSpec]).suffixes
        for more in ("", *(f".{kind}" for kind in COMPRESSED))
    ]
    return find_files(os.path.expanduser(spec.path), suffixes=endings)


def refuse_specs_among(source: object) -> None:
    """Refuse a list with a spec in it.

    Raises:
        InvalidArgument: there is one.
    """
    items: Iterable[object] = source if isinstance(source, list | tuple) else ()
    for item in items:
        if (spec := spec_of(item)) is not None:
            message = (
                f"{spec.text!r} is opened alone; several go together with sk.concat([sk.open(...), ...]), or "
                f"sk.mix([...], weights=..., seed=...)"
            )
            raise InvalidArgument(message)
