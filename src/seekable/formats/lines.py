"""Where lines start: the scan behind all formats of one record a line, at the speed of memory.

A line end is a newline byte; what stands before it, a carriage return too, is the line's own. How
newlines are found follows the mean length of lines, because each way is the fastest somewhere
(measured, GB/s, hashing included; the machine of docs/benchmarks.md)::

    bytes a line                            20     100     300    2,000   10,000
    every byte (`_among_all`)
    every word of 8 (`_among_words`)
    `bytearray.find` (`_one_by_one`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.scanner import ByteSource, Chunk

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_NEWLINE = 10
_SPACE = 32
_WORD_BYTES = 8
_SHORT_LINE = 200
_LONG_LINE = 4000
_STEPS_AT_ONCE = 64

_IS_BLANK = np.zeros(256, bool)
_IS_BLANK[list(b" \t\r")] = True


def scan_lines(source: ByteSource, *, keep_blank: bool) -> NDArray[np.uint64]:
    """Return where lines start, ascending.

    A UTF-8 byte order mark belongs to no line; neither does the nothing behind the last newline.

    Args:
        source: the file.
        keep_blank: whether lines of nothing but spaces, tabs and carriage returns count.
    """
    first = len(BYTE_ORDER_MARK) if source.head.startswith(BYTE_ORDER_MARK) else 0
    mean = len(source.head) / (source.head.count(b"\n") + 1)
    found: list[NDArray[np.int64]] = []
    blanks = _BlankLines()
    next_start = first
    for chunk in source.chunks():
        ends = find_newlines(chunk, mean_line=mean)
        mean = chunk.size / (len(ends) + 1)
        starts = np.concatenate([[next_start - chunk.base], ends + 1])
        ...
    return np.concatenate(found)
