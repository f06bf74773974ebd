"""The objects of stores that lines of scripts name: those of many lines are fetched at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import AccessDenied, DataNotFound, IndexStale, SeekableError
from seekable.formats.kaldi.files.local_files import coding_by_name
from seekable.formats.kaldi.files.stored_file import is_stored
from seekable.formats.kaldi.script_lines import parse_line
from seekable.nodes.file_ranges import FileRanges
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.storage.mapped import MappedFile

__all__ = ["fetch_named"]


def fetch_named(reader: EntryReader, lines: Iterable[bytes]) -> list[object]:
    """Fetch the first bytes of the objects that lines name, as many as objects had so far.

    Lines that name no file of a store, or none that can be read, are left out: their reader finds out.

    Args:
        reader: the reader of the lines.
        lines: the lines.

    Returns:
        What keeps the bytes in memory; nothing if no line names a file of a store.

    Raises:
        Unreachable: a store does not answer.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        with suppress(SeekableError):
            found = parse_line(line)
            path = reader.path_of(found) if found.kind in {"file", "offset"} else ""
            if is_stored(path) and not coding_by_name(path):
                count = reader.files.first_bytes(whole=found.kind == "file")
                places.setdefault(path, []).append((found.offset, count))
    if not places:
        return []
    files = reader.files.stored(places)
    parts = []
    for path, stored in files.items():
        starts, counts = np.array(places[path], np.int64).T
        starts = np.minimum(starts, stored.size)
        stops = np.minimum(starts + counts, stored.size)
        parts.append(FileRanges.of(_OneFile(stored), np.zeros_like(starts), starts, stops))
    kept: list[object] = [files]
    with suppress(IndexStale, DataNotFound, AccessDenied):
        kept.append(far().reads.fetched(parts))
    return kept


@dataclass(frozen=True, slots=True)
class _OneFile:
    """A file whose number is 0."""

    file: MappedFile

    def mapped(self, _: int, /) -> MappedFile:
        return self.file

    def path(self, _: int, /) -> str:
        return self.file.path
