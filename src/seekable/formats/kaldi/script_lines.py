"""Scripts, whose lines are ``<key> <extended filename>``: read, parsed, and found by an index."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seekable.errors import CorruptTable, UnsupportedFormat
from seekable.formats.kaldi.basic_types import BINARY_HEADER, TOKEN, decoded
from seekable.formats.kaldi.files.open_named import open_rx
from seekable.formats.kaldi.files.specifiers import check_rxfilename, split_offset, split_range
from seekable.formats.kaldi.holders.script_ranges import Range, parse_range
from seekable.formats.lines.line_bounds import scan_lines
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import RxKind
    from seekable.formats.kaldi.files.streams import RxFile
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.index.finder import ByteSource

_READ_BYTES: Final = 256 << 10
_LONGEST_LINE: Final = 1 << 20
"""A file with longer lines is not a script, and may be larger than the memory."""

_SHOWN_BYTES: Final = 80
_KEY: Final = re.compile(TOKEN)
_VISIBLE: Final = bytes(range(0x21, 0x7F))
_PLAIN: Final = b"\t\n\r " + _VISIBLE
_FIELDS: Final = 2
_PLAIN_LINE: Final = re.compile(
    rb"(" + TOKEN + rb")[ \t]+(/[^\s|\[\]:\x00]*|[b-rt-zA-Z0-9._][^\s|\[\]:\x00]*):([0-9]{1,18})\s*"
)
"""Most lines by far: a key, a path without characters that have a meaning, and an offset."""

_WAY_OUT: Final = "each line of a script is '<key> <filename>'; an archive is named by ark: and not by scp:"


class ScriptEntry(NamedTuple):
    """One line of a script. Entry ``i`` is line ``i + 1``, because each line has an entry."""

    key: str
    """The key. Bytes that are not UTF-8 are surrogates, as in file names."""

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

    The file is opened when the first entry is requested. It is closed after the last one, or with the
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
    """Yield the entries of an open script, and close it after the last one; errors as in `read_script`."""
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
            f"{file.rxfilename!r} begins as a binary object, so it is not a script file, which has lines of "
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
        first: the line number of the first one.
        name: the extended filename of the script.
    """
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
        key, xfilename = split_line(line, number, name)
        yield ScriptEntry(decoded(key), decoded(xfilename))


def split_line(line: bytes, number: int, name: str) -> tuple[bytes, bytes]:
    """Return the key of a line, and its extended filename, maybe with a range.

    Args:
        line: the line, without its end.
        number: its line number, from 1, for messages.
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
    if len(fields) != _FIELDS or not _KEY.fullmatch(fields[0]) or b"\0" in line:
        return None
    return fields[0], fields[1].rstrip()


def _line_problem(line: bytes) -> str:
    """Return why a line has no key and no extended filename: words that follow the name of the line."""
    fields = line.split(None, 1)
    if not fields:
        return "is empty"
    if len(fields) == 1:
        return "has a key and no filename"
    has_nul = b"\0" in fields[1]
    return "has a filename with a NUL character" if has_nul else "has a key with control characters"


def line_blocks(file: RxFile, read: Callable[[], bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of each read, at least one, and the line number of the first; memory is bounded.

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
    problem = f"is longer than {_LONGEST_LINE:,} bytes" if too_long else _line_problem(line)
    shown = repr(line[:_SHOWN_BYTES]) + ("..." if len(line) > _SHOWN_BYTES else "")
    return CorruptTable(
        f"{name!r}: line {number:,} {problem}: {shown}. Each line of a script file is '<key> <filename>'; an "
        f"archive is named by ark: and not by scp:"
    )


class ScriptLine(NamedTuple):
    """One line of a script."""

    key: str
    """The key. Bytes that are not UTF-8 are surrogates, as in file names."""

    rxfilename: str
    """The extended filename without a range."""

    kind: RxKind
    """The kind of the extended filename."""

    path: str
    """The path of the file; empty for a command."""

    offset: int
    """The byte at which the object begins."""

    part: Range | None
    """The range of the object; None for all of it."""


@dataclass(frozen=True, slots=True)
class ScriptScanner:
    """Finds the lines of a script; a blank line is an entry that cannot be read."""

    name: str = "scp"
    holder: Holder | None = None
    """It does not matter for lines."""

    splittable: bool = True

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are not the lines of a script.
        """
        if head.startswith(BINARY_HEADER):
            raise UnsupportedFormat(f"{path!r} begins as a binary object and is not a script: {_WAY_OUT}")
        check_is_text(head, path)
        line, end, _ = head.partition(b"\n")
        fields = line.split(None, 1)
        if line and (len(fields) != _FIELDS or b"\0" in line) and (end or len(fields) == 1):
            shown = line[:_SHOWN_BYTES]
            raise UnsupportedFormat(
                f"{path!r} is not a script, because its first line is {shown!r}: {_WAY_OUT}"
            )

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets at which lines start, uint64."""
        return scan_lines(source, keep_blank=True)


def parse_line(line: bytes) -> ScriptLine:
    r"""Return the parts of a line of a script, whose end it may have.

    Raises:
        CorruptTable: the line is empty, or has no filename, or its key has control characters.
        InvalidArgument: the filename, or its range, breaks a rule.

    Example:
        >>> found = parse_line(b"utt1 feats.ark:12[0:9]\n")
        >>> found.key, found.path, found.offset, found.part.rows
        ('utt1', 'feats.ark', 12, (0, 9))
    """
    if plain := _PLAIN_LINE.fullmatch(line):
        key, path, digits = plain.groups()
        path = decoded(path)
        return ScriptLine(decoded(key), f"{path}:{int(digits)}", "offset", path, int(digits), None)
    fields = key_and_xfilename(line)
    if fields is None:
        message = f"the line {_line_problem(line)}: {line[:_SHOWN_BYTES]!r}; {_WAY_OUT}"
        raise CorruptTable(message)
    name, brackets = split_range(decoded(fields[1]))
    kind = check_rxfilename(name)
    path, offset = split_offset(name) if kind == "offset" else (name if kind == "file" else "", 0)
    part = None if brackets is None else _range(brackets)
    return ScriptLine(decoded(fields[0]), name, kind, path, offset, part)


def line_key(line: bytes) -> bytes:
    """Return the key of a line; empty if the line breaks a rule of scripts."""
    fields = key_and_xfilename(line)
    return fields[0] if fields else b""


@lru_cache(maxsize=256)
def _range(text: str) -> Range:
    return parse_range(text)
