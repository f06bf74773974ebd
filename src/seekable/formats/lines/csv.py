r"""CSV: records that may go over several lines, the first of which names the columns.

Read as Python's own ``csv`` module reads it: a field is quoted if a quote is its first character; within it
``""`` is a quote, and line ends are text. Any other quote is a character like others, and so is what stands
between a closing quote and the next delimiter. A record ends with ``\n``, ``\r\n`` or ``\r``; an empty line
is none. Unlike there, a quoted field that the file ends in is an error: it was torn. The dialect of a file,
its delimiter, its quote and its encoding, is part of the name of the format (`Dialect`).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK, find_newlines
from seekable.index.digest import END_BYTES
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from seekable.index.finder import ByteChunk, ByteSource

    Int64s = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = [
    "LIKELY_DELIMITERS",
    "CsvRecords",
    "CsvScanner",
    "Dialect",
    "checked_dialect",
    "csv_records",
    "dialect_of",
    "is_csv",
    "record_span",
    "spellings",
]

LIKELY_DELIMITERS: Final = ",\t;|^\x01\x1f"
"""The delimiters that a header is searched for, where it seems to name one column."""

_WORDS: Final = {";": "semicolon", "|": "pipe"}
_BY_WORD: Final = {word: delimiter for delimiter, word in _WORDS.items()}
_NAME = re.compile(
    r"(?P<base>csv|tsv)(?:-(?P<delimiter>semicolon|pipe|x[0-9a-f]{2}))?"
    r"(?:-(?P<quote>quoted|unquoted|q[0-9a-f]{2}))?(?:-in-(?P<encoding>.+))?"
)
_UTF_8: Final = "utf-8"
_ASCII: Final = bytes(range(128))
_BYTES: Final = bytes(range(256))
_WIDE_SAFE: Final = frozenset(
    {
        "big5",
        "big5hkscs",
        "cp932",
        "cp949",
        "cp950",
        "euc_jp",
        "euc_kr",
        "gb18030",
        "gb2312",
        "gbk",
        "shift_jis",
    }
)
"""Encodings of several bytes a character, none of which is a line end, a quote, a comma or a tab."""

_SAFE_BELOW: Final = 0x30
_COMMON_IN_TEXT: Final = frozenset(",;")
"""Delimiters that lines of text have too, so that such a line is not a sign of a record."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file of CSV is written.

    Example:
        >>> Dialect().name, Dialect("|", quote="", encoding="cp1252").name
        ('csv', 'csv-pipe-unquoted-in-cp1252')
    """

    delimiter: str = ","
    """The character between fields."""

    quote: str = '"'
    """The character that quotes fields; empty if none does."""

    encoding: str = _UTF_8
    """The encoding of the text, as Python names it."""

    is_sure: bool = False
    """True if the user said that quotes quote: tabs and the like are mostly written without quoting."""

    @property
    def checks_lines(self) -> bool:
        """True if a record of several lines is doubtful where one of them could be a record itself."""
        return self.quote == '"' and not self.is_sure and self.delimiter not in _COMMON_IN_TEXT

    @property
    def name(self) -> str:
        """The name of the format in this dialect."""
        delimiter, quote = self.delimiter, self.quote
        parts = ["tsv" if delimiter == "\t" else "csv"]
        if delimiter not in ",\t":
            parts.append(_WORDS.get(delimiter, f"x{ord(delimiter):02x}"))
        if not quote:
            parts.append("unquoted")
        elif quote != '"':
            parts.append(f"q{ord(quote):02x}")
        elif self.is_sure and delimiter not in _COMMON_IN_TEXT:
            parts.append("quoted")
        return "-".join([*parts, *(["in", self.encoding] if self.encoding != _UTF_8 else [])])


def is_csv(name: str) -> bool:
    """Return True for the name of a format of CSV.

    Example:
        >>> is_csv("tsv-unquoted"), is_csv("text")
        (True, False)
    """
    return name.partition("-")[0] in ("csv", "tsv")


def dialect_of(name: str) -> Dialect:
    """Return the dialect in the name of a format.

    Raises:
        InvalidArgument: the name is of another form.

    Example:
        >>> dialect_of("csv-semicolon").delimiter, dialect_of("tsv-unquoted").quote
        (';', '')
    """
    found = _NAME.fullmatch(name)
    if found is None:
        message = (
            f"format {name!r} is not known; CSV is 'csv' or 'tsv', with the options delimiter=, quote= and "
            f"encoding= of sk.formats.Csv"
        )
        raise InvalidArgument(message)
    base, delimiter, quote, encoding = found.groups()
    given = "\t" if base == "tsv" else ","
    if delimiter:
        given = _BY_WORD.get(delimiter) or chr(int(delimiter[1:], 16))
    character = {None: '"', "quoted": '"', "unquoted": ""}.get(quote)
    character = chr(int(quote[1:], 16)) if character is None else character
    return checked_dialect(
        Dialect(given, character, _UTF_8 if encoding is None else encoding, quote == "quoted")
    )


def checked_dialect(dialect: Dialect) -> Dialect:
    """Return a dialect with the name of its encoding that Python prefers.

    Raises:
        InvalidArgument: records cannot be found by it.
    """
    delimiter, quote = dialect.delimiter, dialect.quote
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in "\r\n":
        message = f"delimiter must be one ASCII character and no line end (got {delimiter!r})"
        raise InvalidArgument(message)
    if len(quote) > 1 or not quote.isascii() or quote in tuple(f"\r\n{delimiter}"):
        message = (
            f"quote must be one ASCII character that is no line end and not the delimiter {delimiter!r}, or "
            f"'' where nothing is quoted (got {quote!r})"
        )
        raise InvalidArgument(message)
    encoding = _known_encoding(dialect.encoding)
    if encoding in _WIDE_SAFE and max(map(ord, delimiter + quote)) >= _SAFE_BELOW:
        message = (
            f"in {encoding} the byte of {delimiter!r} or of {quote!r} may be a part of another character: "
            f"convert the file once, iconv -f {encoding} -t UTF-8 FILE > NEW"
        )
        raise InvalidArgument(message)
    return Dialect(delimiter, quote, encoding, dialect.is_sure)


def _known_encoding(name: str) -> str:
    """Return the name of an encoding in which the bytes of ASCII stand for nothing else.

    Raises:
        InvalidArgument: there is no such encoding, or its bytes may stand for anything.
    """
    try:
        encoding = codecs.lookup(name).name
        is_ascii = _ASCII.decode(encoding) == _ASCII.decode("ascii")
        single = is_ascii and len(_BYTES.decode(encoding, "replace")) == len(_BYTES)
    except (LookupError, UnicodeError, AttributeError, TypeError, ValueError):
        encoding, is_ascii, single = "", False, False
    if encoding in ("utf-8", "utf-8-sig", "ascii"):
        return _UTF_8
    if not (single or (is_ascii and encoding in _WIDE_SAFE)):
        message = (
            f"encoding must be one in which line ends and quotes are single bytes, such as 'utf-8', "
            f"'latin-1', 'cp1252' or 'gb18030' (got {name!r}); convert other files once, by iconv -t UTF-8"
        )
        raise InvalidArgument(message)
    return encoding


_NEWLINE, _RETURN = b"\n\r"
_ENDS: Final = "\r\n"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
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
            UnsupportedFormat: they are not text, have another delimiter, or two columns of one name.
        """
        check_is_text(head, path)
        names, dialect = self._names(head), dialect_of(self.name)
        if len(names) == 1:
            for delimiter in LIKELY_DELIMITERS.replace(dialect.delimiter, ""):
                if delimiter in names[0]:
                    message = (
                        f"{path!r} has one column, {names[0]!r}, if {dialect.delimiter!r} stands between "
                        f"columns; it looks as if {delimiter!r} did: say "
                        f"sk.formats.Csv(delimiter={delimiter!r}), or rename the column if it is but one"
                    )
                    raise UnsupportedFormat(message)
        if twice := _named_twice(names):
            message = f"{path!r}: {twice}; rename one, or read its lines with format='text'"
            raise UnsupportedFormat(message)
        if doubt := self._doubt(head, len(names)):
            message = f"{path!r}: {doubt}"
            raise UnsupportedFormat(message)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets of the records, uint64, without that of the header."""
        quoting = _Quoting(source, dialect_of(self.name))
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

    def _doubt(self, head: bytes, columns: int) -> str:
        """Say where in the first bytes of a file a quote may be but a character; nothing where none may."""
        dialect = dialect_of(self.name)
        if not dialect.checks_lines or dialect.quote.encode() not in head:
            return ""
        lines = _LINE.findall(str(head, dialect.encoding, errors="ignore").removeprefix("\ufeff"))
        reader, first = _reader(lines, dialect), 0
        with suppress(csv.Error):  # a field is longer than it takes
            for _ in reader:
                if doubt := _doubt_of(lines[first : reader.line_num], columns, dialect):
                    return f"line {first + 1}: {doubt}"
                first = reader.line_num
        return ""

    def _names(self, head: bytes) -> tuple[str, ...]:
        """Return the names of columns; none without a header, or if the head holds only a part of it."""
        dialect = dialect_of(self.name)
        text = str(head, dialect.encoding, errors="ignore").removeprefix("\ufeff").lstrip(_ENDS)
        lines = io.StringIO(text, newline="")
        try:
            names = next(_reader(lines, dialect), ())
        except csv.Error:  # a field is longer than it takes
            return ()
        return () if len(head) == END_BYTES and lines.tell() == len(text) else tuple(names)


def _doubt_of(lines: Sequence[str], columns: int, dialect: Dialect) -> str:
    """Say that a line of a record could be a record of its own; nothing if none could.

    Args:
        lines: the lines of the record.
        columns: the number of columns that the header names.
        dialect: how the file is written.
    """
    if not any(line.count(dialect.delimiter) == columns - 1 for line in lines[1:]):
        return ""
    return (
        f"a quote opens a field that goes over {len(lines)} lines, and one of them has as many fields as the "
        f"header: say sk.formats.Csv(quote='') if quotes are characters like others in this file, or "
        f"sk.formats.Csv(quote={dialect.quote!r}) if they do quote"
    )


def _line_ends(chunk: ByteChunk) -> Int64s:
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
    runs matter: one that begins a field goes in, or out; after any other one it is outside in any case.
    """

    def __init__(self, source: ByteSource, dialect: Dialect) -> None:
        self.first = len(BYTE_ORDER_MARK) if source.head.startswith(BYTE_ORDER_MARK) else 0
        """The byte at which the first record begins."""
        self._begins_field: Flags = np.zeros(256, bool)
        self._begins_field[[ord(dialect.delimiter), _NEWLINE, _RETURN]] = True
        self._quote = ord(dialect.quote) if dialect.quote else _NONE
        self._inside = False
        self._before = 0
        """The last byte of the chunk before."""
        self._run = (0, False)
        """The number of quotes at the end of that chunk, and True if they begin a field."""

    def within(self, chunk: ByteChunk, places: Int64s) -> Flags:
        """Return True for each place of the next chunk that is within quotes; no place is a quote."""
        ends, opening = self._odd_runs(chunk)
        before = self._inside
        if not len(ends):
            return np.full(len(places), before)
        # Of a run that begins a field the state is turned; after another one the turns count from anew.
        turns = np.cumsum(opening) + before
        last = np.maximum.accumulate(np.where(opening, 0, turns))
        inside: Flags = np.equal((turns - last) % 2, 1)
        self._inside = bool(inside[-1])
        number = np.searchsorted(ends, places, side="right")
        return np.concatenate([[before], inside])[number]

    def _odd_runs(self, chunk: ByteChunk) -> tuple[Int64s, Flags]:
        """Return where runs of quotes with odd length end, and True for each that begins a field.

        A run that reaches the end of the chunk is left for the next one.
        """
        array, (held, held_opens) = chunk.array, self._run
        quote = self._quote
        some = quote != _NONE and chunk.buffer.find(quote, 0, chunk.size) >= 0
        quotes = np.flatnonzero(array == quote) if some else np.zeros(0, np.int64)
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


def _reader(lines: Iterable[str], dialect: Dialect, *, strict: bool = False) -> Any:
    if not dialect.quote:
        return csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE, strict=strict)
    return csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=strict)


@dataclass(frozen=True, slots=True)
class CsvRecords:
    r"""Records of one file, whose columns its header has named: dicts of strings.

    Example:
        >>> records = csv_records(b"id,text\n", Dialect())
        >>> records.fast(memoryview(b'7,"good\nday"\n'))
        {'id': '7', 'text': 'good\nday'}
    """

    names: tuple[str, ...]
    dialect: Dialect
    wrong: str = ""
    """The error of the header; empty if there is none."""

    def fast(self, view: memoryview) -> dict[str, str]:
        """Return the record of a range of bytes.

        Raises:
            ValueError: it has too many or too few fields, or the header is wrong.
            csv.Error: the quoting is wrong.
        """
        dialect = self.dialect
        text = str(view, dialect.encoding)
        if dialect.quote and dialect.quote in text:
            # Strictly, so that what is torn is not a record; what else it refuses is read by `recover`.
            fields = next(_reader((text,), dialect, strict=True))
            self._check_lines(text)
        else:
            fields = text.rstrip(_ENDS).split(dialect.delimiter)
        if len(fields) != len(self.names) or self.wrong:
            raise self._misfit(fields)
        return dict(zip(self.names, fields, strict=True))

    def recover(self, record: bytes) -> dict[str, str]:
        """Return a record that ``fast`` raised for.

        Raises:
            ValueError: a quote is not closed, or there are too many or too few fields.
        """
        text = _decoded(record, self.dialect)
        self._check_lines(text)
        fields = _fields(text, self.dialect)
        if len(fields) != len(self.names) or self.wrong:
            raise self._misfit(fields)
        return dict(zip(self.names, fields, strict=True))

    def _check_lines(self, text: str) -> None:
        """Check that no line of a record could be one of its own, as where quotes are but characters.

        Raises:
            ValueError: one could, and the user did not say what quotes are.
        """
        if self.dialect.checks_lines:
            lines = _LINE.findall(text.rstrip(_ENDS))
            if doubt := _doubt_of(lines, len(self.names), self.dialect):
                raise ValueError(doubt)

    def _misfit(self, fields: list[str]) -> ValueError:
        if self.wrong:
            return ValueError(f"the header is wrong: {self.wrong}")
        return ValueError(
            f"it has {len(fields)} fields, and the header names {len(self.names)} columns: "
            f"{', '.join(map(repr, self.names))}"
        )


@lru_cache(maxsize=256)
def csv_records(head: bytes, dialect: Dialect) -> CsvRecords:
    """Return the decoder of the records of a file.

    Args:
        head: the bytes before the first record.
        dialect: how the file is written.
    """
    try:
        text = _decoded(head, dialect).removeprefix("\ufeff").strip(_ENDS)
        names = tuple(_fields(text, dialect))
    except ValueError as error:
        return CsvRecords((), dialect, str(error))
    return CsvRecords(names, dialect, _named_twice(names))


def _decoded(raw: bytes, dialect: Dialect) -> str:
    """Return the text of some bytes.

    Raises:
        ValueError: they are none in the encoding of the file.
    """
    try:
        return str(raw, dialect.encoding)
    except UnicodeDecodeError as error:
        message = (
            f"it is no text in {dialect.encoding} ({error.reason}, {raw[error.start : error.start + 1]!r} at "
            f"its byte {error.start}): say sk.formats.Csv(encoding='cp1252') or the like"
        )
        raise ValueError(message) from None


def spellings(text: str, dialect: Dialect) -> list[bytes]:
    """Return the bytes that a text may be in the fields of a file; none if the encoding lacks it.

    Example:
        >>> spellings('a "b"', Dialect())
        [b'a ""b""', b'a "b"']
    """
    quote = dialect.quote
    written = {text, text.replace(quote, 2 * quote)} if quote else {text}
    try:
        return sorted(each.encode(dialect.encoding) for each in written)
    except UnicodeEncodeError:
        return []


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


def _fields(text: str, dialect: Dialect) -> list[str]:
    """Return the fields of a record that may be followed by line ends.

    Raises:
        ValueError: a quote is not closed.
    """
    body, fields, at = text.rstrip(_ENDS), [], 0
    delimiter, quote = dialect.delimiter, dialect.quote
    if not quote:
        return body.split(delimiter)
    while True:
        start, quoted = at, []
        while body.startswith(quote, at):  # a quote that follows a closing one makes both of them a quote
            close = body.find(quote, at + 1)
            if close < 0:
                message = (
                    f"the quote at character {start} opens a field, and nothing closes it: it was torn; or, "
                    f"if quotes are characters like others in this file, say sk.formats.Csv(quote='')"
                )
                raise ValueError(message)
            quoted.append(body[at + 1 : close])
            at = close + 1
        stop = body.find(delimiter, at)
        fields.append(quote.join(quoted) + body[at : stop if stop >= 0 else len(body)])
        if stop < 0:
            return fields
        at = stop + 1
