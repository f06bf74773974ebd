"""Files of JSON lines that seem to be of different data: each has fields that the other lacks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import CorruptRecord
from seekable.formats.lines.line_source import LineDecoder
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.byte_source import FileSource

if TYPE_CHECKING:
    from seekable.nodes.node import Node

__all__ = ["said_of"]

_MOST_FILES = 8
_MOST_RECORDS = 4
"""The first records of a file that are looked at: one may lack a field that the others have."""


def said_of(node: Node) -> str:
    """Return what is to be said of files whose fields differ from those of the first; nothing if none do.

    A few files are looked at, the first and the last among them, and a few records of each. Files differ if
    each of two has a field, in all of these records, which none of the other's has. Fields that only one of
    them has more are common: many writers leave out what is null.
    """
    source = next(iter(leaves_of(node)), None)
    if not isinstance(source, FileSource):
        return ""
    decoder = source.decoder
    if source.files.has_objects or not isinstance(decoder, LineDecoder):
        return ""
    if decoder.name != "json" or decoder.plain is not None:
        return ""
    bare, records = replace(source, errors=None), source.files.records
    filled = np.flatnonzero(records).tolist()
    step = max(1, (len(filled) - 1) / (_MOST_FILES - 1))
    chosen = dict.fromkeys(filled[round(number * step)] for number in range(min(len(filled), _MOST_FILES)))
    first: tuple[str, frozenset[str], frozenset[str]] | None = None
    for file in chosen if len(chosen) > 1 else ():
        always, ever = _fields(bare, file)
        if not always:
            continue
        path = source.files.shown_path(file)
        if first is None:
            first = path, always, ever
        elif (ours := first[1] - ever) and (theirs := always - first[2]):
            return (
                f"the files of {source.asked} have different fields: {min(ours)!r} is in {first[0]!r} and "
                f"not in {path!r}, which has {min(theirs)!r}. If they are of different data, open them apart "
                f"and join them with sk.mix or sk.concat; map_columns gives them the same fields"
            )
    return ""


def _fields(source: FileSource, file: int) -> tuple[frozenset[str], frozenset[str]]:
    """Return the fields that all of the first records of a file have, and those that some have."""
    start = int(source.files.starts[file])
    found: list[frozenset[str]] = []
    for row in range(min(_MOST_RECORDS, int(source.files.records[file]))):
        with suppress(CorruptRecord):  # reading names it
            record = source.record(start + row)
            found.append(
                frozenset(record if isinstance(record, dict) else [f"no fields, a {type(record).__name__}"])
            )
    if not found:
        return frozenset(), frozenset()
    return frozenset.intersection(*found), frozenset.union(*found)
