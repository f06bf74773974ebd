"""The holder of a table or an object, where the command line does not name it."""

from __future__ import annotations

from seekable.cli.kaldi.targets import looks_like_a_table
from seekable.errors import InvalidArgument
from seekable.formats.kaldi.holder_detection import detect_holder
from seekable.kaldi import classify_rxfilename, open_rx, parse_rspecifier, split_range
from seekable.kaldi.files.file_commands import file_command
from seekable.kaldi.files.filenames import command_of
from seekable.kaldi.holders.candidates import candidates_of

__all__ = ["chosen_holder"]

_HEAD_BYTES = 1 << 12


def chosen_holder(holder: str | None, source: str) -> str:
    """Return the name of the holder of a table or an object.

    Args:
        holder: the name on the command line; None to find it from the first bytes of objects.
        source: a rspecifier, or the extended filename of one object.

    Raises:
        InvalidArgument: the bytes fit several holders or none, or come from a stream, which is read once.
        DataNotFound, AccessDenied, UnsupportedFormat: there is no such file, or it cannot be read.
    """
    if holder is not None:
        return holder
    if not looks_like_a_table(source):
        return _of_object(split_range(source)[0])
    specifier = parse_rspecifier(source)
    _refuse_stream(specifier.rxfilename)
    return detect_holder(specifier.kind, [specifier.rxfilename])


def _refuse_stream(rxfilename: str) -> None:
    kind = classify_rxfilename(rxfilename)
    if kind == "stdin" or (kind == "pipe" and file_command(command_of(rxfilename)) is None):
        message = (
            f"say --holder NAME: the type of objects is found from the first of them in files, and "
            f"{rxfilename!r} can be read only once"
        )
        raise InvalidArgument(message)


def _of_object(rxfilename: str) -> str:
    _refuse_stream(rxfilename)
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
