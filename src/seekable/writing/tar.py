"""Tar files of samples, plain or compressed, in the form of WebDataset."""

from __future__ import annotations

import struct
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

import msgspec

from seekable.errors import UnsupportedFormat
from seekable.writing.compressed import checked_compression, one_file_compression, read_pieces, write_pieces
from seekable.writing.file_format import FileFormat
from seekable.writing.open_pieces import open_pieces
from seekable.writing.tar_archive import archive, end_mark
from seekable.writing.tar_samples import EncodedSample, EncodedSamples, encoded, members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.storage.compression import Compression
    from seekable.writing.file_format import Sample

__all__ = ["Tar", "tar"]

_LENGTH = struct.Struct("<Q")


def tar(compression: object) -> Tar:
    """Return the format of tar files, plain or compressed.

    Args:
        compression: ``"gz"``, ``"zst"``, or None.

    Raises:
        InvalidArgument: ``compression`` is something else.
        MissingDependency: ``compression`` is ``"zst"``, and zstandard is not installed.
    """
    return Tar(checked_compression(compression))


@dataclass(frozen=True, slots=True)
class Tar(FileFormat):
    """The format of tar files: some consecutive members for each record, ``KEY.FIELD``."""

    compression: Compression | None

    name: ClassVar[str] = "tar"
    takes_tables: ClassVar[bool] = False

    @property
    def way_out(self) -> str:
        """The advice for a record that is no sample."""
        return "make it one first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix: ``.tar``, ``.tar.gz`` or ``.tar.zst``."""
        return ".tar" if self.compression is None else f".tar.{self.compression}"

    @property
    def options(self) -> dict[str, Any]:
        """The compression, as the user gave it."""
        return {"compression": self.compression}

    def of_one_file(self, name: str) -> Self:
        """Return the format with the compression of the suffix, ``.tar.gz`` or ``.tar.zst`` or none."""
        return type(self)(
            one_file_compression(name, self.compression, suffixes=(".tar",), content="a tar file")
        )

    def settled(self, sample: Sample, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format unchanged: a sample does not depend on other records."""
        return self, None

    def write(self, file: BinaryIO, chunks: Iterator[Any], *, first: int) -> None:
        """Write the members of each record; a record without a key has its number as the key."""
        write_pieces(file, archive(members(chunks, first)), self.compression)

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write each sample as MessagePack, after its length in 8 bytes."""
        for records in chunks:
            for sample in encoded(records):
                packed = msgspec.msgpack.encode(sample)
                file.write(_LENGTH.pack(len(packed)))
                file.write(packed)

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the samples of pieces, one at a time."""
        with open_pieces(pieces) as files:
            for turn in turns:
                for number in turn.tolist():
                    file = files[number]
                    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                    yield EncodedSamples([msgspec.msgpack.decode(file.read(length), type=EncodedSample)])

    def rows_in(self, path: str) -> int | None:
        """Return the number of samples, None for a file that is not whole."""
        try:
            return _num_samples(_Content(read_pieces(path)))
        except (UnsupportedFormat, tarfile.TarError):
            return None


class _Content:
    """The content of a file as ``tarfile`` reads it, with what tells a whole archive from a damaged one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = bytearray()
        self.size = 0
        """The number of bytes so far."""
        self.used = 0
        """The number of bytes so far up to the last one that is not zero."""

    def read(self, count: int) -> bytes:
        """Return the next bytes, fewer than ``count`` at the end alone."""
        while len(self._held) < count:
            piece = next(self._pieces, None)
            if piece is None:
                break
            if significant := len(piece.rstrip(b"\0")):
                self.used = self.size + significant
            self.size += len(piece)
            self._held += piece
        found = bytes(self._held[:count])
        del self._held[:count]
        return found


def _num_samples(content: _Content) -> int | None:
    """Return the number of samples of an archive; None if it does not end as `archive` ends it."""
    count, before = 0, None
    with tarfile.open(fileobj=content, mode="r|") as opened:  # type: ignore[call-overload]
        for entry in opened:
            folder, slash, name = entry.name.rpartition("/")
            key = folder + slash + name.partition(".")[0]
            count, before = count + (key != before), key
        end: int = opened.offset
    while content.read(tarfile.RECORDSIZE):
        pass
    return count if content.used <= end and content.size == end + len(end_mark(end)) else None
