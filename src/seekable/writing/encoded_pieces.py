"""The pieces that lanes write: opened together, and records in them as MessagePack.

Each record comes after its length in 8 bytes, little-endian.
"""

from __future__ import annotations

import contextlib
import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EncodedRecords", "merge_encoded", "open_pieces", "write_encoded"]

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


def write_encoded(file: BinaryIO, records: Iterable[msgspec.Struct]) -> None:
    """Write encoded records to a piece."""
    for record in records:
        encoded = msgspec.msgpack.encode(record)
        file.write(_LENGTH.pack(len(encoded)))
        file.write(encoded)


def merge_encoded(
    pieces: Sequence[str], turns: Iterable[NDArray[np.intp]], kind: type[Record]
) -> Iterator[EncodedRecords[Record]]:
    """Yield the encoded records of pieces one at a time, as they may be large; see ``FileFormat.merged``.

    Args:
        pieces: the paths of the pieces.
        turns: the indices of pieces.
        kind: the type of the records.
    """
    with open_pieces(pieces) as files:
        for turn in turns:
            for number in turn.tolist():
                file = files[number]
                (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                yield EncodedRecords([msgspec.msgpack.decode(file.read(length), type=kind)])
