"""The lines of scripts: the bytes at which they start, and the objects that they name."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from seekable.errors import CorruptTable, UnsupportedFormat
from seekable.formats.kaldi.files.filenames import check_rxfilename, split_offset, split_range
from seekable.formats.kaldi.holders.ranges import Range, parse_range
from seekable.formats.kaldi.objects.header import BINARY_HEADER
from seekable.formats.kaldi.objects.tokens import TOKEN, decoded
from seekable.formats.kaldi.tables.script import key_and_xfilename, line_problem
from seekable.formats.lines.line_bounds import scan_lines
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.kaldi.files.filenames import RxKind
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.index.scanner import ByteSource

__all__ = ["ScriptLine", "ScriptScanner", "line_key", "parse_line"]

_PLAIN = re.compile(
    rb"(" + TOKEN + rb")[ \t]+(/[^\s|\[\]:\x00]*|[b-rt-zA-Z0-9._][^\s|\[\]:\x00]*):([0-9]{1,18})\s*"
)
"""Most lines by far: a key, a path without characters that have a meaning, and an offset."""

_FIELDS = 2
_SHOWN_BYTES = 80

_WAY_OUT = "each line of a script is '<key> <filename>'; an archive is named by ark: and not by scp:"


class ScriptLine(NamedTuple):
    """One line of a script."""

    key: str
    """The key. Bytes that are no UTF-8 are surrogates, as in file names."""

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
            raise UnsupportedFormat(f"{path!r} begins as a binary object and is no script: {_WAY_OUT}")
        check_is_text(head, path)
        line, end, _ = head.partition(b"\n")
        fields = line.split(None, 1)
        if line and (len(fields) != _FIELDS or b"\0" in line) and (end or len(fields) == 1):
            shown = line[:_SHOWN_BYTES]
            raise UnsupportedFormat(f"{path!r} is no script, because its first line is {shown!r}: {_WAY_OUT}")

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
    if plain := _PLAIN.fullmatch(line):
        key, path, digits = plain.groups()
        path = decoded(path)
        return ScriptLine(decoded(key), f"{path}:{int(digits)}", "offset", path, int(digits), None)
    fields = key_and_xfilename(line)
    if fields is None:
        message = f"the line {line_problem(line)}: {line[:_SHOWN_BYTES]!r}; {_WAY_OUT}"
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


@functools.lru_cache(maxsize=256)
def _range(text: str) -> Range:
    return parse_range(text)
