"""The surroundings of a corrupt record: the bytes of the file about the place of the error."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.storage.compression import compression_of
from seekable.viewer.facts.reading import raw_record

if TYPE_CHECKING:
    from seekable.errors import CorruptRecord
    from seekable.nodes.contract import Node

_BEFORE = 64
_AFTER = 160
_IN_A_LINE = 16
_PRINTED = range(32, 127)


@dataclass(frozen=True, slots=True)
class HexLine:
    """Some bytes of a file, in a line."""

    offset: int
    codes: str
    characters: str
    notes: tuple[str, ...] = ()
    """What begins or lies in the line."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The bytes around the place of an error."""

    offset: int
    """The place of the first byte in the file, or in the content of a compressed one."""

    data: bytes
    record: range
    """The bytes of the record, by their places in the file."""

    failing: int | None
    """The place of the byte at which decoding failed, if the decoder says that."""

    def document(self) -> dict[str, Any]:
        """Return the places and the bytes, JSON-safe."""
        return {
            "offset": self.offset,
            "hex": self.data.hex(),
            "record": [self.record.start, self.record.stop],
            "failing": self.failing,
        }

    def lines(self) -> list[HexLine]:
        """Return the bytes in lines, with notes where the record begins, ends, and cannot be decoded."""
        notes = {
            self.record.start: "the record begins at byte {:,}",
            self.record.stop: "it ends before byte {:,}",
        }
        places = [(at, words.format(at)) for at, words in notes.items()]
        if self.failing is not None:
            places.append((self.failing, f"it cannot be decoded at byte {self.failing:,}"))
        return [
            HexLine(
                line.offset,
                line.codes,
                line.characters,
                tuple(words for at, words in sorted(places) if 0 <= at - line.offset < _IN_A_LINE),
            )
            for line in hex_lines(self.data, self.offset)
        ]


def hex_lines(data: bytes, offset: int) -> list[HexLine]:
    r"""Return bytes as lines of 16: offset, codes and characters.

    Args:
        data: the bytes.
        offset: the place of the first of them.

    Example:
        >>> hex_lines(b"a\n", 100)
        [HexLine(offset=100, codes='61 0a', characters='a.', notes=())]
    """
    lines = []
    for at in range(0, len(data), _IN_A_LINE):
        part = data[at : at + _IN_A_LINE]
        characters = "".join(chr(byte) if byte in _PRINTED else "." for byte in part)
        lines.append(HexLine(offset + at, part.hex(" "), characters))
    return lines


def failing_byte(error: CorruptRecord) -> int | None:
    r"""Return the place in the file at which the decoder of a record failed; None if it does not say it.

    Example:
        >>> from seekable.errors import CorruptRecord
        >>> cause = UnicodeDecodeError("utf-8", b"ab\\xff", 2, 3, "invalid start byte")
        >>> failing_byte(CorruptRecord("a.txt", 7, offset=100, length=3, preview=b"ab", cause=cause))
        102
    """
    cause: BaseException | None = error.cause
    while cause is not None:
        if isinstance(cause, json.JSONDecodeError):
            return error.offset + len(cause.doc[: cause.pos].encode("utf-8", "surrogatepass"))
        if isinstance(cause, UnicodeDecodeError):
            return error.offset + cause.start
        cause = cause.__cause__
    return None


def surroundings(node: Node, row: int, error: CorruptRecord) -> Surroundings | None:
    """Return the bytes around the place of the error; None where they cannot be read.

    Of compressed files and of objects in stores they are those of the record alone.

    Args:
        node: the source of the record.
        row: the number of the record in it.
        error: what reading it raised.
    """
    failing = failing_byte(error)
    at = error.offset if failing is None else failing
    first = max(0, at - _BEFORE)
    if os.path.isfile(error.path) and compression_of(error.path) is None:
        with open(error.path, "rb") as file:
            file.seek(first)
            data = file.read(_BEFORE + _AFTER)
    else:
        first = max(first, error.offset)
        data = (raw_record(node, row) or b"")[first - error.offset :][: _BEFORE + _AFTER]
    if not data:
        return None
    return Surroundings(first, data, range(error.offset, error.offset + error.length), failing)
