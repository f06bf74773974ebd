r"""CSV: records that may go over several lines, the first of which names the columns.

Read as Python's own ``csv`` module reads it: a field is quoted if a quote is its first character; within it
``""`` is a quote, and line ends are text. Any other quote is a character like others, and so is what stands
between a closing quote and the next delimiter. A record ends with ``\n``, ``\r\n`` or ``\r``; an empty line
is none. Unlike there, a quoted field that the file ends in is an error: it was torn.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.lines import BYTE_ORDER_MARK, find_newlines
from seekable.formats.sniff import check_is_text
from seekable.index.digest import END_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.index.scanner import ByteSource, Chunk

    Int64s = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["CSV_DELIMITERS", "CsvRecords", "CsvScanner", "csv_records", "record_span"]

CSV_DELIMITERS: Final = {"csv": ",", "tsv": "\t", "csv-semicolon": ";"}
"""The delimiter of fields, by the name of the format."""

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_ENDS: Final = "\r\n"
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class CsvScanner:
    """Finds the records of a file of CSV."""

    name: str = "csv"
    splittable: bool = False
    """False: a byte is quoted or not because of all bytes before it."""

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are no text, have another delimiter, or two columns of one name.
        """
        check_is_text(head, path)
        names = self._names(head)
        if len(names) == 1:
            for form, delimiter in CSV_DELIMITERS.items():
                if delimiter in names[0]:
                    message = (
                        f"{path!r} has one column, {names[0]!r}, if {CSV_DELIMITERS[self.name]!r} stands "
                        f"between columns; it looks as if {delimiter!r} did: say format={form!r}, or rename "
                        f"the column if it is but one"
                    )
                    raise UnsupportedFormat(message)
        if twice := _named_twice(names):
            message = f"{path!r}: {twice}; rename one, or read its lines with format='text'"
            raise UnsupportedFormat(message)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets of the records, uint64, without that of the header."""
        quoting = _Quoting(source, ord(CSV_DELIMITERS[self.name]))
        found = [np.zeros(0, np.int64)]
        pending = quoting.first
        for chunk in source.chunks():
            starts = _line_ends(chunk)
            starts = starts[~quoting.within(chunk, starts)] + 1
            if chunk.base <= pending < chunk.base + chunk.size:
                starts = np.concatenate([[pending - chunk.base], starts])
            if len(starts) and starts[-1] == chunk.size:
                starts, pending = starts[:-1], chunk.base + chunk.size
            first = chunk.array[starts]
            found.append(starts[(first != _NEWLINE) & (first != _RETURN)] + chunk.base)
        return np.concatenate(found)[1:].view(np.uint64)

    def _names(self, head: bytes) -> tuple[str, ...]:
        """Return the names of columns; none without a header, or if the head holds only a part of it."""
        text = str(head, "utf-8", errors="ignore").removeprefix("\ufeff").lstrip(_ENDS)
        lines = io.StringIO(text, newline="")
        try:
            names = next(csv.reader(lines, delimiter=CSV_DELIMITERS[self.name]), ())
        except csv.Error:  # a field is longer than it takes
            return ()
        return () if len(head) == END_BYTES and lines.tell() == len(text) else tuple(names)


def _line_ends(chunk: Chunk) -> Int64s:
    """Return the indices of line ends in a chunk, quoted ones too."""
    buffer = chunk.buffer
    if buffer.find(b"\r", 0, chunk.size) < 0:
        lines = buffer.count(b"\n", 0, min(chunk.size, END_BYTES)) + 1
        return find_newlines(chunk, mean_line=min(chunk.size, END_BYTES) / lines)
    return np.flatnonzero((chunk.array == _NEWLINE) | (chunk.array == _RETURN))


class _Quoting:
    """Finds the bytes of a file that are within quotes, from one chunk to the next.

    Quotes matter in runs. Within a quoted field a run of an even number is as many quotes as it has pairs,
    and one of an odd number ends with the closing quote. Outside, a run that begins a field opens it: an odd
    number leaves it open, an even number has closed it again. Elsewhere outside, quotes are text. So only odd
    runs matter: one that begins a field goes in, or out; behind any other one it is outside in any case.
    """

    def __init__(self, source: ByteSource, delimiter: int) -> None:
        self.first = len(BYTE_ORDER_MARK) if source.head.startswith(BYTE_ORDER_MARK) else 0
        """The byte at which the first record begins."""
        self._begins_field: Flags = np.zeros(256, bool)
        self._begins_field[[delimiter, _NEWLINE, _RETURN]] = True
        self._inside = False
        self._before = 0
        """The last byte of the chunk before."""
        self._run = (0, False)
        """The number of quotes at the end of that chunk, and True if they begin a field."""

    def within(self, chunk: Chunk, places: Int64s) -> Flags:
        """Return True for each place of the next chunk that is within quotes; no place is a quote."""
        ends, opening = self._odd_runs(chunk)
        before = self._inside
        if not len(ends):
            return np.full(len(places), before)
        # Of a run that begins a field the state is turned; behind another one the turns count from anew.
        turns = np.cumsum(opening) + before
        last = np.maximum.accumulate(np.where(opening, 0, turns))
        inside: Flags = np.equal((turns - last) % 2, 1)
        self._inside = bool(inside[-1])
        number = np.searchsorted(ends, places, side="right")
        return np.concatenate([[before], inside])[number]

    def _odd_runs(self, chunk: Chunk) -> tuple[Int64s, Flags]:
        """Return the ends of runs of an odd number of quotes, and True for each that begins a field.

        A run that reaches the end of the chunk is left for the next one.
        """
        array, (held, held_opens) = chunk.array, self._run
        some = chunk.buffer.find(_QUOTE, 0, chunk.size) >= 0
        quotes = np.flatnonzero(array == _QUOTE) if some else np.zeros(0, np.int64)
        numbers = np.flatnonzero(np.diff(quotes, prepend=-2) != 1)
        starts, lengths = quotes[numbers], np.diff(numbers, append=len(quotes))
        opening: Flags = self._begins_field[array[starts - 1]]
        if len(starts) and not starts[0]:
            opening[0] = self._begins_field[self._before]
        opening |= np.equal(starts + chunk.base, self.first)
        if held:
            if not len(starts) or starts[0]:
                starts, lengths = np.concatenate([[0], starts]), np.concatenate([[0], lengths])
                opening = np.concatenate([[False], opening])
            lengths[0] += held
            opening[0] = held_opens
            # It begins before the chunk.
            ends = starts + lengths
            ends[0] -= held
        else:
            ends = starts + lengths
        self._before, self._run = int(array[-1]), (0, False)
        if len(ends) and ends[-1] == chunk.size:
            self._run = int(lengths[-1]), bool(opening[-1])
            ends, lengths, opening = ends[:-1], lengths[:-1], opening[:-1]
        odd = lengths % 2 == 1
        return ends[odd], opening[odd]


@dataclass(frozen=True, slots=True)
class CsvRecords:
    r"""Records of one file, whose columns its header has named: dicts of strings.

    Example:
        >>> records = csv_records(b"id,text\n", ",")
        >>> records.fast(memoryview(b'7,"good\nday"\n'))
        {'id': '7', 'text': 'good\nday'}
    """

    names: tuple[str, ...]
    delimiter: str
    wrong: str = ""
    """The error of the header; empty if there is none."""

    def fast(self, view: memoryview) -> dict[str, str]:
        """Return the record of a range of bytes.

        Raises:
            ValueError: it has too many or too few fields, or the header is wrong.
            csv.Error: the quoting is wrong.
        """
        text = str(view, "utf-8")
        if '"' in text:
            # Strictly, so that what is torn is no record; what else it refuses is read by `recover`.
            fields = next(csv.reader((text,), delimiter=self.delimiter, strict=True))
        else:
            fields = text.rstrip(_ENDS).split(self.delimiter)
        if len(fields) != len(self.names) or self.wrong:
            raise self._misfit(fields)
        return dict(zip(self.names, fields, strict=True))

    def recover(self, record: bytes) -> dict[str, str]:
        """Return a record that ``fast`` raised for.

        Raises:
            ValueError: a quote is not closed, or there are too many or too few fields.
        """
        fields = _fields(str(record, "utf-8"), self.delimiter)
        if len(fields) != len(self.names) or self.wrong:
            raise self._misfit(fields)
        return dict(zip(self.names, fields, strict=True))

    def _misfit(self, fields: list[str]) -> ValueError:
        if self.wrong:
            return ValueError(f"the header is wrong: {self.wrong}")
        return ValueError(
            f"it has {len(fields)} fields, and the header names {len(self.names)} columns: "
            f"{', '.join(map(repr, self.names))}"
        )


def csv_records(head: bytes, delimiter: str) -> CsvRecords:
    """Return the decoder of the records of a file.

    Args:
        head: the bytes before the first record.
        delimiter: the character between fields.
    """
    try:
        text = str(head, "utf-8").removeprefix("\ufeff").strip(_ENDS)
        names = tuple(_fields(text, delimiter))
    except ValueError as error:
        return CsvRecords((), delimiter, str(error))
    return CsvRecords(names, delimiter, _named_twice(names))


def record_span(view: memoryview) -> int:
    r"""Return the length of the record at the start of its range, without its line end.

    Example:
        >>> record_span(memoryview(b'"good\nday"\r\n\n'))
        10
    """
    return len(bytes(view).rstrip(b"\r\n"))


def _named_twice(names: tuple[str, ...]) -> str:
    twice = [name for name, count in Counter(names).items() if count > 1]
    return f"the header names {', '.join(map(repr, twice))} more than once" if twice else ""


def _fields(text: str, delimiter: str) -> list[str]:
    """Return the fields of a record that may be followed by line ends.

    Raises:
        ValueError: a quote is not closed.
    """
    body, fields, at = text.rstrip(_ENDS), [], 0
    while True:
        start, quoted = at, []
        while body.startswith('"', at):  # a quote that follows a closing one makes both of them a quote
            close = body.find('"', at + 1)
            if close < 0:
                message = f"the quote at character {start} opens a field, and nothing closes it: it was torn"
                raise ValueError(message)
            quoted.append(body[at + 1 : close])
            at = close + 1
        stop = body.find(delimiter, at)
        fields.append('"'.join(quoted) + body[at : stop if stop >= 0 else len(body)])
        if stop < 0:
            return fields
        at = stop + 1
