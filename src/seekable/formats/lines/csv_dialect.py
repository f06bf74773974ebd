r"""The dialects of CSV: what stands between fields, what quotes them, and the encoding of the text.

A dialect is part of the name of the format, because it decides where records start: ``csv``, ``tsv``,
``csv-pipe``, ``tsv-unquoted``, ``csv-x01-in-cp1252``.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from seekable.errors import InvalidArgument

__all__ = ["LIKELY_DELIMITERS", "Dialect", "checked_dialect", "dialect_of", "is_csv"]

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
"""Delimiters that lines of text have too, so that such a line is no sign of a record."""


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
        """True if a record of several lines is doubtful where a line of it could be a record of its own."""
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
