"""The answer to a record that cannot be decoded: a second way, another record, a hole, or an error."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.errors import (
    CorruptObject,
    CorruptRecord,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KaldiWarning,
    MissingDependency,
    PipeRefused,
)
from seekable.nodes.hole import HOLE

if TYPE_CHECKING:
    from seekable.formats.decoding import Decoder
    from seekable.formats.source_options import OnError

__all__ = ["recovered"]

_PREVIEW_BYTES = 80

_NEVER_LEFT_OUT = (InvalidArgument, PipeRefused, MissingDependency)
"""Errors of many entries, which the user can end; as in Kaldi, also a range that an object does not have."""


def recovered(
    errors: OnError | None,
    decoder: Decoder,
    view: memoryview,
    error: Exception,
    *,
    path: str,
    row: int,
    offset: int,
) -> Any:
    """Decode a record that ``decoder.fast`` raised for, or return the result of ``errors`` instead.

    Raises:
        CorruptRecord: the record cannot be decoded, and the source has no ``errors``.
        IndexStale: another file that the record is made of was changed.
    """
    if isinstance(error, IndexStale):
        raise error
    if decoder.entries is not None:
        return _recovered_entry(errors, decoder, view, error, path=path, row=row, offset=offset)
    record, recover = bytes(view[: decoder.span(view)]), decoder.recover
    try:
        if recover is not None:
            return recover(record)
    except ValueError as recovering:
        error = recovering
    corrupt = CorruptRecord(path, row, offset=offset, length=len(record), preview=record, cause=error)
    if errors is None:
        raise corrupt from error
    corrupt.__cause__ = error
    return errors(corrupt)


def _recovered_entry(
    errors: OnError | None,
    decoder: Decoder,
    view: memoryview,
    error: Exception,
    *,
    path: str,
    row: int,
    offset: int,
) -> Any:
    """Return an entry whose file lies beside its script, or what is delivered instead of an entry.

    Raises:
        CorruptRecord: the entry cannot be read, and nothing is delivered instead.
    """
    entries = decoder.entries
    assert entries is not None
    if isinstance(error, DataNotFound) and entries.folder is None:
        try:
            return replace(entries, folder=os.path.dirname(path)).read(view)
        except Exception as again:  # noqa: BLE001 - holders of users may raise anything; the cause is kept
            error = again
    if isinstance(error, CorruptObject) and not error.path:
        error = CorruptObject(path, error.key, offset + error.offset, error.expected, error.found)
    preview = bytes(view[:_PREVIEW_BYTES])
    corrupt = CorruptRecord(path, row, offset=offset, length=decoder.span(view), preview=preview, cause=error)
    corrupt.__cause__ = error
    if errors is not None:
        return errors(corrupt)
    if not entries.permissive or isinstance(error, _NEVER_LEFT_OUT):
        raise corrupt
    message = f"{path}: record {row} at byte {offset} is left out: {type(error).__name__}: {error}"
    warnings.warn(message, KaldiWarning, stacklevel=2)
    return HOLE
