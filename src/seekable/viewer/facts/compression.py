"""The compression of data files, and the files whose offsets another tool found."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from seekable.index.digest import digest_number, digest_text, unread_content_digest
from seekable.storage.compression import compression_of
from seekable.storage.memory import bytes_in_words
from seekable.storage.seek_points import open_points, points_name
from seekable.viewer.facts.documents import in_words

if TYPE_CHECKING:
    from seekable.index.fileset import FileSet

__all__ = ["compression_found", "compression_in_words", "unread_files"]

_KINDS = {"gz": "gzip", "zst": "zstd"}


def unread_files(files: FileSet) -> int:
    """Return the number of files that were never read as a whole: another index had their offsets."""
    return sum(
        entry.content_digest
        == digest_text(
            unread_content_digest(
                head_tail=digest_number(entry.head_tail_digest),
                offsets=digest_number(entry.offsets_digest),
                size=entry.size,
                mtime_ns=mtime_ns,
            )
        )
        for entry, mtime_ns in zip(map(files.entry, range(len(files))), files.mtimes_ns.tolist(), strict=True)
    )


def compression_found(files: FileSet) -> dict[str, Any] | None:
    """Return the number of files, blocks and bytes for each compression; None if all files are plain.

    Returns:
        ``files`` maps ``"gz"``, ``"zst"`` and ``"plain"`` to numbers of files; ``blocks`` is the number of
        seek points, ``content_bytes`` the decompressed size, ``points_bytes`` the size of the seek points.
    """
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
    """Return the result of ``compression_found`` as one line for people."""
    kinds = ", ".join(f"{count:,} {_KINDS.get(kind, kind)}" for kind, count in sorted(found["files"].items()))
    return (
        f"{kinds}; {bytes_in_words(found['content_bytes'])} of content, entered at "
        f"{in_words(found['blocks'], 'point')} ({bytes_in_words(found['points_bytes'])})"
    )
