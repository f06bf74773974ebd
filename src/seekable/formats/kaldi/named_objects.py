"""The objects of stores that lines of scripts name: those of many lines are fetched at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from seekable._lazy import lazy
from seekable.errors import AccessDenied, DataNotFound, IndexStale, SeekableError
from seekable.formats.kaldi.files.local_files import coding_by_name
from seekable.formats.kaldi.files.stored_file import is_stored
from seekable.formats.kaldi.script_lines import parse_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.remote.fetching import fetcher, wants
    from seekable.remote.index import object_file
else:
    fetcher = lazy("seekable.remote.fetching.fetcher")
    object_file = lazy("seekable.remote.index.object_file")
    wants = lazy("seekable.remote.fetching.wants")

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
        assert isinstance(stored, object_file.ObjectFile)
        starts, counts = np.array(places[path], np.int64).T
        starts = np.minimum(starts, stored.size)
        stops = np.minimum(starts + counts, stored.size)
        parts.append(wants.Wants((stored.ref,), np.zeros_like(starts), starts, stops))
    kept: list[object] = [files]
    with suppress(IndexStale, DataNotFound, AccessDenied):
        kept.append(fetcher.fetcher().need(wants.Wants.joined(parts)))
    return kept
