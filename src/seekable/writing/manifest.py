"""What a folder says of the files that are written there.

The manifest is written before the first file, so files without one were never written here. It is written
anew now and then while files are finished, and at the end: what it does not tell of is looked at itself.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from seekable.errors import CorruptState
from seekable.storage.files import write_atomically
from seekable.writing.shards import Shards

__all__ = ["MANIFEST", "Identity", "Manifest", "differences", "read_manifest", "write_manifest"]

MANIFEST = ".seekable-write.json"
"""Its name: one that no folder or glob that is opened is searched for."""

_SCHEMA = 1


class Identity(msgspec.Struct, frozen=True):
    """What decides which bytes are in which file."""

    pipeline: str
    """The fingerprint of the dataset."""

    records: int
    """How many records it has."""

    code: dict[str, str | None]
    """For each function of the pipeline by name the digest of its code; None if that cannot be told."""

    python: str
    """The minor version of Python, which these digests depend on."""

    format: str
    """What the files are."""

    suffix: str
    """What their names end with."""

    rows_per_file: int
    """How many records go into each."""

    options: dict[str, Any]
    """How they are written, as the user asked for it."""

    @property
    def shards(self) -> Shards:
        """The files."""
        return Shards(self.records, self.rows_per_file, self.suffix)


class Manifest(msgspec.Struct):
    """A manifest as it is in the file."""

    seekable_write: int
    """The version of what follows."""

    identity: Identity

    settled: str | None
    """What the format knows of the records."""

    finished: dict[int, tuple[int, int]]
    """The rows and bytes of files that are there."""


def new_manifest(identity: Identity, settled: str | None) -> Manifest:
    """Return the manifest of files of which none is there yet."""
    return Manifest(_SCHEMA, identity, settled, {})


def read_manifest(folder: str) -> Manifest | None:
    """Return the manifest of a folder; None if it has none.

    Raises:
        CorruptState: it cannot be read.
        OSError: the folder cannot be.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            manifest = msgspec.json.decode(file.read(), type=Manifest)
    except FileNotFoundError:
        return None
    except ValueError as error:
        message = (
            f"{path!r}, which says what the files beside it are, cannot be read ({error}): remove it and "
            f"them to write them again, or name another folder"
        )
        raise CorruptState(message) from error
    if manifest.seekable_write != _SCHEMA:
        message = (
            f"{path!r} has version {manifest.seekable_write}, and this seekable knows {_SCHEMA}: use the "
            f"version that wrote it, or name another folder"
        )
        raise CorruptState(message)
    return manifest


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Put a manifest in place of the one before."""
    text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
    write_atomically(os.path.join(folder, MANIFEST), text)


def differences(was: Identity, now: Identity, *, check_code: bool) -> list[str]:
    """Return in words what differs between the files that are there and those that are wanted.

    Example:
        >>> one = Identity("xxh3:0", 9, {}, "3.12", "jsonl", ".jsonl", 5, {"compression": None})
        >>> differences(one, msgspec.structs.replace(one, rows_per_file=6), check_code=True)
        ['rows_per_file was 5, is 6']
    """
    lines = []
    if was.pipeline != now.pipeline:
        lines.append(
            f"the dataset was {was.pipeline} of {was.records:,} records, "
            f"is {now.pipeline} of {now.records:,} records"
        )
    elif check_code:
        lines += _code_differences(was, now)
    if was.format != now.format:
        return [*lines, f"the format was {was.format}, is {now.format}"]
    if was.rows_per_file != now.rows_per_file:
        lines.append(f"rows_per_file was {was.rows_per_file}, is {now.rows_per_file}")
    for name in sorted(was.options.keys() | now.options.keys()):
        before, after = was.options.get(name), now.options.get(name)
        if before != after:
            lines.append(f"{name} was {_told(before)}, is {_told(after)}")
    return lines


def _code_differences(was: Identity, now: Identity) -> list[str]:
    lines = []
    for name in sorted(was.code.keys() & now.code.keys()):
        before, after = was.code[name], now.code[name]
        if None not in (before, after) and before != after:
            line = f"the code of {name} was {before}, is {after}"
            if was.python != now.python:
                line += f" (by Python {was.python} then and {now.python} now, whose code always differs)"
            lines.append(line)
    return lines


def _told(option: Any) -> str:
    return f"[{'; '.join(map(str, option))}]" if isinstance(option, list) else repr(option)
