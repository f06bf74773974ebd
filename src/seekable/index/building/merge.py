"""Segments of offsets: writing one, and making few of many.

Each build that finds something new writes a segment, so a folder that grows by a file a day would have
hundreds of them, and whoever opens it as many memory maps. When they are more than is good, the
smaller half becomes one. As each number is copied only together with about as many others, adding files
one by one costs little more than adding them at once.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import xxhash

from seekable.index.entry import OFFSET_BYTES, Entry, Segment
from seekable.index.offsets import open_offsets
from seekable.storage.atomic import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_SEGMENTS = 64


def write_segment(folder: str, parts: Sequence[memoryview | bytes]) -> Segment:
    """Write the offsets of some files, one behind the other, and return them as a segment; none, no file."""
    hasher = xxhash.xxh3_64()
    for part in parts:
        hasher.update(part)
    segment = Segment(hasher.intdigest(), sum(map(len, parts)) // OFFSET_BYTES)
    if parts:
        write_atomically(os.path.join(folder, segment.file_name), parts)
    return segment


def merge_segments(folder: str, entries: Sequence[Entry]) -> list[Entry]:
    """Return entries whose offsets are in no more segments than is good, after writing one if need be.

    Args:
        folder: the index folder; segments that no entry is in any more stay there.
        entries: the files; those whose offsets turn out to be damaged are left out.
    """
    sizes = Counter(entry.segment for entry in entries)
    if len(sizes) <= _MOST_SEGMENTS:
        return list(entries)
    smallest = set(sorted(sizes, key=lambda segment: (segment.length, segment.digest))[: len(sizes) // 2 + 1])
    moved = [entry for entry in entries if entry.segment in smallest]
    parts = {entry.key: part for entry in moved if (part := _offsets(folder, entry))}
    segment, start = write_segment(folder, list(parts.values())), 0
    places: dict[tuple[str, str], int] = {}
    for key, part in parts.items():
        places[key] = start
        start += len(part) // OFFSET_BYTES
    return list(_placed(entries, smallest, segment, places))


def _placed(
    entries: Iterable[Entry], merged: set[Segment], segment: Segment, places: dict[tuple[str, str], int]
) -> Iterable[Entry]:
    for entry in entries:
        if entry.segment not in merged:
            yield entry
        elif entry.key in places:
            yield replace(entry, segment=segment, start=places[entry.key])


def _offsets(folder: str, entry: Entry) -> memoryview | None:
    """Return the offsets of a file, None if they are not what was written."""
    view = open_offsets(folder, entry.segment).view
    part = view[entry.start : entry.start + entry.numbers].cast("B")
    return part if xxhash.xxh3_64_intdigest(part) == entry.offsets else None
