"""A bounded part of a user's files, in a folder of its own: for ``bench``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.registry import Format, find_data, format_named, format_of_all
from seekable.storage.compression import compression_of

_MOST_FILES = 1000
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Files to measure with: links to whole files, and at most one copy of the beginning of a file."""

    folder: str
    """Where they are; it is removed afterwards."""

    paths: tuple[str, ...]
    bytes: int
    format: Format
    all_files: int
    all_bytes: int
    """How many files and bytes the user has."""


@contextlib.contextmanager
def excerpt_of(asked: str, *, format_name: str | None, most_bytes: int) -> Iterator[Excerpt]:
    """Make an excerpt that has at most so many bytes.

    Files are drawn, always the same ones; of one that does not fit, the beginning is copied up to a line's
    end.

    Raises:
        DataNotFound: there is no such data.
        InvalidArgument: not one record fits, or files are compressed.
    """
    found = find_data(asked)
    kind = format_of_all(found) if format_name is None else format_named(format_name)
    paths = [os.path.join(run.root, name) for run in found for name in run.names]
    if compressed := next(filter(compression_of, paths), None):
        message = f"bench takes plain files, which the floor can read too, and {compressed!r} is compressed"
        raise InvalidArgument(message)
    sizes = [os.path.getsize(path) for path in paths]
    with tempfile.TemporaryDirectory(prefix="seekable-bench-") as folder:
        taken = _take(folder, paths, sizes, most_bytes)
        size = sum(os.path.getsize(path) for path in taken)
        if not size:
            message = (
                f"no record of {asked!r} ends within {most_bytes:,} bytes: take more of it with --megabytes"
            )
            raise InvalidArgument(message)
        yield Excerpt(folder, tuple(taken), size, kind, len(paths), sum(sizes))


def _take(folder: str, paths: Sequence[str], sizes: Sequence[int], most_bytes: int) -> list[str]:
    order = np.random.default_rng(0).permutation(len(paths)).tolist()
    taken: list[str] = []
    room = most_bytes
    for number in order[:_MOST_FILES]:
        suffix = os.path.splitext(paths[number])[1]
        target = os.path.join(folder, f"{len(taken):04d}{suffix}")
        if sizes[number] <= room:
            os.symlink(paths[number], target)
            room -= sizes[number]
            taken.append(target)
        elif not taken or room > most_bytes // 2:
            room -= _copy_beginning(paths[number], target, room)
            taken.append(target)
    return taken


def _copy_beginning(path: str, target: str, most_bytes: int) -> int:
    """Copy the lines that end within the first bytes of a file, and return how many bytes they have."""
    copied = 0
    with open(path, "rb") as source, open(target, "wb") as copy:
        end = 0
        while copied < most_bytes and (chunk := source.read(min(_CHUNK_BYTES, most_bytes - copied))):
            copy.write(chunk)
            newline = chunk.rfind(b"\n")
            end = end if newline < 0 else copied + newline + 1
            copied += len(chunk)
        copy.truncate(end)
    return end
