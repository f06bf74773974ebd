"""Records as the samples of a tar file: the names of their members, and what names are refused."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.formats.file_format import UnwritableRecord
from seekable.formats.tar.fields.encode import encode_field
from seekable.nodes.key import SAMPLE_KEY
from seekable.writing.encoded_pieces import EncodedRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["EncodedSample", "encoded", "members"]

_KEY_DIGITS = 9

_LEFT_OUT = re.compile(r"__[^/]*__(/|$)")
"""The names that WebDataset and its readers leave out."""


class EncodedSample(msgspec.Struct, frozen=True):
    """One record, ready to be written."""

    key: str | None
    """The key; None for a record without one, whose key is then its number."""

    fields: list[tuple[str, bytes]]
    """The fields in the order of the record, each with the content of its member."""


def encoded(records: Sequence[Any]) -> Iterator[EncodedSample]:
    """Yield records as samples.

    Fields whose names begin with an underscore are left out, and so are None values of all fields but JSON.

    Raises:
        UnwritableRecord: a record is no dict, or a key, a field or a value is not one of a sample.
    """
    for place, record in enumerate(records):
        try:
            yield _encoded(record)
        except (TypeError, ValueError) as error:
            raise UnwritableRecord(len(records) - place, str(error)) from None


def members(
    chunks: Iterable[Sequence[Any] | EncodedRecords[EncodedSample]], first: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the members of all records.

    Args:
        chunks: records, or samples of pieces.
        first: the number of the first record, for the keys of records without one.

    Raises:
        UnwritableRecord: as `encoded`, or two samples that follow each other have the same key.
    """
    before: str | None = None
    number = first
    for chunk in chunks:
        samples = chunk.records if isinstance(chunk, EncodedRecords) else chunk
        made = samples if isinstance(chunk, EncodedRecords) else encoded(chunk)
        for place, sample in enumerate(made):
            key = f"{number:0{_KEY_DIGITS}}" if sample.key is None else sample.key
            if key == before:
                why = f"the record before has the same key {key!r}, and readers would join the two"
                raise UnwritableRecord(len(samples) - place, why)
            for field, content in sample.fields:
                yield f"{key}.{field}", content
            before, number = key, number + 1


def _encoded(record: Any) -> EncodedSample:
    if not isinstance(record, dict):
        raise TypeError(f"it is of type {type(record).__name__}, and a sample is made of a dict of fields")
    fields = []
    for field, value in record.items():
        if not isinstance(field, str):
            raise TypeError(f"it has the field {field!r} of type {type(field).__name__}, and fields are str")
        if field.startswith("_") or (value is None and not _is_json(field)):
            continue
        if fault := _field_fault(field):
            raise ValueError(f"the field {field!r} {fault}")
        fields.append((field, encode_field(field, value)))
    if not fields:
        raise ValueError("it has no field that could be written, and a sample has at least one")
    key = record.get(SAMPLE_KEY)
    if key is not None and (fault := _key_fault(key)):
        raise ValueError(f"the key {key!r} {fault}")
    return EncodedSample(key, fields)


def _is_json(field: str) -> bool:
    return field.rpartition(".")[2] in ("json", "jsn")


@functools.lru_cache(1024)
def _field_fault(field: str) -> str | None:
    """Return what is wrong with the name of a field; None for a good one."""
    if not field:
        return "is empty"
    if "/" in field or "\0" in field:
        return "has a slash or a NUL, which the end of a file name cannot hold"
    if field != field.lower():
        return f"has capital letters, and readers would make it {field.lower()!r}: rename it"
    return None


def _key_fault(key: object) -> str | None:
    """Return what is wrong with a key; None for a good one."""
    if not isinstance(key, str):
        return f"is of type {type(key).__name__}, and a key is a str"
    if "\0" in key:
        return "has a NUL, where readers would end it"
    steps = key.split("/")
    if "" in steps or "." in steps or ".." in steps:
        return "is no plain relative path: it begins or ends with '/', or has an empty, '.' or '..' step"
    if "." in steps[-1]:
        dashed = "/".join([*steps[:-1], steps[-1].replace(".", "-")])
        return (
            f"has a dot in its last step, where readers would end the key and begin the field: name it "
            f"otherwise, {dashed!r} for instance"
        )
    if len(steps) > 1 and _LEFT_OUT.match(key):
        return "begins with a folder like __meta__, which readers leave out"
    return None
