"""How the files of a dataset are compressed, and where they can be entered: for ``info``."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from seekable.cli.output import in_words
from seekable.storage.compression import compression_of
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import open_points, points_name

if TYPE_CHECKING:
    from seekable.index.fileset import FileSet

_KINDS = {"gz": "gzip", "zst": "zstd"}


def compression_found(files: FileSet) -> dict[str, Any] | None:
    """Return how many files are compressed in which way, and into how many blocks; None if all are plain."""
    kinds: Counter[str] = Counter()
    blocks = content = points_bytes = 0
    folders = itertools.chain.from_iterable(itertools.repeat(run[1], run[2]) for run in files.runs)
    for folder, name, digest in zip(folders, files.names(), files.contents.tolist(), strict=True):
        kind = compression_of(name)
        kinds[kind or "plain"] += 1
        if kind is not None:
            path = os.path.join(folder, points_name(digest))
            points = open_points(path)
            blocks, content = blocks + points.count, content + points.size
            points_bytes += os.path.getsize(path)
    if set(kinds) <= {"plain"}:
        return None
    return {"files": dict(kinds), "blocks": blocks, "content_bytes": content, "points_bytes": points_bytes}


def compression_in_words(found: dict[str, Any]) -> str:
    """Return what was found as a person reads it."""
    kinds = ", ".join(f"{count:,} {_KINDS.get(kind, kind)}" for kind, count in sorted(found["files"].items()))
    return (
        f"{kinds}; {bytes_in_words(found['content_bytes'])} of content, entered at "
        f"{in_words(found['blocks'], 'point')} ({bytes_in_words(found['points_bytes'])})"
    )
