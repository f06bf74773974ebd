"""The folder of a write: its plan of files, its manifest, and the files that are there.

The manifest is written before the first file, so files in a folder without one were never written by this
package. It is written again now and then while files are finished, and at the end: the sizes of files that it
does not list yet are read from the files themselves.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable.errors import AccessDenied, CorruptState, DataNotFound, InvalidArgument
from seekable.formats.registry import SUFFIXES
from seekable.storage.files import TEMPORARY_SUFFIX, write_atomically
from seekable.storage.listing import find_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.writing.file_format import FileFormat


__all__ = [
    "LOCK",
    "MANIFEST",
    "Identity",
    "Manifest",
    "Shards",
    "Written",
    "differences",
    "finished",
    "made_folder",
    "read_manifest",
    "recorded",
    "refuse_others",
    "remove_all",
    "remove_torn",
    "unfinished_name",
    "write_manifest",
]


_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Shards:
    """The names and the rows of the files that a dataset is written to.

    There is at least one file, so that the folder of a dataset without records can be opened.

    Example:
        >>> shards = Shards(records=250, rows_per_file=100, suffix=".jsonl")
        >>> len(shards), shards.name(2), shards.rows(2)
        (3, 'part-00002-of-00003.jsonl', range(200, 250))
    """

    records: int
    """The number of records, holes included."""

    rows_per_file: int
    """The number of records of a file; the last file may have fewer."""

    suffix: str
    """The suffix of the names, with its dot."""

    def __len__(self) -> int:
        """Return the number of files."""
        return max(1, -(-self.records // self.rows_per_file))

    def name(self, number: int) -> str:
        """Return the name of a file."""
        width = max(_DIGITS, len(str(len(self))))
        return f"part-{number:0{width}}-of-{len(self):0{width}}{self.suffix}"

    @property
    def names(self) -> list[str]:
        """The names of all files, in the order of their rows."""
        return [self.name(number) for number in range(len(self))]

    def rows(self, number: int) -> range:
        """Return the rows of the dataset that a file holds."""
        first = number * self.rows_per_file
        return range(first, min(first + self.rows_per_file, self.records))


MANIFEST = ".seekable-write.json"
"""The file name of the manifest. It begins with a dot, so ``sk.open`` of the folder or of a glob skips it."""

_SCHEMA = 1


class Identity(msgspec.Struct, frozen=True):
    """The facts that decide the bytes of each file."""

    pipeline: str
    """The fingerprint of the dataset."""

    records: int
    """The number of records of the dataset."""

    code: dict[str, str | None]
    """By name, the digest of the code of each function of the pipeline; None if it has no code to digest."""

    python: str
    """The minor version of Python: digests of code differ from one to the next."""

    format: str
    """The name of the format of the files."""

    suffix: str
    """The suffix of the names of the files, with its dot."""

    rows_per_file: int
    """The number of records of a file."""

    options: dict[str, Any]
    """The options of the format, as the user gave them."""

    @property
    def shards(self) -> Shards:
        """The names and the rows of the files."""
        return Shards(self.records, self.rows_per_file, self.suffix)


class Manifest(msgspec.Struct):
    """The content of a manifest file."""

    seekable_write: int
    """The version of the manifest's form."""

    identity: Identity

    settled: str | None
    """The text of the format about the records, a schema for instance; None if it needs none."""

    finished: dict[int, tuple[int, int]]
    """By number, the rows and bytes of the files that are finished."""


def new_manifest(identity: Identity, settled: str | None) -> Manifest:
    """Return a manifest without finished files."""
    return Manifest(_SCHEMA, identity, settled, {})


def read_manifest(folder: str) -> Manifest | None:
    """Return the manifest of a folder; None if it has none.

    Raises:
        CorruptState: the manifest cannot be read.
        OSError: the folder cannot be read.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            manifest = msgspec.json.decode(file.read(), type=Manifest)
    except FileNotFoundError:
        return None
    except ValueError as error:
        message = (
            f"{path!r}, the manifest of the files beside it, cannot be read ({error}): remove it and "
            f"them to write them again, or name another folder"
        )
        raise CorruptState(message) from error
    if manifest.seekable_write != _SCHEMA:
        message = (
            f"{path!r} has version {manifest.seekable_write}, and this seekable reads version "
            f"{_SCHEMA}: use the seekable that wrote it, or name another folder"
        )
        raise CorruptState(message)
    return manifest


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write a manifest atomically, in place of the one before."""
    text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
    write_atomically(os.path.join(folder, MANIFEST), text)


def differences(was: Identity, now: Identity, *, check_code: bool) -> list[str]:
    """Return the differences of the files in a folder and the files to write, a line of text for each.

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


@dataclass(frozen=True, slots=True)
class Written:
    """The result of ``write_jsonl`` and ``write_parquet``: the files with all records of a dataset.

    Example:
        >>> Written(("out/part-00000-of-00001.jsonl",), rows=3, holes=0, bytes=27, kept=0).rows
        3
    """

    paths: tuple[str, ...]
    """The absolute paths of the files, in the order of their rows."""

    rows: int
    """The number of rows of all files."""

    holes: int
    """The number of records that were ``sk.HOLE`` and were left out."""

    bytes: int
    """The number of bytes of all files."""

    kept: int
    """The number of files that an earlier call had written, and that were kept."""


LOCK = ".seekable-write.lock"

_TORN = re.compile(
    rf"\.part-\d+-of-\d+(\.[a-z]+)+\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
    rf"|{re.escape(MANIFEST)}\.[0-9a-f]{{16}}{re.escape(TEMPORARY_SUFFIX)}"
)


def unfinished_name(name: str, token: str) -> str:
    """Return the name of a file while it is written; it begins with a dot, so ``sk.open`` skips it.

    Example:
        >>> unfinished_name("part-00000-of-00001.jsonl", "0123456789abcdef")
        '.part-00000-of-00001.jsonl.0123456789abcdef.tmp'
    """
    return f".{name}.{token}{TEMPORARY_SUFFIX}"


def made_folder(path: str) -> None:
    """Make a folder and its parents, unless they exist.

    Raises:
        InvalidArgument: the path, or a parent, is a file.
        AccessDenied: this user may not make the folder, or not write into it.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        message = f"{path!r} cannot be a folder: there is a file of that name, or of one above it"
        raise InvalidArgument(message) from None
    except PermissionError as error:
        raise AccessDenied(f"the folder {path!r} cannot be made: {error}; name another one") from None
    if not os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        message = f"the folder {path!r} cannot be written by this user (uid {os.geteuid()}): name another one"
        raise AccessDenied(message)


def refuse_others(path: str, ours: Iterable[str]) -> None:
    """Raise an error for a folder with other data files, which ``sk.open`` of the folder would read too.

    Args:
        path: the folder.
        ours: the names of the files that were, or are to be, written there.

    Raises:
        InvalidArgument: the folder has another data file.
    """
    try:
        runs = find_files(path, suffixes={*SUFFIXES, ".parquet"})
    except DataNotFound:
        return
    others = sorted({name for run in runs for name in run.names} - set(ours))
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        message = (
            f"the folder {path!r} holds data that was not written by such a call ({others[0]!r}{more}): "
            f"opened as a whole it would be more than the dataset. Name a new folder, or one without data"
        )
        raise InvalidArgument(message)


def recorded(path: str, manifest: Manifest) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of the files that a manifest lists and that still have that size."""
    shards = manifest.identity.shards
    return {
        number: (rows, size)
        for number, (rows, size) in manifest.finished.items()
        if 0 <= number < len(shards) and _size(os.path.join(path, shards.name(number))) == size
    }


def finished(path: str, manifest: Manifest, form: FileFormat) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of all files in the folder that are whole, by number.

    A file gets its name when it is complete. It is read here to find out if it was damaged later.
    """
    shards, there = manifest.identity.shards, recorded(path, manifest)
    for name in set(os.listdir(path)) & set(shards.names):
        number = int(name.split("-")[1])
        # A recorded file of another size was damaged after it was written.
        if number in manifest.finished:
            continue
        file = os.path.join(path, name)
        rows = form.rows_in(file)
        if rows is not None and rows <= len(shards.rows(number)):
            there[number] = rows, os.path.getsize(file)
    return dict(sorted(there.items()))


def remove_torn(path: str) -> None:
    """Remove the unfinished files of killed processes. The caller holds the lock, so nobody else writes."""
    for name in os.listdir(path):
        if _TORN.fullmatch(name):
            os.unlink(os.path.join(path, name))


def remove_all(path: str, shards: Shards) -> None:
    """Remove the files that have the names of ``shards``."""
    for name in set(os.listdir(path)) & set(shards.names):
        os.unlink(os.path.join(path, name))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
