"""The strings that name a table or a file: specifiers and extended filenames, parsed and checked.

A specifier is a list of options, a colon, and extended filenames: ``ark,s,cs:-``, ``scp,p:data/feats.scp``,
``ark,scp,t:out.ark,out.scp``. An rxfilename is read, and a wxfilename is written:

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
import warnings
from dataclasses import dataclass
from typing import Final, Literal, final

from seekable.errors import (
    CorruptTable,
    InvalidArgument,
    KaldiWarning,
    PipeRefused,
    UnsupportedFormat,
    WrongType,
)

SPACE: Final = " \t\n\v\f\r"
"""The characters that Kaldi takes for white space."""

_ITEMS = re.compile("[, ]")
UNREADABLE: Final = (CorruptTable, UnsupportedFormat, OSError)
"""The errors of data that cannot be read; `PermissiveWarnings.warn` raises `PipeRefused` all the same."""


@dataclass(frozen=True, slots=True)
class Rspecifier:
    """The parts of a rspecifier: a table to read."""

    kind: Literal["ark", "scp"]
    """``"ark"`` for an archive, ``"scp"`` for a script file."""

    rxfilename: str
    """The extended filename of the archive or the script."""

    once: bool = False
    """Option ``o``: each key is requested at most once."""

    permissive: bool = False
    """Option ``p``: entries that cannot be read count as missing."""

    sorted: bool = False
    """Option ``s``: the keys of the table are in ascending order of their bytes."""

    called_sorted: bool = False
    """Option ``cs``: keys are requested in ascending order of their bytes."""

    background: bool = False
    """Option ``bg``: a sequential reader reads one entry ahead, in a thread."""


@dataclass(frozen=True, slots=True)
class Wspecifier:
    """The parts of a wspecifier: a table to write."""

    kind: Literal["ark", "scp", "both"]
    """``"ark"`` for an archive, ``"scp"`` for the files that a script names, ``"both"`` for an archive and a
    new script with its offsets."""

    archive_wxfilename: str | None
    """The extended filename of the archive; None for ``"scp"``."""

    script_wxfilename: str | None
    """The extended filename of the script; None for ``"ark"``."""

    binary: bool = True
    """False with option ``t``: entries are written as text."""

    flush: bool = False
    """Option ``f``: the archive is flushed after each entry."""

    permissive: bool = False
    """Option ``p``: with ``"scp"``, entries whose key is not in the script are left out."""


_R_OPTIONS: Final[dict[str, dict[str, bool]]] = {
    "o": {"once": True},
    "no": {"once": False},
    "p": {"permissive": True},
    "np": {"permissive": False},
    "s": {"sorted": True},
    "ns": {"sorted": False},
    "cs": {"called_sorted": True},
    "ncs": {"called_sorted": False},
    "bg": {"background": True},
    "b": {},
    "t": {},
}
"""The fields that each option of a rspecifier sets; ``b`` and ``t`` are allowed and mean nothing."""

_W_OPTIONS: Final[dict[str, dict[str, bool]]] = {
    "b": {"binary": True},
    "t": {"binary": False},
    "f": {"flush": True},
    "nf": {"flush": False},
    "p": {"permissive": True},
}


def parse_rspecifier(rspecifier: str) -> Rspecifier:
    """Return the parts of a rspecifier.

    Options may stand in any order, before and after ``ark`` or ``scp``; the last of two that exclude each
    other counts.

    Args:
        rspecifier: options separated by single commas or spaces, a colon, and an extended filename.

    Raises:
        InvalidArgument: it is not an rspecifier; the message has the reason.
        WrongType: it is not a str.

    Example:
        >>> parse_rspecifier("scp,p:data/feats.scp").rxfilename
        'data/feats.scp'
        >>> parse_rspecifier("ark,o,s,cs:gunzip -c a.gz |").called_sorted
        True
        >>> parse_rspecifier("data/feats.scp")
        Traceback (most recent call last):
        ...
        seekable.errors.InvalidArgument: 'data/feats.scp' is not an rspecifier: it has no ':'. Write ...
    """
    items, rxfilename = _halves(rspecifier, "rspecifier")
    kinds, fields = _read(rspecifier, items, _R_OPTIONS, "rspecifier")
    match kinds:
        case ["ark"]:
            return Rspecifier("ark", rxfilename, **fields)
        case ["scp"]:
            return Rspecifier("scp", rxfilename, **fields)
    raise _invalid(
        rspecifier, "rspecifier", f"a table to read is either ark or scp (got {' and '.join(kinds)})"
    )


def parse_wspecifier(wspecifier: str) -> Wspecifier:
    """Return the parts of a wspecifier.

    With ``ark,scp``, the first comma after the colon separates the archive from the script.

    Args:
        wspecifier: options separated by single commas or spaces, a colon, and one or two extended filenames.

    Raises:
        InvalidArgument: it is not a wspecifier; the message has the reason.
        WrongType: it is not a str.

    Example:
        >>> both = parse_wspecifier("ark,scp,t:out.ark,out.scp")
        >>> both.kind, both.archive_wxfilename, both.script_wxfilename, both.binary
        ('both', 'out.ark', 'out.scp', False)
        >>> parse_wspecifier("ark:| gzip -c > out.ark.gz").archive_wxfilename
        '| gzip -c > out.ark.gz'
    """
    items, wxfilenames = _halves(wspecifier, "wspecifier")
    kinds, fields = _read(wspecifier, items, _W_OPTIONS, "wspecifier")
    match kinds:
        case ["ark"]:
            return Wspecifier("ark", wxfilenames, None, **fields)
        case ["scp"]:
            return Wspecifier("scp", None, wxfilenames, **fields)
        case ["ark", "scp"]:
            archive, comma, script = wxfilenames.partition(",")
            if comma:
                return Wspecifier("both", archive, script, **fields)
            reason = "with ark,scp two filenames follow the ':', separated by a comma"
        case _:
            reason = f"a table to write is ark, scp, or ark,scp in this order (got {','.join(kinds)})"
    raise _invalid(wspecifier, "wspecifier", reason)


def is_specifier(text: str) -> bool:
    """Return True for a valid rspecifier or wspecifier.

    Example:
        >>> is_specifier("ark,t:a"), is_specifier("s3://bucket/a")
        (True, False)
    """
    for parse in (parse_rspecifier, parse_wspecifier):
        try:
            parse(text)
        except InvalidArgument:
            continue
        return True
    return False


def checked_text(name: str, value: object) -> str:
    """Return an argument that is a str.

    Raises:
        WrongType: it is something else.
    """
    if not isinstance(value, str):
        message = f"{name} must be a str (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    return value


def _halves(specifier: str, what: str) -> tuple[list[str], str]:
    """Return the items before the first colon, and the text after it."""
    before, colon, after = checked_text(what, specifier).partition(":")
    if not colon:
        found = "it is empty" if not specifier else "it has no ':'"
        raise _invalid(specifier, what, f"{found}. Write 'ark:FILE' for an archive, 'scp:FILE' for a script")
    if specifier[-1] in SPACE:
        raise _invalid(specifier, what, "it ends with white space. Leave that out")
    return _ITEMS.split(before), after


def _read(
    specifier: str, items: list[str], options: dict[str, dict[str, bool]], what: str
) -> tuple[list[str], dict[str, bool]]:
    """Return which of ``ark`` and ``scp`` the items have, in their order, and the fields that are set."""
    kinds: list[str] = []
    fields: dict[str, bool] = {}
    for item in items:
        if item in {"ark", "scp"}:
            kinds.append(item)
        elif item in options:
            fields |= options[item]
        else:
            known = " ".join(["ark", "scp", *options])
            found = (
                f"{item!r} is not an option"
                if item
                else "an option is empty: two separators, or one at an end"
            )
            reason = f"{found}. Before the ':' stand options, each separated by one comma or space: {known}"
            raise _invalid(specifier, what, reason)
    if not kinds:
        raise _invalid(specifier, what, "before the ':' stands neither ark nor scp")
    return kinds, fields


def _invalid(specifier: str, what: str, reason: str) -> InvalidArgument:
    article = "an" if what == "rspecifier" else "a"
    return InvalidArgument(f"{specifier!r} is not {article} {what}: {reason}")


@final
class PermissiveWarnings:
    """The warnings of one reader: one for each kind of error."""

    def __init__(self, rspecifier: str) -> None:
        """Take the rspecifier, for messages."""
        self._rspecifier = rspecifier
        self._warned: set[type[BaseException]] = set()

    def warn(self, error: BaseException, what: str) -> None:
        """Warn about an error, unless there was one of its class before.

        Args:
            error: what happened.
            what: what is left out.

        Raises:
            PipeRefused: it is this error.
        """
        if isinstance(error, PipeRefused):
            raise error
        if type(error) not in self._warned:
            self._warned.add(type(error))
            message = (
                f"{self._rspecifier}: option p leaves out {what}: {error}. Further errors of this kind have "
                f"no warning"
            )
            warnings.warn(message, KaldiWarning, stacklevel=4)


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
        seekable.errors.InvalidArgument: '| gzip -c' is not an rxfilename: it begins with '|', so it is ...
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
    raise InvalidArgument(f"{rxfilename!r} is not an rxfilename: {reason}")


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
    raise InvalidArgument(f"{wxfilename!r} is not a wxfilename: {reason}")


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
        WrongType: it is not a str.

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
