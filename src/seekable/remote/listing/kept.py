"""Listings that are kept between calls: which files a source named, with their sizes and identities.

A kept listing is a file in the folder of indexes. It is read where the user trusts it (``refresh=False``):
then no request is sent. Nothing in it is relied on for the content of files: each answer of a store is
compared with the identity, and a file that is damaged counts as missing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from seekable.remote.listing.listed_files import ListedFiles
from seekable.storage.files import make_private_folder, regular_only, write_atomically
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.remote.listing.listed_files import Columns

__all__ = ["has_kept", "listing_name", "read_kept", "write_kept"]

_VERSION = 1
_DIGEST_BYTES = 8
_WIDTH = 8


class _Head(msgspec.Struct):
    """The first line of a kept listing."""

    seekable_listing: int
    roots: list[tuple[str, int]]
    """The folder and the number of files of each run of files."""


def listing_name(asked: Sequence[str], kind: str, rules: str) -> str:
    """Return the name of the file that keeps the listing of a source.

    Args:
        asked: the items of the source.
        kind: the kind of the source.
        rules: a text that differs where the same items mean other files.
    """
    return f"{_start(asked, kind)}{xxhash.xxh3_64_hexdigest(rules.encode('utf-8', 'surrogatepass'))}.bin"


def has_kept(folder: str, asked: Sequence[str], kind: str) -> bool:
    """Return True if the listing of a source is kept, by whatever rules."""
    start = _start(asked, kind)
    with contextlib.suppress(OSError):
        return any(name.startswith(start) for name in os.listdir(folder))
    return False


def _start(asked: Sequence[str], kind: str) -> str:
    text = json.dumps([*asked, kind])
    return f"listing-{xxhash.xxh3_128_hexdigest(text.encode('utf-8', 'surrogatepass'))}-"


def read_kept(path: str) -> list[tuple[FoundFiles, ListedFiles]] | None:
    """Return the runs of files of a kept listing, with their sizes; None if there is none that is whole.

    Args:
        path: the file that keeps it.
    """
    try:
        with open(path, "rb", opener=regular_only) as file:
            digest, data = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    if digest != xxhash.xxh3_64_digest(data):
        return None
    line, _, rest = data.partition(b"\n")
    head = msgspec.json.decode(line, type=_Head)
    if head.seekable_listing != _VERSION:
        return None
    count = sum(some for _, some in head.roots)
    sizes, identities = np.frombuffer(rest[: 2 * _WIDTH * count], "<i8").reshape(2, count)
    names = rest[2 * _WIDTH * count :].decode("utf-8", "surrogateescape").split("\0")
    found, at = [], 0
    for root, some in head.roots:
        own = slice(at, at + some)
        files = ListedFiles.of(names[own], sizes[own], identities[own])
        found.append((FoundFiles(root, tuple(files.names)), files))
        at += some
    return found


def write_kept(path: str, found: Sequence[FoundFiles], statuses: Sequence[Columns]) -> None:
    """Keep a listing; if the folder cannot be written, nothing is kept and no error is raised.

    Args:
        path: the file that keeps it.
        found: the files.
        statuses: their sizes and identities, int64.
    """
    head = _Head(_VERSION, [(run.root, len(run.names)) for run in found])
    columns = [np.concatenate([pair[number] for pair in statuses]).astype("<i8") for number in (0, 1)]
    names = "\0".join(itertools.chain.from_iterable(run.names for run in found))
    pieces = [
        msgspec.json.encode(head) + b"\n",
        *(column.tobytes() for column in columns),
        names.encode("utf-8", "surrogateescape"),
    ]
    hasher = xxhash.xxh3_64()
    for piece in pieces:
        hasher.update(piece)
    with contextlib.suppress(OSError):
        make_private_folder(os.path.dirname(path))
        write_atomically(path, [hasher.digest(), *pieces])
