"""Sorting: the records of a dataset in the order of keys, which are read once, when the dataset is made.

Keys are numbers, texts, bytes, dates, times or durations; all keys of a dataset are of one kind. Integers are
kept exactly, and so are texts: the order of their UTF-8 is that of Python's strings. A range with integers
beyond 64 bits, or with a duration of so many microseconds, has bytes for each of its keys, in the same order.

Memory: 12 bytes a record, of which 8 are the order and 4 are work space of the sort. Keys are in unlinked
temporary files that are mapped into memory, 8 bytes a record. Texts take more of such files: their bytes, and
for each an end, a number, and its place in the order before and after a step. They are sorted seven bytes at
a time, as one 64-bit number for each: seven bytes of the text, or zeros after its end, and how many of them
there are. Texts whose numbers are equal, and that go on, are sorted by their next seven bytes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import mmap
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import MissingColumn, WrongType
from seekable.nodes.bases import ONE_CHILD, EachRouter, PermutationNode
from seekable.nodes.columns.names import By, narrowed_to, value_by
from seekable.nodes.display import add_place, describe_place
from seekable.nodes.evaluated import Evaluated, Evaluation, evaluated_rows
from seekable.nodes.graph import HOLE, known_size, must_be_steady
from seekable.nodes.node import Node, OrderNode
from seekable.nodes.readahead import read_rows
from seekable.nodes.saved_rows import KeptRows, keep_unnamed
from seekable.parallel.map_ranges import map_ranges
from seekable.state.functions import code_digest, describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.evaluated import EvaluationOptions
    from seekable.nodes.graph import Router, SearchRange
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch

    UInt64s = NDArray[np.uint64]

__all__ = [
    "Sort",
    "sorted_by",
]

_ROWS_AT_ONCE = 1 << 16
_TIED_AT_ONCE = 1 << 18
"""The number of texts with equal beginnings that are sorted together in memory."""

_PIECE = 7
"""The bytes of a text in one number."""


class _CollectedKeys:
    """The keys of all rows, in temporary files."""

    def __init__(self, job: _ReadKeys) -> None:
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

    def add(self, keys: _KeyRange) -> None:
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
        if self._large is None and keys.kind == _NUMBER and keys.values.dtype == np.int64:
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
                    pieces = list(map(_bytes_of_integer, lengths.tolist()))
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


def _large_integer(keys: _KeyRange) -> tuple[int, int] | None:
    """Return a row with an integer key beyond 2**53, and the key; None if there is none."""
    if keys.text is not None:
        longest = int(keys.values.argmax())
        end = int(keys.values[: longest + 1].sum())
        return int(keys.rows[longest]), _integer_of_bytes(keys.text[end - int(keys.values[longest]) : end])
    large = np.flatnonzero((keys.values > _EXACT_FLOAT) | (keys.values < -_EXACT_FLOAT))
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
    """Return the starts and stops of runs of places; each place is tied to the one before.

    Args:
        tied: True for each place that is tied to the one before; then False.
    """
    starts = np.flatnonzero(tied[1:] & ~tied[:-1])
    stops = np.flatnonzero(tied[:-1] & ~tied[1:]) + 1
    return starts.astype(np.int64), stops.astype(np.int64)


_EXACT_FLOAT = 1 << 53
"""Integers up to this size are exact as 64-bit floats."""

_NUMBER, _TEXT, _BYTES = "a number", "a text", "bytes"
_MOMENT, _MOMENT_IN_ZONE = "a date with a time", "a date with a time and a time zone"
_NANOSECONDS, _NANOSECONDS_IN_ZONE = "a timestamp of pandas", "a timestamp of pandas with a time zone"
_WITH_ZONE_OR_NOT = (_MOMENT, _MOMENT_IN_ZONE, _NANOSECONDS, _NANOSECONDS_IN_ZONE)
"""Kinds that the type of a key alone does not show."""

_MIDNIGHT = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of times without a time zone
_MICROSECOND = dt.timedelta(microseconds=1)

_TO_INTEGER: dict[str, Callable[[Any], int]] = {
    "a date": lambda key: key.toordinal(),
    "a time": lambda key: (dt.datetime.combine(_MIDNIGHT, key) - _MIDNIGHT) // _MICROSECOND,
    "a duration": lambda key: key // _MICROSECOND,
    _MOMENT: lambda key: (key - _MIDNIGHT) // _MICROSECOND,
    _NANOSECONDS: lambda key: key.value,
    _NANOSECONDS_IN_ZONE: lambda key: key.value,
    _MOMENT_IN_ZONE: lambda key: (key - _MIDNIGHT.replace(tzinfo=dt.UTC)) // _MICROSECOND,
}
"""For kinds of keys that are neither numbers nor texts, their number of days, microseconds or nanoseconds."""

_TO_BYTES: dict[str, Callable[[Any], bytes]] = {
    _TEXT: lambda key: key.encode("utf-8", "surrogatepass"),
    _BYTES: bytes,
}
"""For texts and bytes, the bytes by which they are sorted."""

_KINDS: dict[type, str] = {
    dt.date: "a date",
    dt.time: "a time",
    dt.timedelta: "a duration",
}
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
_HEAD_BYTES = 4
"""The bytes of the size of an integer beyond 64 bits."""

_NEVER_MISSING = frozenset({int, bool, str, bytes, *_KINDS})


@dataclass(frozen=True, slots=True)
class _KeyRange:
    """The keys of a range of rows."""

    kind: str | None
    """The kind of the keys, in words; None if no row has a key."""

    rows: Int64s
    """The rows that have keys: ascending int64."""

    values: NDArray[Any]
    """The keys of these rows, int64 or float64; or, if ``text`` is given, the length of each there: int64."""

    text: bytes | None
    """The texts as UTF-8, the bytes, or those of `_bytes_of_integer`, one after the other; else None."""

    missing: tuple[Int64s, Int64s, Int64s]
    """The rows whose keys are NaN, those whose keys are None, and those of holes: ascending int64."""

    @classmethod
    def of_kept(cls, kept: dict[str, Any]) -> _KeyRange:
        """Return the keys that were kept of a finished range, as a dict of the fields."""
        return cls(**kept)


@dataclass(frozen=True, slots=True)
class _ReadKeys:
    """A picklable job that reads the keys of a range of rows."""

    dataset: Node
    by: By
    call: str
    """The call of ``sort``, for errors."""

    def __call__(self, start: int, stop: int) -> _KeyRange:
        """Return the keys of the rows ``start`` to ``stop``.

        Raises:
            WrongType: the keys are of several kinds, or of one that has no order.
            MissingColumn: a record has no column of the name.
        """
        keys: list[Any] = []
        for _, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for record in records:
                keys.append(record if record is HOLE else self._key(record, start + len(keys)))
        missing = _missing(keys, start)
        there = np.ones(len(keys), dtype=np.bool_)
        for rows in missing:
            there[rows - start] = False
        rows = start + np.flatnonzero(there).astype(np.int64)
        if rows.size < len(keys):
            keys = [keys[row - start] for row in rows.tolist()]
        kind = self._kind(keys, rows)
        if kind is None:
            return _KeyRange(None, rows, np.empty(0, dtype=np.int64), None, missing)
        if kind in _TO_BYTES:
            pieces = list(map(_TO_BYTES[kind], keys))
        else:
            to_integer = _TO_INTEGER.get(kind)
            values = _exact(list(map(to_integer, keys))) if to_integer else self._numbers(keys, rows)
            if values.dtype != np.object_:
                return _KeyRange(kind, rows, values, None, missing)
            pieces = list(map(_bytes_of_integer, values))
        lengths = np.array(list(map(len, pieces)), dtype=np.int64)
        return _KeyRange(kind, rows, lengths, b"".join(pieces), missing)

    def refused(self, row: int, message: str) -> WrongType:
        """Return the error for the key of a row, whose message begins with the file and the row."""
        return WrongType(f"{describe_place(self.dataset, row)}: {self.call} {message}")

    def mixed(self, row: int, kind: str, other: int, other_kind: str) -> WrongType:
        """Return the error for two rows whose keys cannot be compared."""
        there = describe_place(self.dataset, other)
        message = f"needs keys of one kind: this one is {kind}, and that of {there} is {other_kind}"
        return self.refused(row, f"{message}. A function as by= can make them alike")

    def inexact(self, row: int, key: int) -> WrongType:
        """Return the error for a large integer among floats."""
        message = f"cannot compare the key {key} exactly with floats, because it is beyond 2**53"
        return self.refused(row, f"{message}: make all keys integers, or all floats")

    def _key(self, record: Any, row: int) -> Any:
        try:
            return value_by(record, self.by)
        except (MissingColumn, WrongType) as error:
            if callable(self.by):
                raise
            place = f"{describe_place(self.dataset, row)}: {self.call}"
            raise type(error)(f"{place}: {error}") from error
        except Exception as error:
            add_place(error, f"{self.call} of {self.dataset!r}", self.dataset, row)
            raise

    def _kind(self, keys: Sequence[Any], rows: Int64s) -> str | None:
        """Return the kind of all keys."""
        if not keys:
            return None
        first = _kind_of(keys[0])
        alike = len(set(map(type, keys))) == 1 and first not in (None, *_WITH_ZONE_OR_NOT)
        for key, row in [] if alike else zip(keys, rows.tolist(), strict=True):
            kind = _kind_of(key)
            if kind is None:
                message = (
                    f"sorts by numbers, texts, bytes, dates, times and durations (got {key!r:.60} of type "
                    f"{type(key).__name__}): a function as by= can make one of these. To sort by several "
                    f"keys, sort by the last first: equal keys stay in their order"
                )
                raise self.refused(row, message)
            if first is not None and kind != first:
                raise self.mixed(row, kind, int(rows[0]), first)
        return first

    def _numbers(self, keys: Sequence[Any], rows: Int64s) -> NDArray[Any]:
        """Return the keys as float64 if any is a float, else as int64, or as objects if one is too large."""
        whole = [not isinstance(key, float | np.floating) for key in keys]
        if all(whole):
            return _exact(list(map(int, keys)))
        for key, row, is_whole in zip(keys, rows.tolist(), whole, strict=True):
            if is_whole and abs(int(key)) > _EXACT_FLOAT:
                raise self.inexact(row, int(key))
        return np.array(list(map(float, keys)), dtype=np.float64)


def _exact(integers: list[int]) -> NDArray[Any]:
    """Return integers as int64, or as objects if one is too large."""
    try:
        return np.array(integers, dtype=np.int64)
    except OverflowError:
        return np.array(integers, dtype=np.object_)


def _bytes_of_integer(number: int) -> bytes:
    """Return bytes whose order is that of the integers: the size with the sign, then two's complement.

    Example:
        >>> keys = [-(2**70), -1, 0, 255, 256, 2**70]
        >>> sorted(reversed(keys), key=_bytes_of_integer) == keys
        True
    """
    size = number.bit_length() // 8 + 1
    head = (1 << 31) + (size if number >= 0 else -size)
    return head.to_bytes(_HEAD_BYTES, "big") + number.to_bytes(size, "big", signed=True)


def _integer_of_bytes(text: bytes) -> int:
    """Return the integer of which `_bytes_of_integer` made these bytes."""
    return int.from_bytes(text[_HEAD_BYTES:], "big", signed=True)


def _missing(keys: Sequence[Any], start: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return the rows whose keys are NaN, those whose keys are None, and those of holes."""
    found: tuple[list[int], list[int], list[int]] = ([], [], [])
    if not _NEVER_MISSING.issuperset(map(type, keys)):
        for row, key in enumerate(keys, start=start):
            if isinstance(key, float | np.floating) and key != key:  # noqa: PLR0124 - only NaN is unequal to itself
                found[0].append(row)
            elif key is None:
                found[1].append(row)
            elif key is HOLE:
                found[2].append(row)
    nans, nones, holes = (np.array(rows, dtype=np.int64) for rows in found)
    return nans, nones, holes


def _kind_of(key: Any) -> str | None:
    """Return the kind of a key in words; None for one that records cannot be sorted by."""
    if isinstance(key, _NUMBERS):
        return _NUMBER
    if isinstance(key, str):
        return _TEXT
    if isinstance(key, bytes):
        return _BYTES
    if isinstance(key, dt.datetime):
        return _kind_of_moment(key)
    if type(key) is dt.time and key.tzinfo is not None:
        return None
    return _KINDS.get(type(key))


def _kind_of_moment(key: dt.datetime) -> str | None:
    """Return the kind of a date with a time; None for an unknown subclass, which may hold more than these."""
    in_zone = key.utcoffset() is not None
    if type(key) is dt.datetime:
        return _MOMENT_IN_ZONE if in_zone else _MOMENT
    # Columns of nanoseconds are read as pandas.Timestamp.
    if type(key).__name__ == "Timestamp" and hasattr(key, "nanosecond"):
        return _NANOSECONDS_IN_ZONE if in_zone else _NANOSECONDS
    return None


def sorted_by(
    child: Node, by: By, *, reverse: bool, version: str | int | None, running: EvaluationOptions
) -> Node:
    """Return a node of the records in the order of their keys; see ``Dataset.sort``."""
    known_size(child, "sort()")
    must_be_steady(child, "sort()")
    name = repr(by) if isinstance(by, str) else getattr(by, "__qualname__", type(by).__qualname__)
    name += ", reverse=True" if reverse else ""
    job = _ReadKeys(narrowed_to(child, by, "sort()"), by, f"sort({name})")

    def find(size: int, using: ExecutionOptions, watch: Watch) -> Iterator[Int64s]:
        with contextlib.closing(_CollectedKeys(job)) as collected:
            with contextlib.closing(map_ranges(job, size, using=using, restored=_KeyRange.of_kept)) as found:
                for done, keys in found:
                    watch(done)
                    collected.add(keys)
            yield from collected.in_order(reverse=reverse)

    rows = evaluated_rows(
        child, _question(by, reverse, version, named=running.save is not None), find, running
    )
    return Sort(child, rows, name)


def _question(by: By, reverse: bool, version: str | int | None, *, named: bool) -> Evaluation:  # noqa: FBT001
    """Return what decides the order; without the function, whose name is needed only for saved rows."""
    function: dict[str, Any] = {"name": f"the column {by!r}"}
    code = None
    if not isinstance(by, str) and named:
        function = describe_function(by, version)
        code = code_digest(by) if version is None else None
    if reverse:
        function["reverse"] = True
    return Evaluation("sort", "sorting", function, code)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sort(Evaluated, PermutationNode, OrderNode):
    """Row ``r`` is row ``rows[r]`` of the child."""

    child: Node
    rows: KeptRows
    name: str

    kind: ClassVar[str] = "sorted"
    counted: ClassVar[bool] = True
    order_unknown: ClassVar[str] = "the description has a digest of the order of the rows, and not the order"

    @property
    def steady(self) -> bool:
        """True: the child is steady, and the order is the same in every epoch."""
        return True

    @property
    def lanes(self) -> int:
        """1: rows come from any lane of the child."""
        return 1

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the count and digest of the rows; the keys have no other effect on the order."""
        return {"count": self.rows.count, "rows": self.rows.digest}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``sort``."""
        return f"{children[0]}.sort({self.name})"

    @classmethod
    def router(cls, nodes: Sequence[Sort]) -> Router:
        """Return a router that routes the positions of each node separately."""
        return EachRouter(nodes)

    def route(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return slot 0 and the child's positions of the sorted rows."""
        epochs, rows = np.divmod(positions, self.size)
        return ONE_CHILD, epochs * self.size + self.rows.array[rows]

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one sorted row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self.size + self.rows.view[row]

    def inverse(self, slot: int, positions: Int64s, within: SearchRange) -> Int64s:
        """Return the positions of the child's rows in the sorted order."""
        epochs, rows = np.divmod(positions, self.size)
        return epochs * self.size + self._places.array[rows]

    @cached
    def _places(self) -> KeptRows:
        """The place of each row of the child in the sorted order: 8 bytes a record in a temporary file."""
        places = np.empty(self.size, dtype=np.int64)
        places[self.rows.array] = np.arange(self.size, dtype=np.int64)
        return keep_unnamed([places], "sort")
