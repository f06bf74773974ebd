"""The manifest of a write: what decides the bytes of the files, and the files that are finished.

The manifest is written before the first file, so files in a folder without one were never written by this
package. It is written again now and then while files are finished, and at the end: the sizes of files that it
does not list yet are read from the files themselves.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import msgspec

from seekable.errors import CorruptState, IndexStale, InvalidArgument
from seekable.state.canonical import decode_names, encode_names
from seekable.storage.addresses import is_address, shown
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.formats.file_format import FileFormat
    from seekable.writing.target import Target

__all__ = [
    "MANIFEST_SECONDS",
    "Identity",
    "Manifest",
    "ManifestFile",
    "Parts",
    "Shards",
    "Written",
    "differences",
    "finished",
    "new_manifest",
    "read_manifest",
    "recorded",
    "rows_in",
    "total_size",
]

MANIFEST_SECONDS = 2.0
"""The least seconds between two writes of the manifest while files are written."""

_DIGITS = 5


class _WriteNames(ABC):
    """The names of files that one call writes, and of those that belong to each."""

    __slots__ = ()

    patterns: tuple[str, ...]

    @abstractmethod
    def name(self, number: int) -> str:
        """Return the name of a file."""

    @abstractmethod
    def number(self, name: str) -> int | None:
        """Return the number in the name of a file; None if no file has this name."""

    def beside(self, number: int) -> list[str]:
        """Return the names of the files that belong to a file."""
        return [pattern % number for pattern in self.patterns[1:]]

    def holds(self, name: str) -> bool:
        """Return True for the name of a file, or of one that belongs to it."""
        others = self.patterns[1:]
        return self.number(name) is not None or any(re.fullmatch(_expression(each), name) for each in others)

    def _number_in(self, name: str, otherwise: str) -> int:
        """Return the number in a name by the first pattern, or without patterns by an expression; else 0."""
        found = re.fullmatch(_expression(self.patterns[0]) if self.patterns else otherwise, name)
        return int(found[1]) if found else 0


def _expression(pattern: str) -> str:
    return re.escape(pattern).replace("%06d", r"(\d{6,})")


@final
@dataclass(frozen=True, slots=True)
class Shards(_WriteNames):
    """The names and the rows of the files that a dataset is written to.

    There is at least one file, so that the folder of a dataset without records can be opened.

    Example:
        >>> shards = Shards(records=250, rows_per_file=100, suffix=".jsonl")
        >>> len(shards), shards.name(2), shards.rows(2)
        (3, 'part-00002-of-00003.jsonl', range(200, 250))
    """

    records: int
    """The number of records, holes included."""

    rows_per_file: int | None
    """The number of records of a file; the last file may have fewer. None for one file of all records."""

    suffix: str
    """The suffix of the names, with its dot."""

    file: str | None = None
    """The name of the only file; None for names with numbers."""

    patterns: tuple[str, ...] = ()
    """The patterns of the names of files that belong together; empty where files are single."""

    def __len__(self) -> int:
        """Return the number of files."""
        return 1 if self.rows_per_file is None else max(1, -(-self.records // self.rows_per_file))

    def name(self, number: int) -> str:
        """Return the name of a file."""
        if self.file is not None:
            return self.file
        if self.patterns:
            return self.patterns[0] % number
        width = max(_DIGITS, len(str(len(self))))
        return f"part-{number:0{width}}-of-{len(self):0{width}}{self.suffix}"

    @property
    def names(self) -> list[str]:
        """The names of all files, in the order of their rows."""
        return [self.name(number) for number in range(len(self))]

    def rows(self, number: int) -> range:
        """Return the rows of the dataset that a file holds."""
        if self.rows_per_file is None:
            return range(self.records)
        first = number * self.rows_per_file
        return range(first, min(first + self.rows_per_file, self.records))

    def number(self, name: str) -> int | None:
        """Return the number in the name of a file; None if no file has this name."""
        expression = rf"part-(\d+)-of-\d+{re.escape(self.suffix)}"
        number = self._number_in(name, expression)
        return number if number < len(self) and self.name(number) == name else None


@final
@dataclass(frozen=True, slots=True)
class Parts(_WriteNames):
    """The names of the files that a stream is written to; their number is not known before the end.

    Example:
        >>> Parts(".jsonl").name(2), Parts(".jsonl").number("part-00002.jsonl")
        ('part-00002.jsonl', 2)
    """

    suffix: str
    """The suffix of the names, with its dot."""

    file: str | None = None
    """The name of the only file; None for names with numbers."""

    patterns: tuple[str, ...] = ()
    """The patterns of the names of files that belong together; empty where files are single."""

    def name(self, number: int) -> str:
        """Return the name of a file."""
        if self.patterns:
            return self.patterns[0] % number
        return f"part-{number:0{_DIGITS}}{self.suffix}" if self.file is None else self.file

    def number(self, name: str) -> int | None:
        """Return the number in the name of a file; None if no file has this name."""
        number = self._number_in(name, rf"part-(\d+){re.escape(self.suffix)}")
        return number if self.name(number) == name else None


_SCHEMA = 1


class Identity(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts that decide the bytes of each file."""

    pipeline: str
    """The fingerprint of the dataset or of the stream."""

    records: int | None
    """The number of records of the dataset; None for a stream, which does not say it."""

    code: dict[str, str | None]
    """By name, the digest of the code of each function of the pipeline; None if it has no code to digest."""

    python: str
    """The minor version of Python: digests of code differ from one to the next."""

    format: str
    """The name of the format of the files."""

    suffix: str
    """The suffix of the names of the files, with its dot."""

    rows_per_file: int | None
    """The number of records of a file; None for one file of all records."""

    options: dict[str, Any]
    """The options of the format, as the user gave them."""

    lanes: int | None = None
    """The number of lanes of the stream; None for a dataset."""

    patterns: tuple[str, ...] = ()
    """The patterns of the names of files that belong together; empty where files are single."""

    ending: tuple[str, ...] = ()
    """The names of the files that are written when all others are whole; see `Ending.names`."""

    def names(self, target: Target) -> Shards | Parts:
        """Return the names of the files."""
        if self.records is None:
            return Parts(self.suffix, target.file, self.patterns)
        return Shards(self.records, self.rows_per_file, self.suffix, target.file, self.patterns)


class Manifest(msgspec.Struct, omit_defaults=True):
    """The content of a manifest file."""

    seekable_write: int
    """The version of the manifest's form."""

    identity: Identity

    settled: str | None
    """The text of the format about the records, a schema for instance; None if it needs none."""

    finished: dict[int, tuple[int, int]]
    """By number, the rows and bytes of the files that are finished."""

    files: int | None = None
    """Of a stream, the number of files; None until it is known."""

    holes: int = 0
    """Of a stream, the number of records that were left out of all files; 0 until ``files`` is known."""

    run: str = ""
    """Of an address, a text by which a machine recognises what it keeps for these files; empty otherwise."""

    writer: str = ""
    """Of an address, a text for the call that wrote the manifest; empty otherwise."""


def new_manifest(identity: Identity, settled: str | None, *, run: str) -> Manifest:
    """Return a manifest without finished files."""
    return Manifest(_SCHEMA, identity, settled, {}, run=run)


def read_manifest(path: str) -> Manifest | None:
    """Return the manifest at a path; None if there is none.

    Raises:
        CorruptState: the manifest cannot be read.
        OSError: the folder cannot be read.
    """
    try:
        manifest = decode_names(output_of(path).read(path), Manifest)
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


@final
class ManifestFile:
    """The manifest file of one call, which holds the lock. It is made before the manifest is read.

    The lock is of this machine. In a store each manifest replaces exactly the one before it, so that of two
    machines that write to one address one gets an error.
    """

    def __init__(self, path: str) -> None:
        """Look at the manifest that is there.

        Args:
            path: the path or the address of the manifest.
        """
        self._path = path
        self._output = output_of(path)
        self._there = self._output.seen(path)
        self._writer = secrets.token_hex(8) if is_address(path) else ""

    def write(self, manifest: Manifest) -> None:
        """Write the manifest at once, in place of the one before; files are listed in the order of numbers.

        Raises:
            InvalidArgument: another machine writes to the same address.
        """
        ordered = dict(sorted(manifest.finished.items()))
        whole = msgspec.structs.replace(manifest, finished=ordered, writer=self._writer)
        data = encode_names(whole, indented=True)
        try:
            self._there = self._output.replace(self._path, data, old=self._there)
        except (FileExistsError, IndexStale) as error:
            message = (
                f"another process, perhaps on another machine, writes the files beside {shown(self._path)!r} "
                f"at the same time: let one of the two end, then call again, which keeps finished files "
                f"({error})"
            )
            raise InvalidArgument(message) from None


def differences(was: Identity, now: Identity, *, check_code: bool) -> list[str]:
    """Return the differences of the files in a folder and the files to write, a line of text for each.

    Example:
        >>> one = Identity("xxh3:0", 9, {}, "3.12", "jsonl", ".jsonl", 5, {"compression": None})
        >>> differences(one, msgspec.structs.replace(one, rows_per_file=6), check_code=True)
        ['rows_per_file was 5, is 6']
    """
    lines = []
    if was.pipeline != now.pipeline:
        lines.append(f"the {_subject(was, now)} was {_pipeline(was)}, is {_pipeline(now)}")
    elif check_code:
        lines += _code_differences(was, now)
    if was.format != now.format:
        return [*lines, f"the format was {was.format}, is {now.format}"]
    if was.rows_per_file != now.rows_per_file:
        size = "shard_size" if now.format == "shar" else "rows_per_file"
        lines.append(f"{size} was {was.rows_per_file}, is {now.rows_per_file}")
    for name in sorted(was.options.keys() | now.options.keys()):
        before, after = was.options.get(name), now.options.get(name)
        if before != after:
            lines.append(f"{name} was {_told(before)}, is {_told(after)}")
    return lines


def _subject(was: Identity, now: Identity) -> str:
    kinds = {"stream" if each.records is None else "dataset" for each in (was, now)}
    return kinds.pop() if len(kinds) == 1 else "pipeline"


def _pipeline(identity: Identity) -> str:
    size = f"in {identity.lanes} lanes" if identity.records is None else f"of {identity.records:,} records"
    return f"{identity.pipeline} {size}"


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
    """The result of ``write_parquet`` and its like: the files with all records of a pipeline.

    Example:
        >>> Written(("out/part-00000-of-00001.jsonl",), rows=3, holes=0, bytes=27, kept=0).rows
        3
    """

    paths: tuple[str, ...]
    """The absolute paths of the files, in the order of their rows; of Shar, those of the cuts."""

    rows: int
    """The number of rows of all files."""

    holes: int
    """The number of records that were ``sk.HOLE`` and were left out."""

    bytes: int
    """The number of bytes of all files."""

    kept: int
    """The number of files that an earlier call had written, and that were kept."""


def recorded(target: Target, manifest: Manifest) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of the files that a manifest lists and that still have that size."""
    names = manifest.identity.names(target)
    sizes = target.output.sizes(target.folder) if target.mounts else None

    def size_of(number: int) -> int | None:
        files = (names.name(number), *names.beside(number))
        if sizes is None:
            return total_size(map(target.join, files))
        return sum(sizes[name] for name in files) if sizes.keys() >= set(files) else None

    return {
        number: (rows, size)
        for number, (rows, size) in manifest.finished.items()
        if number >= 0 and size_of(number) == size
    }


def finished(target: Target, manifest: Manifest, form: FileFormat) -> dict[int, tuple[int, int]]:
    """Return the rows and bytes of all files of a dataset that are whole, by number.

    A file gets its name when it is complete. It is read here to find out if it was damaged later.
    """
    shards, there = manifest.identity.names(target), recorded(target, manifest)
    assert isinstance(shards, Shards)
    for name in set(target.output.names(target.folder)):
        number = shards.number(name)
        # A recorded file of another size was damaged after it was written.
        if number is None or number in manifest.finished:
            continue
        file, beside = target.join(name), [target.join(each) for each in shards.beside(number)]
        size = total_size([file, *beside])
        rows = None if size is None else rows_in(form, file, beside)
        if size is not None and rows is not None and rows <= len(shards.rows(number)):
            there[number] = rows, size
    return dict(sorted(there.items()))


def rows_in(form: FileFormat, path: str, beside: Sequence[str]) -> int | None:
    """Return the number of rows of a file that was written, also in a store; None if it is damaged.

    Args:
        form: the format of the file.
        path: the path of the file.
        beside: the paths of the files that belong to it, which exist.
    """
    with output_of(path).local([path, *beside]) as (copy, *others):
        return form.rows_in(copy, beside=others)


def total_size(paths: Iterable[str]) -> int | None:
    """Return how many bytes some files have; None if one of them is not there."""
    sizes = [output_of(path).size(path) for path in paths]
    found = [size for size in sizes if size is not None]
    return sum(found) if len(found) == len(sizes) else None
