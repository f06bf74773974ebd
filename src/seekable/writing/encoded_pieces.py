"""The pieces that lanes write: opened together, and records in them as MessagePack.

Each record comes after its length in 8 bytes, little-endian.
"""

from __future__ import annotations

import contextlib
import io
import struct
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Generic, TypeVar

import msgspec

from seekable.formats.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EncodedFormat", "EncodedRecords", "open_pieces"]

_MOST_OPEN = 256
"""The most pieces that are open files at once: a process may have 1,024 of them in most systems."""


@contextlib.contextmanager
def open_pieces(paths: Sequence[str]) -> Iterator[list[BinaryIO]]:
    """Yield files, open for reading at their first bytes, and close them at the end.

    More than 256 are read into memory instead. All of them hold the records of one part, so the pieces of so
    many lanes are short.
    """
    with contextlib.ExitStack() as files:
        if len(paths) <= _MOST_OPEN:
            yield [files.enter_context(open(path, "rb")) for path in paths]
            return
        contents: list[BinaryIO] = []
        for path in paths:
            with open(path, "rb") as file:
                contents.append(io.BytesIO(file.read()))
        yield contents


_LENGTH = struct.Struct("<Q")

Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class EncodedRecords(Generic[Record]):
    """Encoded records of pieces: a chunk for the format's ``write``."""

    records: Sequence[Record]


class EncodedFormat(FileFormat):
    """A format whose pieces hold each record encoded, after its length."""

    record: ClassVar[type[msgspec.Struct]]
    """The type of an encoded record."""

    @abstractmethod
    def encoded(self, chunks: Iterator[Any]) -> Iterator[msgspec.Struct]:
        """Yield the records of chunks, encoded.

        Raises:
            UnwritableRecord: as ``write``.
        """

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write some records of one lane, encoded."""
        for record in self.encoded(chunks):
            encoded = msgspec.msgpack.encode(record)
            file.write(_LENGTH.pack(len(encoded)))
            file.write(encoded)

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the encoded records of pieces one at a time, as they may be large."""
        with open_pieces(pieces) as files:
            for turn in turns:
                for number in turn.tolist():
                    file = files[number]
                    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                    yield EncodedRecords([msgspec.msgpack.decode(file.read(length), type=self.record)])
