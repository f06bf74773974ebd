"""Extended filenames: rxfilenames, which are read, and wxfilenames, which are written.

=====================  ============================  ==========================
kind                   rxfilename                    wxfilename
=====================  ============================  ==========================
standard stream        ``""`` or ``"-"``             ``""`` or ``"-"``
pipe                   ``"gunzip -c a.gz |"``        ``"| gzip -c > a.gz"``
file                   ``"data/a.mat"``              ``"data/a.mat"``
offset into a file     ``"data/feats.ark:1234"``
=====================  ============================  ==========================

The functions are pure: they look at the text alone, and no file or command is touched.
"""

from __future__ import annotations

import os
import re
from typing import Final, Literal

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.specifiers import SPACE, checked_text, is_specifier

RxKind = Literal["stdin", "pipe", "offset", "file"]
"""The kinds of valid rxfilenames."""

WxKind = Literal["stdout", "pipe", "file"]
"""The kinds of valid wxfilenames."""

_OFFSET: Final = re.compile(r"(.*):([0-9]+)", re.DOTALL)


def classify_rxfilename(rxfilename: str) -> RxKind | Literal["invalid"]:
    """Return the kind of an rxfilename: stdin, pipe, offset, file or invalid.

    Raises:
        WrongType: it is not a str.

    Example:
        >>> [classify_rxfilename(name) for name in ("-", "gunzip -c a.gz |", "a.ark:12", "a.mat", "| b")]
        ['stdin', 'pipe', 'offset', 'file', 'invalid']
    """
    try:
        return check_rxfilename(rxfilename)
    except InvalidArgument:
        return "invalid"


def classify_wxfilename(wxfilename: str) -> WxKind | Literal["invalid"]:
    """Return the kind of a wxfilename: stdout, pipe, file or invalid.

    Raises:
        WrongType: it is not a str.

    Example:
        >>> [classify_wxfilename(name) for name in ("-", "| gzip -c > a.gz", "a.mat", "a.ark:12")]
        ['stdout', 'pipe', 'file', 'invalid']
    """
    try:
        return check_wxfilename(wxfilename)
    except InvalidArgument:
        return "invalid"


def check_rxfilename(rxfilename: str) -> RxKind:
    """Return the kind of a valid rxfilename.

    Raises:
        InvalidArgument: it cannot be read; the message has the reason.
        WrongType: it is not a str.

    Example:
        >>> check_rxfilename("a.ark:12")
        'offset'
        >>> check_rxfilename("| gzip -c")
        Traceback (most recent call last):
        ...
        seekable.errors.InvalidArgument: '| gzip -c' is no rxfilename: it begins with '|', so it is ...
    """
    if checked_text("rxfilename", rxfilename) in {"", "-"}:
        return "stdin"
    reason = ""
    if rxfilename[0] == "|":
        reason = "it begins with '|', so it is a command to write to. A command to read from ends with '|'"
    elif rxfilename[-1] == "|" and "\0" not in rxfilename:
        return "pipe"
    elif reason := _misplaced(rxfilename):
        pass
    elif _OFFSET.fullmatch(rxfilename):
        return "offset"
    elif "|" in rxfilename:
        reason = "'|' stands in its middle. A command to read from ends with '|'"
    else:
        return "file"
    raise InvalidArgument(f"{rxfilename!r} is no rxfilename: {reason}")


def check_wxfilename(wxfilename: str) -> WxKind:
    """Return the kind of a valid wxfilename.

    Raises:
        InvalidArgument: it cannot be written to; the message has the reason.
        WrongType: it is not a str.

    Example:
        >>> check_wxfilename("| gzip -c > a.gz")
        'pipe'
    """
    if checked_text("wxfilename", wxfilename) in {"", "-"}:
        return "stdout"
    reason = ""
    if wxfilename[0] == "|" and "\0" not in wxfilename:
        return "pipe"
    if wxfilename[-1] == "|":
        reason = "it ends with '|', so it is a command to read from. A command to write to begins with '|'"
    elif reason := _misplaced(wxfilename):
        pass
    elif _OFFSET.fullmatch(wxfilename):
        reason = "it ends with ':' and digits, an offset into a file, where nothing can be written"
    elif "|" in wxfilename:
        reason = "'|' stands in its middle. A command to write to begins with '|'"
    else:
        return "file"
    raise InvalidArgument(f"{wxfilename!r} is no wxfilename: {reason}")


def _misplaced(name: str) -> str:
    """Return why a name is neither a file nor an offset; an empty text if it may be one."""
    if "\0" in name:
        return "it has a NUL character, which no filename has"
    if name[0] in SPACE or name[-1] in SPACE:
        return "it begins or ends with white space. Leave that out"
    # Other first letters are not looked at, as in Kaldi: "b,ark:x" is a file.
    if name[0] in "as" and ":" in name and is_specifier(name):
        return "it is a specifier of a table. A filename has no 'ark:' or 'scp:' before it"
    return ""


def command_of(pipe: str) -> str:
    """Return the command of an rxfilename or wxfilename that is a pipe.

    Raises:
        InvalidArgument: there is no command beside the ``|``.

    Example:
        >>> command_of("gunzip -c a.gz |"), command_of("| gzip -c > a.gz")
        ('gunzip -c a.gz', 'gzip -c > a.gz')
    """
    command = (pipe[1:] if pipe.startswith("|") else pipe[:-1]).strip(SPACE)
    if not command:
        message = f"{pipe!r} is a pipe without a command"
        raise InvalidArgument(message)
    return command


def filename_text(name: object) -> str:
    """Return an extended filename that a user gave, as a text that can be the name of a file.

    Raises:
        WrongType: it is neither a str nor a path.
        InvalidArgument: no file can have such a name.
    """
    text = checked_text("a filename", os.fspath(name) if isinstance(name, os.PathLike) else name)
    try:
        os.fsencode(text)
    except UnicodeError:
        raise InvalidArgument(f"a filename must be a name that a file can have (got {text!r})") from None
    return text


def split_offset(rxfilename: str) -> tuple[str, int]:
    """Return the path and the byte offset of an rxfilename, offset 0 if it has none.

    Raises:
        WrongType: it is no str.

    Example:
        >>> split_offset("data/feats.ark:1234"), split_offset("data/a.mat")
        (('data/feats.ark', 1234), ('data/a.mat', 0))
    """
    found = _OFFSET.fullmatch(checked_text("rxfilename", rxfilename))
    if not found:
        return rxfilename, 0
    # Python refuses to convert thousands of digits, and no file has 10**4000 bytes.
    return found[1], int(found[2].lstrip("0")[:4000] or "0")


def split_range(rxfilename: str) -> tuple[str, str | None]:
    """Return an rxfilename without its range, and the text between the brackets, None if there is no range.

    Args:
        rxfilename: an rxfilename, maybe with a range at its end, such as ``feats.ark:1234[0:51,89:100]``.

    Raises:
        InvalidArgument: it ends with ``]``, and has not exactly one ``[``, or nothing before that.

    Example:
        >>> split_range("feats.ark:1234[0:51]"), split_range("x[1].ark:3")
        (('feats.ark:1234', '0:51'), ('x[1].ark:3', None))
    """
    if not checked_text("rxfilename", rxfilename).endswith("]"):
        return rxfilename, None
    name, *rest = rxfilename.split("[")
    if len(rest) != 1 or not name:
        message = (
            f"{rxfilename!r} ends with ']', so it must be NAME[RANGE] with one '[' "
            f"(got {len(rest)} of them{'' if name else ', with nothing before'})"
        )
        raise InvalidArgument(message)
    return name, rest[0][:-1]
