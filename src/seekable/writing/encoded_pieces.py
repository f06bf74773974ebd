"""Pieces of a stream as encoded records: MessagePack, each after its length in 8 bytes, little-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

import msgspec

from seekable.writing.open_pieces import open_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EncodedRecords", "merge_encoded", "write_encoded"]

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
        turns: the numbers of pieces.
        kind: the type of the records.
    """
    with open_pieces(pieces) as files:
        for turn in turns:
            for number in turn.tolist():
                file = files[number]
                (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                yield EncodedRecords([msgspec.msgpack.decode(file.read(length), type=kind)])
