"""Tables and objects as a command line names them: their specifiers, and their holders."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.filenames import command_of
from seekable.formats.kaldi.files.pipes import file_command, pipes_inside
from seekable.formats.kaldi.files.streams import StandardInput
from seekable.formats.kaldi.holder_detection import detect_holder
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.kaldi import (
    classify_rxfilename,
    classify_wxfilename,
    open_rx,
    parse_rspecifier,
    parse_wspecifier,
    split_range,
)

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes

_SPECIFIER = re.compile(r"([a-z]+[, ])*(ark|scp)([, ][a-z]*)*:")
_HEAD_BYTES = 1 << 12


def looks_like_a_table(text: str) -> bool:
    """Return True for a text that is meant as a specifier, also if one of its options is wrong.

    Example:
        >>> [looks_like_a_table(text) for text in ("ark,x:a", "data/a.ark", "s3://a", "sox a.scp -t wav - |")]
        [True, False, False, False]
    """
    return _SPECIFIER.match(text) is not None


def as_rspecifier(path: str) -> str:
    """Return the rspecifier of a table, also of a file that is named without one, by its suffix.

    Example:
        >>> as_rspecifier("ark,s:-"), as_rspecifier("feats.scp"), as_rspecifier("feats.1.ark")
        ('ark,s:-', 'scp:feats.scp', 'ark:feats.1.ark')
    """
    if looks_like_a_table(path):
        return path
    return f"scp:{path}" if path.lower().endswith(".scp") else f"ark:{path}"


def wxfilenames(wspecifier: str) -> list[str]:
    """Return the extended filenames of the archive and the script that are written; none with ``scp:``.

    Example:
        >>> wxfilenames("ark,scp:a.ark,a.scp"), wxfilenames("scp:targets.scp")
        (['a.ark', 'a.scp'], [])
    """
    specifier = parse_wspecifier(wspecifier)
    if specifier.archive_wxfilename is None:
        return []
    return [specifier.archive_wxfilename, *filter(None, [specifier.script_wxfilename])]


def script_of_targets(wspecifier: str) -> str:
    """Return the extended filename of the script that names the files to write, of ``scp:``.

    Example:
        >>> script_of_targets("scp:targets.scp")
        'targets.scp'
    """
    script = parse_wspecifier(wspecifier).script_wxfilename
    assert script is not None
    return script


def is_on_stdout(wspecifier: str) -> bool:
    """Return True if a table, or its script, is written to standard output.

    Example:
        >>> is_on_stdout("ark,t:-"), is_on_stdout("ark:a.ark")
        (True, False)
    """
    return any(classify_wxfilename(name) == "stdout" for name in wxfilenames(wspecifier))


def chosen_holder(holder: str | None, source: str, pipes: Pipes) -> str:
    """Return the name of the holder of a table or an object.

    Args:
        holder: the name on the command line; None to find it from the first bytes of objects.
        source: a rspecifier, or the extended filename of one object.
        pipes: ``"allow"`` runs the commands of the first lines of a script.

    Raises:
        InvalidArgument: the bytes fit several holders or none, or come from a command, which is run once.
        DataNotFound, AccessDenied, UnsupportedFormat: there is no such file, or it cannot be read.
    """
    if holder is not None:
        return holder
    if not looks_like_a_table(source):
        return _of_object(split_range(source)[0])
    specifier = parse_rspecifier(source)
    _refuse_command(specifier.rxfilename)
    return detect_holder(specifier.kind, [specifier.rxfilename], pipes=pipes_inside(pipes))


def _refuse_command(rxfilename: str) -> None:
    if classify_rxfilename(rxfilename) == "pipe" and file_command(command_of(rxfilename)) is None:
        message = (
            f"say --holder NAME: the type of objects is found from the first of them in files, and "
            f"{rxfilename!r} is a command, which is run only once"
        )
        raise InvalidArgument(message)


def _of_object(rxfilename: str) -> str:
    _refuse_command(rxfilename)
    if classify_rxfilename(rxfilename) == "stdin":
        head = StandardInput().peek(_HEAD_BYTES)
    else:
        with open_rx(rxfilename, header=False) as file:
            head = file.read(_HEAD_BYTES)
    names = candidates_of(head)
    if len(names) == 1:
        return names[0]
    found = f"it can be {', '.join(names)}" if names else "no type is known by them"
    message = (
        f"say --holder NAME: the first bytes of {rxfilename!r} do not tell the type of the object: {found}"
    )
    raise InvalidArgument(message)
