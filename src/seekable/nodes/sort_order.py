"""The order of records by their keys, which are collected in unlinked temporary files.

Memory: 12 bytes a record, of which 8 are the order and 4 are work space of the sort. Keys are in a file that
is mapped into memory, 8 bytes a record. Texts take more of such files: their bytes, and for each an end, a
number, and its place in the order before and after a step.

Texts are sorted seven bytes at a time, as one 64-bit number for each: seven bytes of the text, or zeros after
its end, and how many of them there are. Texts whose numbers are equal, and that go on, are sorted by their
next seven bytes.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.sort_keys import (
    EXACT_FLOAT,
    NUMBER,
    KeyRange,
    ReadKeys,
    bytes_of_integer,
    integer_of_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s

    UInt64s = NDArray[np.uint64]

__all__ = ["CollectedKeys"]

_ROWS_AT_ONCE = 1 << 16
_TIED_AT_ONCE = 1 << 18
"""The number of texts with equal beginnings that are sorted together in memory."""

_PIECE = 7
"""The bytes of a text in one number."""


class CollectedKeys:
    """The keys of all rows, in temporary files."""

    def __init__(self, job: ReadKeys) -> None:
        """Begin with no keys.

        Args:
            job: made the keys; it makes the errors for keys that cannot be compared with each other.
        """
        self._job = job
        self._kind: tuple[int, str] | None = None
        """The first row that has a key, and the kind of its key."""
        self._large: tuple[int, int] | None = None
        """A row with an integer key beyond 2**53, and the key."""
        self._runs: list[tuple[int, np.dtype[Any] | None]] = []
        """The number of keys of each range and their type; None where they are in the file of texts."""
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._text = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._missing: tuple[list[Int64s], list[Int64s], list[Int64s]] = ([], [], [])

    def close(self) -> None:
        """Close the files, which the system then removes."""
        self._numbers.close()
        self._text.close()

    def add(self, keys: KeyRange) -> None:
        """Take the keys of the next range of rows.

        Raises:
            WrongType: they are of another kind than those before.
        """
        for rows, more in zip(self._missing, keys.missing, strict=True):
            if more.size:
                rows.append(more)
        if keys.kind is None:
            return
        row = int(keys.rows[0])
        if self._kind is None:
            self._kind = row, keys.kind
        elif self._kind[1] != keys.kind:
            raise self._job.mixed(row, keys.kind, *self._kind)
        if keys.text is not None:
            self._text.write(keys.text)
        if self._large is None and keys.kind == NUMBER and keys.values.dtype == np.int64:
            self._large = _large_integer(keys)
        self._runs.append((keys.rows.size, keys.values.dtype if keys.text is None else None))
        self._numbers.write(keys.values.data)

    def in_order(self, *, reverse: bool) -> Iterator[Int64s]:
        """Yield all rows by their keys, equal ones in their order; then those with NaN, None and holes.

        Raises:
            WrongType: an integer beyond 2**53 is among floats.
        """
        missing = [np.concatenate([np.empty(0, dtype=np.int64), *rows]) for rows in self._missing]
        absent = np.sort(np.concatenate(missing))
        before = absent - np.arange(absent.size)
        order = self._order(reverse=reverse)
        for start in range(0, order.size, _ROWS_AT_ONCE):
            some = order[start : start + _ROWS_AT_ONCE]
            yield some + np.searchsorted(before, some, side="right")
        yield from missing

    def _order(self, *, reverse: bool) -> Int64s:
        """Return the numbers, among the rows that have keys, of these rows by their keys."""
        count = sum(size for size, _ in self._runs)
        if not count:
            return np.empty(0, dtype=np.int64)
        if any(dtype is None for _, dtype in self._runs):
            self._all_as_texts()
            ends = _mapped(self._numbers, np.dtype(np.int64))
            np.cumsum(ends, out=ends)
            text = _mapped(self._text, np.dtype(np.uint8))
            return _Texts(text, ends, reverse=reverse).order()
        keys = self._in_one_type()
        for start in range(0, count if reverse else 0, _ROWS_AT_ONCE):
            some = keys[start : start + _ROWS_AT_ONCE]
            (np.negative if keys.dtype == np.float64 else np.invert)(some, out=some)
        return np.argsort(keys, kind="stable")

    def _all_as_texts(self) -> None:
        """Turn ranges of integers into bytes, where other ranges have integers beyond 64 bits.

        Raises:
            WrongType: there are floats among the keys.
        """
        if self._large is not None and any(dtype == np.float64 for _, dtype in self._runs):
            raise self._job.inexact(*self._large)
        if all(dtype is None for _, dtype in self._runs):
            return
        with self._numbers as numbers, self._text as text:
            values, letters = _mapped(numbers, np.dtype(np.int64)), _mapped(text, np.dtype(np.uint8))
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._text = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        at = read = 0
        for size, dtype in self._runs:
            for start in range(at, at + size, _ROWS_AT_ONCE):
                lengths = values[start : min(start + _ROWS_AT_ONCE, at + size)]
                if dtype is None:
                    piece = letters[read : read + int(lengths.sum())].tobytes()
                    read += len(piece)
                else:
                    pieces = list(map(bytes_of_integer, lengths.tolist()))
                    lengths, piece = np.array(list(map(len, pieces)), dtype=np.int64), b"".join(pieces)
                self._numbers.write(lengths.tobytes())
                self._text.write(piece)
            at += size

    def _in_one_type(self) -> NDArray[Any]:
        """Return the keys as int64, or as float64 if any is a float."""
        types = {dtype for _, dtype in self._runs if dtype is not None}
        if len(types) == 1:
            return _mapped(self._numbers, types.pop())
        if self._large is not None:
            raise self._job.inexact(*self._large)
        whole, floats = (_mapped(self._numbers, np.dtype(dtype)) for dtype in (np.int64, np.float64))
        at = 0
        for size, dtype in self._runs:
            if dtype == np.int64:
                floats[at : at + size] = whole[at : at + size].astype(np.float64)
            at += size
        return floats


def _large_integer(keys: KeyRange) -> tuple[int, int] | None:
    """Return a row with an integer key beyond 2**53, and the key; None if there is none."""
    if keys.text is not None:
        longest = int(keys.values.argmax())
        end = int(keys.values[: longest + 1].sum())
        return int(keys.rows[longest]), integer_of_bytes(keys.text[end - int(keys.values[longest]) : end])
    large = np.flatnonzero((keys.values > EXACT_FLOAT) | (keys.values < -EXACT_FLOAT))
    return (int(keys.rows[large[0]]), int(keys.values[large[0]])) if large.size else None


def _mapped(file: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the content of a file, mapped into memory: writing to the array writes to the file."""
    file.flush()
    size = file.seek(0, 2)
    if not size:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(mmap.mmap(file.fileno(), size), dtype=dtype)


def _on_disk(count: int, dtype: Any) -> NDArray[Any]:
    """Return an array of undefined content in an unlinked temporary file."""
    if not count:
        return np.empty(0, dtype=dtype)
    with tempfile.TemporaryFile() as file:
        file.truncate(count * np.dtype(dtype).itemsize)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), dtype=dtype)


class _Texts:
    """Texts in a file, and the order of them."""

    def __init__(self, text: NDArray[np.uint8], ends: Int64s, *, reverse: bool) -> None:
        self._text = text
        self._ends = ends
        self._mask = np.uint64(2**64 - 1 if reverse else 0)
        """Turns the order of numbers round, by exclusive or."""

    def order(self) -> Int64s:
        """Return the numbers of the texts, sorted."""
        order = _on_disk(self._ends.size, np.int64)
        for start in range(0, order.size, _ROWS_AT_ONCE):
            order[start : start + _ROWS_AT_ONCE] = np.arange(start, min(start + _ROWS_AT_ONCE, order.size))
        # Long spans of texts with equal beginnings are sorted one by one, short ones together.
        spans = [(0, order.size, 0)]
        while spans:
            start, stop, depth = spans.pop()
            if stop - start > _TIED_AT_ONCE:
                starts, stops = self._sort_span(order[start:stop], depth)
                starts, stops, depth = starts + start, stops + start, depth + 1
            else:
                starts, stops = np.array([start]), np.array([stop])
            long = stops - starts > _TIED_AT_ONCE
            spans += [(int(lo), int(hi), depth) for lo, hi in zip(starts[long], stops[long], strict=True)]
            self._sort_together(order, starts[~long], stops[~long], depth)
        return order

    def _sort_span(self, order: Int64s, depth: int) -> tuple[Int64s, Int64s]:
        """Sort texts by one piece; return the spans of those that are equal so far, as starts and stops."""
        pieces, spare = _on_disk(order.size, np.uint64), _on_disk(order.size, np.int64)
        for start in range(0, order.size, _ROWS_AT_ONCE):
            at = slice(start, start + _ROWS_AT_ONCE)
            pieces[at] = self._pieces(order[at], depth)
        by_piece = np.argsort(pieces, kind="stable")
        tied = np.zeros(order.size + 1, dtype=np.bool_)
        for start in range(0, order.size, _ROWS_AT_ONCE):
            # The last one before is needed to compare the first one with.
            before = max(0, start - 1)
            some = pieces[by_piece[before : start + _ROWS_AT_ONCE]]
            tied[before + 1 : before + some.size] = self._tied(some)
            spare[start : start + _ROWS_AT_ONCE] = order[by_piece[start : start + _ROWS_AT_ONCE]]
        del by_piece
        order[:] = spare
        return _spans(tied)

    def _sort_together(self, order: Int64s, starts: Int64s, stops: Int64s, depth: int) -> None:
        """Sort texts in each of many spans, whose first ``depth`` pieces are equal, to the end."""
        sizes = np.cumsum(stops - starts)
        first = 0
        while first < starts.size:
            done = sizes[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(sizes, done + _TIED_AT_ONCE, side="right")))
            lengths = stops[first:last] - starts[first:last]
            within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            self._sort_spans(order, np.repeat(starts[first:last], lengths) + within, within == 0, depth)
            first = last

    def _sort_spans(self, order: Int64s, at: Int64s, begins: NDArray[np.bool_], depth: int) -> None:
        """Sort the texts at some places, among those of one span; ``begins`` marks the first of each span."""
        while at.size:
            numbers = order[at]
            pieces = self._pieces(numbers, depth)
            by_piece = np.lexsort((pieces, np.cumsum(begins)))
            order[at] = numbers[by_piece]
            tied = np.zeros(at.size + 1, dtype=np.bool_)
            tied[1:-1] = self._tied(pieces[by_piece]) & ~begins[1:]
            left = tied[1:] | tied[:-1]
            at, begins, depth = at[left], ~tied[:-1][left], depth + 1

    def _pieces(self, numbers: Int64s, depth: int) -> UInt64s:
        """Return the piece of some texts at a depth, as numbers in their order."""
        before = np.where(numbers > 0, self._ends[numbers - 1], 0) + _PIECE * depth
        lengths = (self._ends[numbers] - before).clip(0, _PIECE)
        places = before[:, None] + np.arange(_PIECE)
        inside = np.arange(_PIECE) < lengths[:, None]
        letters = np.zeros((numbers.size, _PIECE + 1), dtype=np.uint8)
        letters[:, :_PIECE][inside] = self._text[places[inside]]
        letters[:, _PIECE] = lengths
        pieces: UInt64s = letters.view(">u8").ravel().astype(np.uint64) ^ self._mask
        return pieces

    def _tied(self, pieces: UInt64s) -> NDArray[np.bool_]:
        """Return True for each piece but the first that is equal to the one before, where texts go on."""
        goes_on = ((pieces[1:] ^ self._mask) & np.uint64(255)) == _PIECE
        tied: NDArray[np.bool_] = (pieces[1:] == pieces[:-1]) & goes_on
        return tied


def _spans(tied: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return the starts and stops of the runs of places each of which is tied to the one before.

    Args:
        tied: True for each place that is tied to the one before; then False.
    """
    starts = np.flatnonzero(tied[1:] & ~tied[:-1])
    stops = np.flatnonzero(tied[:-1] & ~tied[1:]) + 1
    return starts.astype(np.int64), stops.astype(np.int64)
