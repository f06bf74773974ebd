"""Script files, whose lines are ``<key> <extended filename>``."""

from __future__ import annotations

import re
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seekable.errors import CorruptTable
from seekable.formats.kaldi.files.opening import open_rx
from seekable.formats.kaldi.objects.tokens import TOKEN, decoded

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.rx_file import RxFile

__all__ = [
    "ScriptEntry",
    "check_is_script",
    "entries_of",
    "iter_script",
    "key_and_xfilename",
    "line_blocks",
    "line_problem",
    "read_script",
    "split_line",
]

_READ_BYTES: Final = 256 << 10
_LONGEST_LINE: Final = 1 << 20
"""Longer lines are no lines: the file is something else, and maybe larger than the memory."""

_SHOWN_BYTES: Final = 80

_KEY: Final = re.compile(TOKEN)

_NUL: Final = b"\0"
_VISIBLE: Final = bytes(range(0x21, 0x7F))
_PLAIN: Final = b"\t\n\r " + _VISIBLE
_FIELDS: Final = 2


class ScriptEntry(NamedTuple):
    """One line of a script. Entry ``i`` is line ``i + 1``, because each line has an entry."""

    key: str
    """The key. Bytes that are no UTF-8 are surrogates, as in file names."""

    xfilename: str
    """The rest of the line: an rxfilename, maybe with a range, where the script is read; a wxfilename where
    it says what to write. `split_range` separates a range."""


def read_script(
    rxfilename: str | os.PathLike[str],
    *,
    pipes: Pipes = "refuse",
    storage_options: Mapping[str, Any] | None = None,
) -> list[ScriptEntry]:
    r"""Return the entries of a script file, in its order; keys may occur several times.

    Args:
        rxfilename: the extended filename of the script.
        pipes: ``"allow"`` if it may be a command.
        storage_options: the options of the store of an address, as in `open_rx`.

    Raises:
        CorruptTable: a line is empty, or has no filename, or its key has control characters; or the file is
            binary. The message has the line.
        PipeFailed: a command failed.
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_rx`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"utt1 feats.ark:5\nutt2  gunzip -c a.gz |\n"), file.flush()
        ...     read_script(file.name)[1]
        ScriptEntry(key='utt2', xfilename='gunzip -c a.gz |')
    """
    return list(iter_script(rxfilename, pipes=pipes, storage_options=storage_options))


def iter_script(
    rxfilename: str | os.PathLike[str],
    *,
    pipes: Pipes = "refuse",
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[ScriptEntry]:
    """Yield the entries of a script file as they are read, in memory that does not grow.

    The file is opened when the first entry is requested. It is closed behind the last one, or with the
    iterator.
    Lines end with LF or CR LF.

    Args:
        rxfilename: the extended filename of the script.
        pipes: ``"allow"`` if it may be a command.
        storage_options: the options of the store of an address, as in `open_rx`.

    Raises:
        CorruptTable, PipeFailed, ...: as in `read_script`, after the entries of the lines before.
    """
    yield from entries_of(open_rx(rxfilename, pipes=pipes, storage_options=storage_options))


def entries_of(file: RxFile) -> Iterator[ScriptEntry]:
    """Yield the entries of an open script, and close it behind the last one; errors as in `read_script`."""
    with file:
        check_is_script(file)
        for block, number in line_blocks(file, partial(file.read1, _READ_BYTES)):
            yield from (
                _simple_entries(block) or _plain_entries(block) or _entries(block, number, file.rxfilename)
            )


def check_is_script(file: RxFile) -> None:
    """Raise an error for a file that begins with the binary header.

    Raises:
        CorruptTable: it does.
    """
    if file.binary:
        raise CorruptTable(
            f"{file.rxfilename!r} begins as a binary object, so it is no script file, which has lines of "
            f"'<key> <filename>'. An archive is named by ark: and not by scp:"
        )


def _simple_entries(block: bytes) -> Iterator[ScriptEntry] | None:
    """Return the entries of lines that are two words of plain ASCII with one space; None for other lines.

    It takes a third of the time of `_entries`, because all lines are split at once.
    """
    if block.translate(None, _VISIBLE) != b" \n" * block.count(b"\n"):
        return None
    if b"\n " in block or b" \n" in block or block[:1] == b" " or not block.endswith(b"\n"):
        return None
    words = block.decode("ascii").split()
    return map(tuple.__new__, repeat(ScriptEntry), zip(words[::2], words[1::2], strict=True))


def _plain_entries(block: bytes) -> Iterator[ScriptEntry] | None:
    """Return the entries of lines of plain ASCII without control characters; None for other lines."""
    if block.translate(None, _PLAIN):
        return None
    fields = [line.split(None, 1) for line in block.decode("ascii").removesuffix("\n").split("\n")]
    if any(len(each) != _FIELDS for each in fields):
        return None
    return map(tuple.__new__, repeat(ScriptEntry), [(key, rest.rstrip()) for key, rest in fields])


def _entries(block: bytes, first: int, name: str) -> Iterator[ScriptEntry]:
    """Yield the entries of lines, and raise an error at the first bad line.

    Args:
        block: the lines.
        first: the number of the first one.
        name: the extended filename of the script.
    """
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
        key, xfilename = split_line(line, number, name)
        yield ScriptEntry(decoded(key), decoded(xfilename))


def split_line(line: bytes, number: int, name: str) -> tuple[bytes, bytes]:
    """Return the key of a line, and its extended filename, maybe with a range.

    Args:
        line: the line, without its end.
        number: its number, from 1, for messages.
        name: the extended filename of the script, for messages.

    Raises:
        CorruptTable: the line is empty, or has no filename, or its key has control characters.
    """
    found = key_and_xfilename(line)
    if found is None:
        raise _bad_line(name, number, line)
    return found


def key_and_xfilename(line: bytes) -> tuple[bytes, bytes] | None:
    r"""Return the key of a line, and its extended filename, maybe with a range; None if it breaks a rule.

    Example:
        >>> key_and_xfilename(b"utt1 feats.ark:5\r\n"), key_and_xfilename(b"utt1")
        ((b'utt1', b'feats.ark:5'), None)
    """
    fields = line.split(None, 1)
    if len(fields) != _FIELDS or not _KEY.fullmatch(fields[0]) or _NUL in line:
        return None
    return fields[0], fields[1].rstrip()


def line_problem(line: bytes) -> str:
    """Return why a line has no key and no extended filename: words that follow the name of the line."""
    fields = line.split(None, 1)
    if not fields:
        return "is empty"
    if len(fields) == 1:
        return "has a key and no filename"
    return "has a filename with a NUL character" if _NUL in fields[1] else "has a key with control characters"


def line_blocks(file: RxFile, read: Callable[[], bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of each read, at least one, and the number of the first; memory is bounded.

    Args:
        file: the script, for messages.
        read: returns the next bytes of it; none at the end. The last line may lack its end.

    Raises:
        CorruptTable: a line is longer than any line of a script.
    """
    rest, number = b"", 1
    while data := read():
        data = rest + data
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if end:
            block = data[:end]
            yield block, number
            number += block.count(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise _bad_line(file.rxfilename, number, rest)
    if rest:
        yield rest, number


def _bad_line(name: str, number: int, line: bytes) -> CorruptTable:
    too_long = len(line) > _LONGEST_LINE
    problem = f"is longer than {_LONGEST_LINE:,} bytes" if too_long else line_problem(line)
    shown = repr(line[:_SHOWN_BYTES]) + ("..." if len(line) > _SHOWN_BYTES else "")
    return CorruptTable(
        f"{name!r}: line {number:,} {problem}: {shown}. Each line of a script file is '<key> <filename>'; an "
        f"archive is named by ark: and not by scp:"
    )
