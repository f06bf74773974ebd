"""Formats of a package of its own, as users write them: lines with comments, and numbers of a fixed size."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats import Card, Lines, RowFormat, TableLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.index.finder import ByteSource

HOME = "tests.testing.plugin_formats"

WORDS = {
    "entry": f"{HOME}:Logs",
    "fixed": f"{HOME}:Fixed",
    "misnamed": f"{HOME}:Fixed",
    "broken": f"{HOME}:None_",
}
"""Entry points: two formats, one whose card has another name, and one that is not there."""


@dataclass(frozen=True, slots=True)
class LogScanner:
    """Finds the lines that begin with ``>``; others are comments."""

    name: str = "entry"
    splittable: bool = False

    def check_head(self, head: bytes, path: str) -> None:
        if head and not head.startswith(b">"):
            message = f"{path!r} is no log: it begins with {head[:1]!r}, and not with '>'"
            raise UnsupportedFormat(message)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        starts, last = [], ord("\n")
        for chunk in source.chunks():
            for at, byte in enumerate(chunk.array.tolist(), chunk.base):
                if byte == ord(">") and last == ord("\n"):
                    starts.append(at)
                last = byte
        return np.array(starts, dtype=np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs(Lines):
    """Entries of a log, each a line."""

    card: ClassVar[Card] = Card(name="entry", home=f"{HOME}:Logs", suffixes=(".log",), compressible=True)

    @property
    def finder(self) -> LogScanner:
        """What finds the entries."""
        return LogScanner()


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts the numbers of a file."""

    name: str = "fixed"

    def read_layout(self, source: Any) -> TableLayout:
        """Return one group; a file with a part of a number is damaged."""
        if source.size % 8:
            message = f"{source.path!r} has {source.size} bytes, and a number has 8: the file is cut off"
            raise UnsupportedFormat(message)
        return TableLayout((source.size // 8,), b"q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(RowFormat):
    """Integers of 8 bytes, as dicts of the number and its sign; 13 cannot be read."""

    card: ClassVar[Card] = Card(name="fixed", home=f"{HOME}:Fixed", suffixes=(".fixed",))

    order: Literal["little", "big"] = "little"

    @property
    def finder(self) -> Counter:
        """What counts the numbers."""
        return Counter()

    def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
        """Return some numbers."""
        sign = "<" if self.order == "little" else ">"
        with open(path, "rb") as file:
            data = [os.pread(file.fileno(), 8, 8 * row) for row in rows]
        numbers = [struct.unpack(f"{sign}q", each)[0] for each in data]
        if 13 in numbers:
            message = "13 is unlucky"
            raise ValueError(message)
        records = [{"number": number, "negative": number < 0} for number in numbers]
        return records if columns is None else [{name: each[name] for name in columns} for each in records]
