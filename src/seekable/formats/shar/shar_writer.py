"""Shar folders of Lhotse are written here: cut by cut with ``sk.SharWriter``, and as a format."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import warnings
import zlib
from array import array
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn, Self, final

import numpy as np

from seekable._arguments import checked_count, checked_flag, explains_keywords
from seekable._other_words import STORAGE
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.file_format import UnwritableRecord
from seekable.formats.lines.jsonl_writer import json_lines
from seekable.formats.shar.shar_cuts import EncodedCut, UnwritableCut, encoded_cut
from seekable.formats.shar.shar_layout import SharLayout, checked_layout
from seekable.formats.tar.header import BLOCK_BYTES
from seekable.formats.tar.samples import SampleRule
from seekable.formats.tar.tar_writer import RECORD_BYTES, end_mark, member, samples_in
from seekable.storage.addresses import shown
from seekable.storage.compression import WITH_HEADER
from seekable.storage.files import create_new
from seekable.storage.paths import output_of, output_path
from seekable.writing.encoded_pieces import EncodedFormat, EncodedRecords
from seekable.writing.target import made_folder, unfinished_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    import msgspec

    from seekable.formats.shar.shar_layout import SharLayout
    from seekable.storage.access import Storage

__all__ = ["SharFormat", "SharShard", "SharWriter", "shar"]


_SHARD_SIZE = 1000


@final
class SharWriter:
    """Writes cuts and their payloads as a Shar folder of Lhotse, one cut at a time.

    The folder has ``cuts.000000.jsonl.gz`` and a file for each field, such as ``recording.000000.tar``, for
    each shard of 1,000 cuts, and Lhotse's ``.idx`` beside each that is not compressed. Lhotse and
    ``sk.open("shar:FOLDER")`` read it from any place. The files of a shard appear when all of them are whole,
    the cuts last.

    A cut is a dict, the JSON of Lhotse's cuts with each payload under ``"data"`` of its manifest, as
    ``sk.open("shar:...")`` delivers it; or a Cut object of Lhotse. A payload is encoded bytes, an array, or
    for audio a tuple of samples, of shape (frames,) or (frames, channels), and the sampling rate. With such a
    tuple, ``{"id": "a", "recording": {"data": (samples, rate)}}`` is enough. A dict without payload is loaded
    by Lhotse. Bytes that have the kind of the field already stay as they are, if the cut is the whole
    recording.

    Use it in a ``with`` statement. Where that ends with an error, the unfinished shard is dropped.

    Args:
        folder: the folder, which is made if it does not exist; or its address in a store.
        fields: the fields to write, each with its kind: ``"wav"``, ``"flac"``, ``"mp3"``, ``"opus"`` or
            ``"original"`` for audio, ``"numpy"`` or ``"lilcom"`` for features and arrays, ``"jsonl"`` for
            values of JSON. Fields other than ``recording`` and ``features`` are those in ``custom``. A cut
            may lack any of them.
        shard_size: the cuts of a shard; None for one shard, whose files have no number.
        warn_unused_fields: False to say nothing of audio, features and arrays of a cut that ``fields`` does
            not name. The cut is written with their manifests as they are.
        compress_jsonl: False to write JSON lines as they are, from which a cut is read without decompression.
        create_index: False to write no ``.idx`` files. Compressed files have none.
        include_cuts: False to write the fields alone.
        shard_suffix: of one shard (``shard_size=None``), what follows the name of each field, such as
            ``".part-3"``; so several writers can fill one folder.
        shard_offset: the number of the first shard, for the same.
        overwrite: True to remove the shards of these fields that are there, from the first number on.
        storage: how the store is reached, ``sk.Storage(options=...)``, if the folder is an address.

    Raises:
        WrongType, InvalidArgument: an argument breaks a rule, or the folder has such shards already.
        AccessDenied: the folder cannot be written.

    Example:
        >>> import numpy as np, pathlib, tempfile, seekable as sk
        >>> noise = np.random.default_rng(0).normal(0, 0.1, 8000).astype("float32")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with sk.SharWriter(folder, {"recording": "flac"}) as writer:
        ...         writer.write({"id": "a", "recording": {"data": (noise, 16000)}})
        ...     sorted(path.name for path in pathlib.Path(folder).glob("*.000000.*"))[:2]
        ['cuts.000000.jsonl.gz', 'recording.000000.tar']
    """

    @explains_keywords(STORAGE)
    def __init__(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        fields: Mapping[str, str],
        *,
        shard_size: int | None = _SHARD_SIZE,
        warn_unused_fields: bool = True,
        compress_jsonl: bool = True,
        create_index: bool = True,
        include_cuts: bool = True,
        shard_suffix: str | None = None,
        shard_offset: int = 0,
        overwrite: bool = False,
        storage: Storage | None = None,
    ) -> None:
        if not isinstance(folder, str | os.PathLike):
            message = f"folder must be the path of a folder (got {folder!r} of type {type(folder).__name__})"
            raise WrongType(message)
        self._layout = checked_layout(
            fields, compress_jsonl=compress_jsonl, create_index=create_index, include_cuts=include_cuts
        )
        self._size = None if shard_size is None else checked_count("shard_size", shard_size, least=1)
        self._number = checked_count("shard_offset", shard_offset, least=0)
        self._first = self._number
        self._suffix = _checked_suffix(shard_suffix, self._size)
        self._warns = checked_flag("warn_unused_fields", warn_unused_fields)
        self._unused: set[str] = set()
        """The fields that were warned of."""
        self._folder = output_path(folder, storage)
        self._overwrite = checked_flag("overwrite", overwrite)
        self._shard: _WholeShard | None = None
        self._cuts = 0
        self._is_closed = False
        made_folder(self._folder)
        self._clear()

    def write(self, cut: Any) -> None:
        """Write a cut after those before it.

        Raises:
            WrongType: the cut cannot be written; the message has its id and the field. It is left out, and
                the next one can be written.
            MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
            InvalidArgument: the writer is closed.
            OSError: the disk is full; the shards that are finished stay.
        """
        if self._is_closed:
            message = f"the writer of {shown(self._folder)!r} is closed: make another one"
            raise InvalidArgument(message)
        try:
            encoded = encoded_cut(cut, self._layout)
        except UnwritableCut as error:
            raise WrongType(f"{error}") from error.__cause__
        self._warn(encoded)
        if self._shard is None:
            self._shard = _WholeShard(self._folder, self._layout, self._end_of(self._number))
        try:
            self._shard.add(encoded)
        except BaseException:
            self._drop()
            raise
        self._cuts += 1
        if self._cuts == self._size:
            self._finish()

    def close(self) -> None:
        """Finish the last shard. A closed writer stays closed."""
        self._is_closed = True
        if self._shard is not None:
            self._finish()

    @property
    def output_paths(self) -> dict[str, list[str]]:
        """The paths of all finished files by field, in the order of shards."""
        numbers = range(self._first, self._number)
        return {
            pattern.partition(".")[0]: [
                os.path.join(self._folder, shard_name(pattern, self._end_of(number))) for number in numbers
            ]
            for pattern in self._layout.contents
        }

    def __enter__(self) -> Self:
        """Return the writer itself; files are made with the first cut."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the writer; after an error, drop the unfinished shard."""
        if kind is None:
            self.close()
        else:
            self._is_closed = True
            self._drop()

    def _end_of(self, number: int) -> str:
        """Return what follows the names of fields in the files of a shard."""
        return self._suffix or "" if self._size is None else f".{number:06d}"

    def _warn(self, cut: EncodedCut) -> None:
        """Warn, once for each field, of data of a cut that is not written."""
        unused = [field for field in cut.unused if field not in self._unused]
        if unused and self._warns:
            self._unused.update(unused)
            names = ", ".join(map(repr, unused))
            message = (
                f"cut {cut.id!r} has {names}, which fields= does not name: the data is not written, and the "
                f"cut refers to where it lies. Name it, or say warn_unused_fields=False"
            )
            warnings.warn(message, UserWarning, stacklevel=3)

    def _finish(self) -> None:
        assert self._shard is not None
        try:
            self._shard.finish()
        finally:
            self._drop()
        self._number += 1
        self._cuts = 0

    def _drop(self) -> None:
        if self._shard is not None:
            self._shard.drop()
            self._shard = None

    def _clear(self) -> None:
        """Remove the shards that are in the way, the cuts first, or refuse them."""
        there = set(output_of(self._folder).names(self._folder))
        for pattern in self._layout.patterns:
            ending = r"(?:\.(?P<number>\d+))?" if self._suffix is None else re.escape(self._suffix)
            field, suffix = pattern.split(".%06d")
            lines = r"(?:\.gz|\.idx)?" if suffix.startswith(".jsonl") else ""  # Of either kind.
            suffix = ".jsonl" if lines else suffix
            known = re.compile(re.escape(field) + ending + re.escape(suffix) + lines)
            for name in sorted(there):
                found = known.fullmatch(name)
                number = found and found.groupdict().get("number")
                if found is None or (number is not None and int(number) < self._first):
                    continue
                if not self._overwrite:
                    message = (
                        f"{shown(self._folder)!r} holds {name!r} already: name another folder, remove it "
                        f"with overwrite=True, or begin behind its shards with shard_offset="
                    )
                    raise InvalidArgument(message)
                output_of(self._folder).delete(os.path.join(self._folder, name))


def shard_name(pattern: str, ending: str) -> str:
    """Return the file name of a shard, with an ending in place of ``.%06d``.

    Example:
        >>> shard_name("cuts.%06d.jsonl", ".000003"), shard_name("cuts.%06d.jsonl", "")
        ('cuts.000003.jsonl', 'cuts.jsonl')
    """
    return pattern.replace(".%06d", ending)


def _checked_suffix(suffix: object, shard_size: int | None) -> str | None:
    """Return the suffix of the only shard.

    Raises:
        InvalidArgument: there are several shards, or the suffix cannot be part of a name.
    """
    if suffix is None:
        return None
    if shard_size is not None:
        message = (
            f"shard_suffix= is for one shard (got {suffix!r} and shard_size={shard_size}): say "
            f"shard_size=None, or leave it out, because shards have numbers"
        )
        raise InvalidArgument(message)
    if not isinstance(suffix, str) or set(suffix) & set("/\\\0%"):
        message = f"shard_suffix must be a part of a file name, such as '.part-3' (got {suffix!r})"
        raise InvalidArgument(message)
    return suffix


@final
class _WholeShard:
    """The files of one shard under temporary names, which all get their names at the end."""

    def __init__(self, folder: str, layout: SharLayout, ending: str) -> None:
        token = secrets.token_hex(8)
        scratch = output_of(folder).scratch(folder)
        self._paths: list[tuple[str, str]] = []
        """For each file its temporary path and its path."""
        self._files: list[BinaryIO] = []
        try:
            for pattern in layout.patterns:
                name = shard_name(pattern, ending)
                temporary = os.path.join(scratch, unfinished_name(name, token))
                self._files.append(create_new(temporary))
                self._paths.append((temporary, os.path.join(folder, name)))
        except BaseException:
            self.drop()
            raise
        self._shard = SharShard(layout, self._files)

    def add(self, cut: EncodedCut) -> None:
        """Write a cut and its fields to the files of the shard."""
        self._shard.add(cut)

    def finish(self) -> None:
        """Sync all files, and rename them, those of the cuts last."""
        self._shard.end()
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
            file.close()
        for temporary, path in reversed(self._paths):
            output_of(path).place(temporary, path)

    def drop(self) -> None:
        """Remove the files that have no name yet."""
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        for temporary, _ in self._paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


_GZIP_LEVEL = 6


@final
class SharShard:
    """The files of a shard, open for writing; the caller syncs and closes them.

    Args:
        layout: the fields, and the form of the files.
        files: the files in the order of ``layout.patterns``.
    """

    def __init__(self, layout: SharLayout, files: Sequence[BinaryIO]) -> None:
        contents = layout.contents
        self._sinks = [
            _Pairs(file) if name.endswith(".tar") else _Lines(file, compressed=name.endswith(".gz"))
            for name, file in zip(contents, files, strict=False)
        ]
        indexed = [sink for name, sink in zip(contents, self._sinks, strict=True) if layout.is_indexed(name)]
        self._indexes = list(zip(indexed, files[len(contents) :], strict=True))

    def add(self, cut: EncodedCut) -> None:
        """Write a cut after those before it."""
        for sink, entry in zip(self._sinks, cut.entries, strict=True):
            sink.add(entry)

    def end(self) -> None:
        """Write the ends of all files, and the indexes."""
        for sink in self._sinks:
            sink.end()
        for sink, index in self._indexes:
            # Unsigned 64 bits, little-endian: the first byte of each record, and the end.
            index.write(np.array([*sink.starts, sink.end_in_index], dtype="<u8").tobytes())


@final
class _Pairs:
    """A tar file with two members for each cut."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.starts = array("Q")
        self.size = 0
        self.end_in_index = 0

    def add(self, entry: list[tuple[str, bytes]]) -> None:
        self.starts.append(self.size)
        for name, content in entry:
            for piece in member(name, content):
                self._write(piece)

    def end(self) -> None:
        # Lhotse notes what it had read, in records, when it saw the first block of the end mark.
        self.end_in_index = -(-(self.size + BLOCK_BYTES) // RECORD_BYTES) * RECORD_BYTES
        self._write(end_mark(self.size))

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self.size += len(piece)


@final
class _Lines:
    """A file of JSON lines, plain or compressed."""

    def __init__(self, file: BinaryIO, *, compressed: bool) -> None:
        self._file = file
        # No name and no time in the header: the same lines make the same bytes.
        self._gzip = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, WITH_HEADER) if compressed else None
        self.starts = array("Q")
        self.size = 0

    def add(self, entry: list[tuple[str, bytes]]) -> None:
        self.starts.append(self.size)
        for _, line in entry:
            self._file.write(line if self._gzip is None else self._gzip.compress(line))
            self.size += len(line)

    def end(self) -> None:
        if self._gzip is not None:
            self._file.write(self._gzip.flush())

    @property
    def end_in_index(self) -> int:
        """The number of bytes of all lines."""
        return self.size


_OFFSET_BYTES = 8


def shar(
    fields: Mapping[str, str],
    *,
    shard_size: int = _SHARD_SIZE,
    compress_jsonl: bool = False,
    create_index: bool = True,
) -> SharFormat:
    """Return the format of a Shar folder; see ``Dataset.write_shar``.

    Args:
        fields: the fields by name, each with its kind; see ``sk.SharWriter``.
        shard_size: the records of a shard.
        compress_jsonl: True to compress JSON lines with gzip.
        create_index: True to write ``.idx`` files.

    Raises:
        WrongType, InvalidArgument: as `checked_layout`.
    """
    size = checked_count("shard_size", shard_size, least=1)
    return SharFormat(
        checked_layout(fields, compress_jsonl=compress_jsonl, create_index=create_index, include_cuts=True),
        size,
    )


@dataclass(frozen=True, slots=True)
class SharFormat(EncodedFormat):
    """The format of Shar folders."""

    layout: SharLayout

    shard_size: int
    """The records of a shard, where the call that writes them does not say it."""

    name: ClassVar[str] = "shar"
    record: ClassVar[type[msgspec.Struct]] = EncodedCut
    hidden_suffix: ClassVar[str] = ".idx"

    @property
    def way_out(self) -> str:
        """The advice for a record that is not a cut."""
        return "make it a cut that fits first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix of the files of cuts: ``.jsonl`` or ``.jsonl.gz``."""
        return ".jsonl.gz" if self.layout.compress_jsonl else ".jsonl"

    @property
    def rows_per_file(self) -> int:
        """The records of a shard."""
        return self.shard_size

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of a shard's file names, the cuts first."""
        return self.layout.patterns

    @property
    def options(self) -> dict[str, Any]:
        """The fields and the flags, as the user gave them."""
        return self.layout.options

    def of_one_file(self, name: str) -> NoReturn:
        """Raise an error, as a Shar folder is not a file."""
        message = (
            f"a Shar folder has several files: name a folder, without the suffix of a file (got {name!r})"
        )
        raise InvalidArgument(message)

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the cuts of one shard, and their fields beside them."""
        shard = SharShard(self.layout, [file, *beside])
        for chunk in chunks:
            for cut in chunk.records if isinstance(chunk, EncodedRecords) else self._encoded(chunk):
                shard.add(cut)
        shard.end()

    def encoded(self, chunks: Iterator[Any]) -> Iterator[EncodedCut]:
        """Yield cuts, each encoded with its fields."""
        return chain.from_iterable(map(self._encoded, chunks))

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of cuts, None if a file of the shard is damaged."""
        rows = _records_in(path)
        return rows if rows is not None and all(_holds(each, rows) for each in beside) else None

    def _encoded(self, records: Sequence[Any]) -> Iterator[EncodedCut]:
        for place, record in enumerate(records):
            try:
                yield encoded_cut(record, self.layout)
            except UnwritableCut as error:
                raise UnwritableRecord(len(records) - place, str(error)) from error.__cause__


def _holds(path: str, rows: int) -> bool:
    """Return True if a file is whole, and has something for each cut."""
    if path.endswith(".idx"):
        return os.path.getsize(path) == (rows + 1) * _OFFSET_BYTES
    return _records_in(path) == rows


def _records_in(path: str) -> int | None:
    if path.endswith(".tar"):
        return samples_in(path, SampleRule(pairs=True))
    return json_lines().rows_in(path)
