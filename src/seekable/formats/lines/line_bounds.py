"""The scan for the starts of lines, for all formats of one record a line; it runs at the speed of memory.

A line end is a newline byte. The bytes before it belong to the line, a carriage return too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.finder import ByteChunk, ByteSource

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_NEWLINE = 10
_SPACE = 32
_WORD_BYTES = 8
_ONE = np.uint64(1)
_BYTE_NUMBERS = np.uint64(0x0001020304050607)
_HIGHEST_BYTE = np.uint64(56)
_SHORT_LINE = 12
"""Below this mean length, words with several newlines make the way by words the slower one (measured)."""

_STEPS_AT_ONCE = 64

_CONTENT, _BLANK, _UNDECIDED = 0, 1, 2
_NONE = -1

_IS_BLANK = np.zeros(256, bool)
_IS_BLANK[list(b" \t\r")] = True


def scan_lines(source: ByteSource, *, keep_blank: bool) -> NDArray[np.uint64]:
    """Return where in a file, or in a part of it, lines start, ascending.

    A UTF-8 byte order mark belongs to no line, nor does the nothing after the last newline.

    Args:
        source: the file or the part.
        keep_blank: whether lines of nothing but spaces, tabs and carriage returns count.
    """
    next_start = _first_start(source)
    mean_line = len(source.head) / (source.head.count(b"\n") + 1)
    blank_lines = _BlankLines()
    nothing = np.zeros(0, np.int64)
    found = [nothing]
    for chunk in source.chunks():
        starts = find_newlines(chunk, mean_line=mean_line)
        mean_line = chunk.size / (len(starts) + 1)
        starts += 1
        if chunk.base <= next_start < chunk.base + chunk.size:
            starts = np.concatenate([[next_start - chunk.base], starts])
        if len(starts) and starts[-1] == chunk.size:
            starts, next_start = starts[:-1], chunk.base + chunk.size
        if not keep_blank:
            starts = blank_lines.drop(chunk, starts)
        starts += chunk.base
        found.append(starts)
    if blank_lines.undecided:
        for chunk in source.beyond():
            found.append(blank_lines.drop(chunk, nothing) + chunk.base)
            if not blank_lines.undecided:
                break
    return np.concatenate(found).view(np.uint64)


def _first_start(source: ByteSource) -> int:
    """Return the start of the first line of the part; -1 if the byte before the part ends no line."""
    first = len(BYTE_ORDER_MARK) if source.head.startswith(BYTE_ORDER_MARK) else 0
    if source.start <= first:
        return first
    return source.start if source.before == b"\n" else _NONE


def find_newlines(chunk: ByteChunk, *, mean_line: float) -> NDArray[np.int64]:
    """Return where in a chunk newlines are, in the way that is fastest for lines of this length."""
    is_newline = chunk.array == _NEWLINE
    if mean_line < _SHORT_LINE:
        return np.flatnonzero(is_newline)
    whole = len(is_newline) // _WORD_BYTES * _WORD_BYTES
    runs = _find_by_words(is_newline[:whole].view("<u8"))
    runs.append(np.flatnonzero(is_newline[whole:]) + whole)
    runs = [run for run in runs if len(run)] or runs[:1]
    # Each run is ascending, and a stable sort merges them.
    return runs[0] if len(runs) == 1 else np.sort(np.concatenate(runs), kind="stable")


def _find_by_words(words: NDArray[np.uint64]) -> list[NDArray[np.int64]]:
    """Return the places of the bytes that are 1: the first ones of all words, the second ones, ...

    Looks for words of 8 bytes that have a 1 at all, an eighth of what there is to look at.
    """
    places = np.flatnonzero(words != 0)
    left = words[places]
    places *= _WORD_BYTES
    found = []
    while len(left):
        # The lowest 1 is 2 ** (8 * byte); times the constant, its highest byte is that byte's number.
        lowest = left & (~left + _ONE)
        found.append(places + ((lowest * _BYTE_NUMBERS) >> _HIGHEST_BYTE).view(np.int64))
        left ^= lowest
        more = np.flatnonzero(left)
        places, left = places[more], left[more]
    return found


class _BlankLines:
    """Drops the starts of blank lines, from one chunk to the next."""

    def __init__(self) -> None:
        self._undecided = _NONE

    @property
    def undecided(self) -> bool:
        """True if the last line was blank up to the end of the last chunk."""
        return self._undecided != _NONE

    def drop(self, chunk: ByteChunk, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the starts of lines that are certainly not blank, as far as the chunk decides it.

        Args:
            chunk: the next bytes.
            starts: where in it lines start; the one returned may lie before it, and is negative then.
        """
        if self.undecided:
            # The line begins before the chunk and was blank so far: its rest decides.
            starts = np.concatenate([[self._undecided - chunk.base], starts])
        elif not (chunk.array[starts] <= _SPACE).any():
            return starts
        suspects = np.flatnonzero(chunk.array[np.maximum(starts, 0)] <= _SPACE)
        verdicts = np.zeros(len(starts), np.int8)
        verdicts[suspects] = _judge(chunk, np.maximum(starts[suspects], 0))
        undecided = starts[verdicts == _UNDECIDED]
        self._undecided = int(undecided[0]) + chunk.base if len(undecided) else _NONE
        kept: NDArray[np.int64] = starts[verdicts == _CONTENT]
        return kept


def _judge(chunk: ByteChunk, at: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return of each line whether it has content, is blank, or is blank up to the chunk's end."""
    array, size = chunk.array, chunk.size
    verdicts = np.zeros(len(at), np.int8)
    lines = np.arange(len(at))
    for _ in range(_STEPS_AT_ONCE):
        if not len(lines):
            return verdicts
        byte = array[at]
        verdicts[lines[byte == _NEWLINE]] = _BLANK
        lines, at = lines[_IS_BLANK[byte]], at[_IS_BLANK[byte]] + 1
        verdicts[lines[at == size]] = _UNDECIDED
        lines, at = lines[at < size], at[at < size]
    for line, position in zip(lines.tolist(), at.tolist(), strict=True):
        verdicts[line] = _judge_one(chunk, position)
    return verdicts


def _judge_one(chunk: ByteChunk, at: int) -> int:
    buffer = chunk.buffer
    end = buffer.find(b"\n", at, chunk.size)
    if buffer[at : end if end >= 0 else chunk.size].strip(b" \t\r"):
        return _CONTENT
    return _BLANK if end >= 0 else _UNDECIDED
