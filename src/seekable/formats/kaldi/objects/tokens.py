"""Tokens, such as ``<Nnet>``, pretty text between them, and the binary header before an object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.objects.cursor import Cursor
from seekable.formats.kaldi.objects.file_cursor import borrowed

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.cursor import Output

BINARY_HEADER = b"\0B"
TOKEN: Final = rb"[\x21-\x7e\x80-\xfe]++"
"""The expression for the bytes of a token or a key: no white space, no control characters, no byte 255."""

TOKEN_AND_SPACE: Final = rb"(" + TOKEN + rb")(?:[ \t]|(?=[\r\n]))"
"""The expression for a key and the space after it. A line end after a key belongs to the object."""

_NOT_ASCII: Final = re.compile("[^\\x00-\\x20\\x7f\\ud800-\\udc7f\\udcff-\\udfff]+")
"""A token as text. A surrogate stands for a byte that is not UTF-8; other surrogates are not valid."""

_SPACES: Final = b" \t\n\r\f\v"


def read_header(file: Any) -> bool:
    r"""Return True, and move past the header, if a binary object begins here; return False for text.

    Args:
        file: a binary file, or a cursor.

    Raises:
        CorruptObject: a null byte is there without the ``B`` that must follow it.

    Example:
        >>> import io
        >>> read_header(io.BytesIO(b"\0BFM ")), read_header(io.BytesIO(b"text"))
        (True, False)
    """
    if isinstance(file, Cursor):
        return _read_header(file)
    with borrowed(file) as cursor:
        return _read_header(cursor)


def _read_header(cursor: Cursor) -> bool:
    if cursor.peek() != 0:
        return False
    header = cursor.take(2, "the binary header")
    if header != BINARY_HEADER:
        at = cursor.position - len(header)
        raise cursor.error(f"the binary header {BINARY_HEADER!r}", repr(bytes(header)), at=at)
    return True


def write_header(file: Output, *, binary: bool) -> None:
    """Write the header of a binary object; write nothing for text."""
    if binary:
        checked_output(file).write(BINARY_HEADER)


def checked_output(file: Output) -> Output:
    """Return a file to write to.

    Raises:
        WrongType: nothing can be written to it.
    """
    if not hasattr(file, "write"):
        raise WrongType(f"file must have write() (got {file!r:.200} of type {type(file).__name__})")
    return file


def is_binary(file: Any, binary: bool | None) -> bool:  # noqa: FBT001 - the value that is decided here
    """Return `binary`, or the attribute ``binary`` of an opened Kaldi file if it is None.

    Raises:
        WrongType: it is None, and the file has no such attribute.
    """
    if not hasattr(file, "read"):
        checked_output(file)
    if binary is None:
        binary = getattr(file, "binary", None)
    if not isinstance(binary, bool):
        kind = type(file).__name__
        raise WrongType(f"binary must be True or False (got {binary!r}); a {kind} does not say it itself")
    return binary


def decoded(raw: bytes) -> str:
    """Return bytes of a file as text; bytes that are not UTF-8 survive a round trip."""
    return raw.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes of text that `decoded` has returned."""
    return text.encode("utf-8", "surrogateescape")


def is_token(text: str) -> bool:
    r"""Return True if `text` can be a token or a key: not empty, no whitespace, no control characters.

    Example:
        >>> is_token("utt-1"), is_token("a b"), is_token(""), is_token("\x01")
        (True, False, False, False)
    """
    if text.isascii():
        return text.isprintable() and " " not in text and bool(text)
    return _NOT_ASCII.fullmatch(text) is not None


def check_token(name: str, value: object) -> None:
    """Raise an error for an argument that is not a token, and so cannot be a key either.

    Raises:
        WrongType: it is not a str.
        InvalidArgument: it is empty, or contains whitespace or a control character.
    """
    if not isinstance(value, str):
        raise WrongType(f"{name} must be a str (got {value!r} of type {type(value).__name__})")
    if not is_token(value):
        raise InvalidArgument(
            f"{name} must be a word without whitespace or control characters (got {value!r})"
        )


def checked_token(name: str, value: object) -> bytes:
    """Return the bytes of a token; errors as in `check_token`."""
    check_token(name, value)
    assert isinstance(value, str)
    return encoded(value)


def write_token(file: Output, token: str, *, binary: bool | None = None) -> None:  # noqa: ARG001 - one form
    """Write a token and one space, in text and in binary alike.

    Raises:
        InvalidArgument: it is empty or contains whitespace.
    """
    checked_output(file).write(checked_token("token", token) + b" ")


def read_token(file: Any, *, binary: bool | None = None) -> str:  # noqa: ARG001 - one form
    """Return the next token, and move past it and the one whitespace byte that must follow.

    Raises:
        CorruptObject: no token is there, or no whitespace follows it.

    Example:
        >>> import io
        >>> read_token(io.BytesIO(b"<Nnet> 5 "), binary=True)
        '<Nnet>'
    """
    with borrowed(file) as cursor:
        return decoded(token_bytes(cursor, "a token"))


def expect_token(file: Any, token: str, *, binary: bool | None = None) -> None:  # noqa: ARG001 - one form
    """Move past a token that must be `token`; ``Foo>`` is taken for ``<Foo>`` too, as Kaldi does.

    Raises:
        CorruptObject: another token is there, or none.
    """
    wanted = checked_token("token", token)
    with borrowed(file) as cursor:
        cursor.skip_spaces()
        start = cursor.position
        found = token_bytes(cursor, f"the token {token!r}")
        if found != wanted and not (wanted[:1] == b"<" and found == wanted[1:]):
            raise cursor.error(f"the token {token!r}", repr(decoded(found)), at=start)


def peek_token(file: Any, *, binary: bool | None = None) -> str:
    """Return the first character of the next token, skipping one ``<``; an empty string at the end.

    The file must be able to go back by a byte: it is a file of ``open(path, "rb")``, seekable, or in memory.

    Example:
        >>> import io
        >>> peek_token(io.BytesIO(b"<Nnet> 5 "), binary=True)
        'N'
    """
    with borrowed(file) as cursor:
        if not is_binary(file, binary):
            cursor.skip_spaces()
        ahead = cursor.preview()[:2]
        if ahead == b"<":  # the last byte that has arrived: as in Kaldi, expect_token accepts the rest alone
            cursor.skip(1, "<")
            ahead = cursor.preview()
        return decoded(ahead.removeprefix(b"<")[:1])


def token_bytes(cursor: Cursor, what: str) -> bytes:
    """Return the next word; leading whitespace is skipped, and one whitespace byte after it is consumed."""
    cursor.skip_spaces()
    found = cursor.word(what)
    if cursor.peek() < 0:
        raise cursor.error(f"whitespace after {decoded(found)!r}")
    cursor.skip(1, "whitespace")
    return found


def write_pretty(file: Output, text: str, *, binary: bool | None = None) -> None:
    """Write any text as it is in a text file; write nothing in a binary file."""
    if not is_binary(file, binary):
        file.write(encoded(text))


def expect_pretty(file: Any, text: str, *, binary: bool | None = None) -> None:
    r"""Move past `text` in a text file; read nothing in a binary file.

    Any run of whitespace matches any other run of whitespace; leading and trailing whitespace of `text` may
    be absent.

    Raises:
        CorruptObject: another text is there.

    Example:
        >>> import io
        >>> file = io.BytesIO(b"num  frames\n= 5")
        >>> expect_pretty(file, "num frames = ", binary=False)
        >>> file.read()
        b'5'
    """
    if is_binary(file, binary):
        return
    raw = encoded(text)
    with borrowed(file) as cursor:
        if raw[:1].isspace():
            cursor.skip_spaces()
        for number, word in enumerate(raw.split()):
            if number:
                _expect_spaces(cursor, text)
            start = cursor.position
            if cursor.peek() < 0 or (found := bytes(cursor.take(len(word), f"the text {text!r}"))) != word:
                shown = None if cursor.peek() < 0 and cursor.position == start else repr(decoded(found))
                raise cursor.error(f"the text {text!r}", shown, at=start)
        if raw.strip(_SPACES) and raw[-1:].isspace():
            cursor.skip_spaces()


def _expect_spaces(cursor: Cursor, text: str) -> None:
    start = cursor.position
    cursor.skip_spaces()
    if cursor.position == start:
        raise cursor.error(f"the text {text!r} with whitespace here")
