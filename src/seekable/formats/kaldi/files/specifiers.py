"""Rspecifiers and wspecifiers: the strings that name a table and say how it is read or written.

A specifier is a list of options, a colon, and extended filenames: ``ark,s,cs:-``, ``scp,p:data/feats.scp``,
``ark,scp,t:out.ark,out.scp``. The functions here are pure: nothing is opened.
"""

from __future__ import annotations

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
        seekable.errors.InvalidArgument: 'data/feats.scp' is no rspecifier: it has no ':'. Write ...
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
                f"{item!r} is no option" if item else "an option is empty: two separators, or one at an end"
            )
            reason = f"{found}. Before the ':' stand options, each separated by one comma or space: {known}"
            raise _invalid(specifier, what, reason)
    if not kinds:
        raise _invalid(specifier, what, "before the ':' stands neither ark nor scp")
    return kinds, fields


def _invalid(specifier: str, what: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"{specifier!r} is no {what}: {reason}")


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
