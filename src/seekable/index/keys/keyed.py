"""The header of a key index: the way in which its keys are made, and the files of their records.

The description is JSON, ``keys-<digest>.json``: a first line up to ``"files": [`` that holds all that a
reader needs, then a file a line. Names stand there for people, and to know which files are gone; content and
number of records are what decides.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable.index.digest import digest_text
from seekable.storage.files import regular_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.index.fileset import FileSet

__all__ = [
    "Head",
    "Keyed",
    "KeyedFile",
    "descriptions",
    "encode_description",
    "keys_of_entries",
    "keys_of_samples",
    "read_files",
    "read_head",
]

_SCHEMA = 1
_HEAD_END = b', "files": [\n'
_END = b"\n]}\n"
_OURS = re.compile(r"keys-[0-9a-f]{16}\.json")


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """Files in the order of their records, and the way in which the keys are made."""

    made: dict[str, Any]
    """The scanner, the decoder, and the field or function; JSON-safe."""

    contents: tuple[str, ...]
    """The digest of all of each file."""

    records: NDArray[np.int64]
    """The number of records of each file."""

    @classmethod
    def of(cls, files: FileSet, made: dict[str, Any]) -> Keyed:
        """Return the files of a set, as a key index describes them."""
        return cls(made, tuple(map(digest_text, files.contents.tolist())), files.records)

    @property
    def name(self) -> str:
        """The name of the index, without suffix."""
        hasher = xxhash.xxh3_64(json.dumps(self.made, sort_keys=True).encode())
        hasher.update("".join(self.contents).encode())
        hasher.update(self.records.astype("<i8").tobytes())
        return f"keys-{hasher.hexdigest()}"

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of records before each file; a last element is the number of all records."""
        starts: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.records)])
        return starts


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a key index."""

    seekable_keys: int
    """The version of the format."""

    pairs: str
    """The name of the file of hashes and rows."""

    keys: int
    """The number of keys."""

    made: dict[str, Any]
    """The way in which the keys are made."""

    duplicates: dict[str, Any] | None
    """The examples of keys that several records have."""


@dataclass(frozen=True, slots=True)
class KeyedFile:
    """A file of a key index."""

    root: int
    """The number of its root; 0 is that of the index folder."""

    name: str
    """The path of the file, relative to its root."""

    content: str
    """The digest of all of it."""

    records: int
    """The number of records of the file."""


def keys_of_entries(format_name: str) -> dict[str, Any]:
    """Return what makes the keys that entries of Kaldi's tables have themselves, for `Keyed`.

    Args:
        format_name: the name of the format in the index.
    """
    return {"scanned_as": format_name, "key": "whole entry"}


def keys_of_samples(format_name: str) -> dict[str, Any]:
    """Return what makes the keys of samples of tar files, which come from the names of their members.

    Args:
        format_name: the name of the format in the index.
    """
    return {"scanned_as": format_name, "key": "sample"}


def encode_description(
    files: FileSet, keyed: Keyed, *, pairs: str, keys: int, duplicates: dict[str, Any] | None
) -> Iterator[bytes]:
    """Yield the bytes of a description."""
    head = {
        "seekable_keys": _SCHEMA,
        "pairs": pairs,
        "keys": keys,
        "made": keyed.made,
        "duplicates": duplicates,
    }
    # Python's own JSON here and below, because keys and names may have lone surrogates.
    yield json.dumps(head).removesuffix("}").encode() + _HEAD_END
    roots: dict[str, int] = {}
    numbers = (
        number for root, _, count in files.runs for number in [roots.setdefault(root, len(roots))] * count
    )
    for i, (root, content, records) in enumerate(
        zip(numbers, keyed.contents, keyed.records.tolist(), strict=True)
    ):
        line = {"root": root, "name": files.name(i), "content": content, "records": records}
        yield (b",\n" if i else b"") + json.dumps(line).encode()
    yield _END


def read_head(path: str) -> Head | None:
    """Return the head of a description, None if there is none that is whole and of this version."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            data = file.read()
        head = Head(**json.loads(data[: data.index(_HEAD_END)] + b"}"))
    except (OSError, ValueError, TypeError):
        return None
    return head if head.seekable_keys == _SCHEMA and data.endswith(_END) else None


def read_files(path: str) -> tuple[KeyedFile, ...] | None:
    """Return the files of a description, None if it does not list them."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            return tuple(KeyedFile(**described) for described in json.load(file)["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def descriptions(folder: str) -> list[str]:
    """Return the paths of the descriptions in an index folder, the newest first."""
    try:
        with os.scandir(folder) as files:
            found = [(file.stat().st_mtime_ns, file.path) for file in files if _OURS.fullmatch(file.name)]
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)]
