"""Prints records: as their bytes in the file, or as JSON with their locations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from seekable.cli.output import json_safe, write, write_document
from seekable.dataset.dataset import Dataset
from seekable.formats.decoding import decoder_named
from seekable.index.location import Location
from seekable.nodes.sources.file_source import FileSource
from seekable.nodes.sources.tables import TableSource

_AT_ONCE = 64
"""The number of records that are read together."""

_ENCODER = msgspec.json.Encoder(enc_hook=str)


def write_records(records: FileSource | TableSource, rows: Iterable[int], *, as_json: bool) -> None:
    """Print records, each on a line of its own.

    Args:
        records: the data.
        rows: the records, in the order in which they are printed.
        as_json: print a document for each record instead of its bytes.
    """
    for some in _batches(rows):
        if isinstance(records, TableSource):
            _write_rows(records, some, as_json=as_json)
        elif as_json:
            _write_json(_lines(records), records, some)
        else:
            write(b"".join(line + b"\n" for line in Dataset(_lines(records))[some]))


def _lines(records: FileSource) -> FileSource:
    return replace(records, decoder=decoder_named("bytes", records.format))


def _write_rows(records: TableSource, rows: list[int], *, as_json: bool) -> None:
    """Print rows of tables as JSON; a value that JSON cannot hold is printed as text."""
    found = [msgspec.Raw(_ENCODER.encode(record)) for record in records.fetch(np.array(rows, dtype=np.int64))]
    if not as_json:
        write(b"".join(bytes(record) + b"\n" for record in found))
        return
    for row, where, record in zip(rows, Dataset(records).locate(rows), found, strict=True):
        write_document({"row": row, "location": _location(where), "record": record})


def _write_json(lines: FileSource, records: FileSource, rows: list[int]) -> None:
    is_json = records.decoder.name == "json"
    bare, decoded = Dataset(lines), Dataset(records)
    for row, where, line, record in zip(rows, bare.locate(rows), bare[rows], decoded[rows], strict=True):
        write_document({"row": row, "location": _location(where), **_content(line, record, is_json=is_json)})


def _content(line: bytes, record: Any, *, is_json: bool) -> dict[str, Any]:
    """Return the content of a record for a JSON document, with no digit of it changed.

    JSON that Python's own module reads but the standard does not know (NaN, lone surrogates) cannot be part
    of a document: it is given as text.
    """
    if not is_json:
        return {"record": record}
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {"text": line.decode()}
    return {"record": msgspec.Raw(line)}


def _location(where: Location) -> dict[str, Any]:
    return {
        "path": json_safe(where.path),
        "row": where.row,
        "offset": where.offset,
        "length": where.length,
    }


def _batches(rows: Iterable[int]) -> Iterator[list[int]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, _AT_ONCE)):
        yield batch
