"""Prints records: as their bytes in the file, or as JSON with their locations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from seekable.cli.output import write, write_document
from seekable.dataset.dataset import Dataset
from seekable.formats.lines.jsonl_writer import Unencodable, json_text
from seekable.formats.shar.shar_source import SharSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.byte_source import FileSource
from seekable.viewer.facts.json_documents import json_value, place_as_json
from seekable.viewer.facts.reading import raw_source

if TYPE_CHECKING:
    from seekable.nodes.node import Node

_AT_ONCE = 64
"""The number of records that are read together."""


def record_json(record: Any) -> bytes:
    r"""Return any record as JSON on one line, without the line end.

    It is the line that ``seekable export`` writes of the record. Where JSON lacks a value, which export
    refuses, a text stands for it: ``"nan"``, ``"inf"``, base64 for bytes.

    Example:
        >>> record_json({"a": 1.5, "b": float("nan")}), record_json("caf\udce9")
        (b'{"a":1.5,"b":"nan"}', b'"caf\\udce9"')
    """
    try:
        return json_text(record)
    except Unencodable:
        return json_text(json_value(record, whole_bytes=True))


def _short(value: Any) -> Any:
    """Return a value of an archive, with a note in place of bytes: their count and the first ones."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return json_value(value) if isinstance(value, bytes) else value


def write_records(records: Node, rows: Iterable[int], *, as_json: bool) -> None:
    """Print records, each on a line of its own.

    Args:
        records: the data, or a pipeline.
        rows: the records, in the order in which they are printed.
        as_json: print a document for each record instead of its bytes.
    """
    for some in _batches(rows):
        if not isinstance(records, FileSource) or records.decoder.reads_objects:
            _write_rows(records, some, as_json=as_json)
        elif as_json:
            _write_json(raw_source(records), records, some)
        else:
            write(b"".join(line + b"\n" for line in Dataset(raw_source(records))[some]))


def _write_rows(records: Node, rows: list[int], *, as_json: bool) -> None:
    """Print records without bytes of their own as JSON; a value that JSON lacks is printed as text."""
    read = records.fetch(np.array(rows, dtype=np.int64))
    if any(isinstance(leaf, SampleSource | SharSource) for leaf in leaves_of(records)):
        read = [_short(record) for record in read]
    found = list(map(record_json, read))
    if not as_json:
        write(b"".join(record + b"\n" for record in found))
        return
    for row, where, record in zip(rows, Dataset(records).locate(rows), found, strict=True):
        write_document({"row": row, "location": place_as_json(where), "record": msgspec.Raw(record)})


def _write_json(lines: FileSource, records: FileSource, rows: list[int]) -> None:
    is_json = records.decoder.name == "json"
    bare, decoded = Dataset(lines), Dataset(records)
    for row, where, line, record in zip(rows, bare.locate(rows), bare[rows], decoded[rows], strict=True):
        write_document(
            {"row": row, "location": place_as_json(where), **_content(line, record, is_json=is_json)}
        )


def _content(line: bytes, record: Any, *, is_json: bool) -> dict[str, Any]:
    """Return the content of a record for a JSON document, with no digit of it changed.

    JSON that Python's own module reads but the standard does not know (NaN, lone surrogates), or that is
    nested too deep, cannot be part of a document: it is given as text.
    """
    if not is_json:
        return {"record": msgspec.Raw(record_json(record))}
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"text": line.decode("utf-8", "backslashreplace")}
    return {"record": msgspec.Raw(line)}


def _batches(rows: Iterable[int]) -> Iterator[list[int]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, _AT_ONCE)):
        yield batch
