"""The holder of a table or an object, where the command line does not name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.cli.kaldi.targets import looks_like_a_table
from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.file_commands import file_command
from seekable.formats.kaldi.files.filenames import command_of
from seekable.formats.kaldi.files.pipes import pipes_inside
from seekable.formats.kaldi.files.streams import StandardInput
from seekable.formats.kaldi.holder_detection import detect_holder
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.kaldi import classify_rxfilename, open_rx, parse_rspecifier, split_range

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes

__all__ = ["chosen_holder"]

_HEAD_BYTES = 1 << 12


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
