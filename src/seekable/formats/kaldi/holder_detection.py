"""The holder of a table: the one that the user named, or one found from the first bytes of objects."""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, SeekableError
from seekable.formats.audio.wave_file import TAGS
from seekable.formats.kaldi.basic_types import BINARY_HEADER, TOKEN_AND_SPACE
from seekable.formats.kaldi.files.open_named import open_named, open_rx
from seekable.formats.kaldi.files.specifiers import classify_rxfilename
from seekable.formats.kaldi.files.streams import StandardInput
from seekable.formats.kaldi.script_lines import parse_line
from seekable.storage import paths
from seekable.storage.first_bytes import check_compression, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.storage.listing import FoundFiles


_MOST_FILES = 3
_MOST_LINES = 16
_MOST_OBJECTS = 3
_HEAD_BYTES = 64 << 10
_PEEKED_BYTES = 4 << 10
_SHOWN_BYTES = 24

_EMPTY_ARRAY = re.compile(rb"[ \t]*\[[ \t]*\][ \t\r]*\n")
"""A matrix, vector or posterior in text that is empty: it does not tell which of them it is."""

_AFTER_KEY = re.compile(rb"\s*" + TOKEN_AND_SPACE)


def detect_holder(base: str, rxfilenames: Iterable[str], *, pipes: Pipes) -> str:
    """Return the name of the holder that the first entries of tables have; ``matrix`` without entries.

    Args:
        base: ``ark`` or ``scp``.
        rxfilenames: the extended filenames of the tables. Of standard input, no byte is taken.
        pipes: ``"allow"`` runs the commands of the first lines of scripts.

    Raises:
        InvalidArgument: an entry can be of several holders, or the entries are of different ones.
        PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: a table cannot be opened.
    """
    detected: dict[tuple[str, ...], tuple[str, bytes]] = {}
    for path in rxfilenames:
        for where, head in _objects(base, path, pipes):
            detected.setdefault(candidates_of(head), (where, head))
    if not detected:
        return "matrix"  # Without any entry, all holders read the same.
    known = [set(names) for names in detected if names]
    common = set.intersection(*known) if known else set()
    if len(common) == 1:
        return common.pop()
    unsure = next((names for names in detected if len(names) != 1), None)
    if unsure is None:
        shown = ", ".join(f"{names[0]} ({where})" for names, (where, _) in detected.items())
        message = (
            f"the first entries are of several holders: {shown}; say which one reads all, "
            f"sk.formats.Kaldi(holder=...)"
        )
        raise InvalidArgument(message)
    raise InvalidArgument(_asking(base, *detected[unsure], unsure))


def first_paths(found: Sequence[FoundFiles]) -> Iterator[str]:
    """Yield the paths of the first files that are not empty."""
    left = _MOST_FILES
    for run in found:
        for name in run.names:
            path = os.path.join(run.root, name)
            if left and _has_bytes(path):
                left -= 1
                yield path


def _has_bytes(path: str) -> bool:
    try:
        return paths.status(path).size > 0
    except (DataNotFound, AccessDenied):
        return False


def _objects(base: str, path: str, pipes: Pipes) -> Iterator[tuple[str, bytes]]:
    """Yield where the first objects of a file are, and the first bytes of each."""
    head = _first_bytes(path)
    check_compression(head, path)
    what = "an archive of Kaldi" if base == "ark" else "a script of Kaldi"
    refuse_foreign(head, path, what=what, own=base)
    if base == "ark":
        end = 0
        for _ in range(_MOST_OBJECTS):
            key = _AFTER_KEY.match(head, end)
            if key is None:
                return
            yield f"{path!r}, byte {key.end()}", head[key.end() :]
            empty = _EMPTY_ARRAY.match(head, key.end())
            if empty is None:
                return
            end = empty.end()
        return
    yield from itertools.islice(_named_objects(_first_lines(head), path, pipes), _MOST_OBJECTS)


def _first_bytes(path: str) -> bytes:
    if classify_rxfilename(path) == "stdin":
        return StandardInput().peek(_PEEKED_BYTES)
    with open_rx(path, header=False) as file:
        return file.read(_HEAD_BYTES)


def _first_lines(head: bytes) -> list[bytes]:
    """Return the first lines that are whole, as far as that can be seen."""
    lines = head.split(b"\n")
    return lines[: min(_MOST_LINES, max(1, len(lines) - 1))]


def _named_objects(lines: Sequence[bytes], script: str, pipes: Pipes) -> Iterator[tuple[str, bytes]]:
    """Yield the first bytes of the objects that lines name, without those that cannot be read.

    Raises:
        InvalidArgument: there are lines, and of no line the object can be read.
    """
    failed: SeekableError | None = None
    found = False
    for line in filter(bytes.strip, lines):
        try:
            yield _named_object(line, script, pipes)
            found = True
        except SeekableError as error:
            failed = failed or error
    if failed is not None and not found:
        message = (
            f"the holder cannot be found, because none of the first entries of {script!r} can be read. Say "
            f"which it is, sk.formats.Kaldi(holder=...). The first of them: {failed}"
        )
        raise InvalidArgument(message) from failed


def _named_object(line: bytes, script: str, pipes: Pipes) -> tuple[str, bytes]:
    entry = parse_line(line)
    name = entry.rxfilename
    if entry.kind == "stdin":
        message = f"the line {line!r} names standard input"
        raise InvalidArgument(message)
    if entry.path and not (os.path.isabs(entry.path) or "://" in entry.path or os.path.exists(entry.path)):
        name = os.path.join(os.path.dirname(script), name)
    with open_named(name, pipes=pipes) as file:
        return f"{name!r}, named by {script!r}", file.read(_HEAD_BYTES)


def _asking(base: str, where: str, head: bytes, names: tuple[str, ...]) -> str:
    shown = head[:_SHOWN_BYTES]
    which = f"it can be {', '.join(names)}" if names else "no holder is known by them"
    example = names[0] if names else "htk-matrix"
    key = _AFTER_KEY.match(head)
    if key is not None and head[key.end() :].startswith(BINARY_HEADER):
        which += "; or the file is an archive, and the line must name the offset of the entry, PATH:OFFSET"
    return (
        f"the holder cannot be told from the first bytes of an object, {shown!r} in {where}: {which}. Say "
        f"which it is: format=sk.formats.Kaldi(holder={example!r}), or format={f'{base}-{example}'!r}"
    )


_TOKENS = {
    b"FM ": "matrix",
    b"DM ": "double-matrix",
    b"CM ": "matrix",
    b"CM2 ": "matrix",
    b"CM3 ": "matrix",
    b"FV ": "vector",
    b"DV ": "double-vector",
    b"SM ": "sparse-matrix",
    b"SV ": "sparse-vector",
    b"FP ": "packed-matrix",
    b"DP ": "double-packed-matrix",
    b"\x14\x11\x22\x20": "blob",
    b"\x93NUMPY": "numpy-array",
}
"""The holder of a binary object by the bytes after the binary header."""

_SIZED = (
    *("int32", "float", "int32-vector", "int32-vector-vector", "int32-pair-vector", "float-pair-vector"),
    *("posterior", "gauss-posterior"),
)
"""Objects that begin with the size of a number, 4, so that their first bytes fit several holders."""

_LINES = ("token", "token-vector", "int32", "float", "bool", "int32-vector", "int32-vector-vector")
"""Objects that are a line of text."""


def candidates_of(head: bytes) -> tuple[str, ...]:
    r"""Return the names of the holders that an object can be of, by its first bytes; none if it is unknown.

    Example:
        >>> candidates_of(b"\0BFM \4"), candidates_of(b" [ 1 2 ]\n")
        (('matrix',), ('vector',))
        >>> candidates_of(b"\0B\4\3\0\0\0\4")[:2]
        ('int32', 'float')
    """
    if head.startswith((*TAGS, b"fLaC")):
        return ("wave",)
    if head.startswith(b"\0B"):
        return _of_binary(head[2:])
    if head[:1] == b"\0":
        return ()  # Such as features of HTK, which have no mark.
    return _of_text(head)


def _of_binary(head: bytes) -> tuple[str, ...]:
    for token, name in _TOKENS.items():
        if head.startswith(token):
            return (name,)
    if head[:1] == b"\4":
        return _SIZED
    if head[:1] in {b"T", b"F"}:
        return ("bool",)
    return {b"\10": ("int64", "double", "int64-vector"), b"\1": ("int8", "int8-vector")}.get(head[:1], ())


def _of_text(head: bytes) -> tuple[str, ...]:
    first, newline, rest = head.partition(b"\n")
    content = first.strip()
    if not content.startswith(b"["):
        return _LINES
    inner = content[1:].strip()
    if not inner:
        return ("matrix",) if newline and rest.strip() else ("matrix", "vector")
    if inner == b"]" or not (newline or inner.endswith(b"]")):  # It is empty, or it is longer than the bytes.
        return ("matrix", "vector", "posterior")
    if inner.count(b"[") or inner.count(b"]") > 1:
        return ("posterior",)
    # Vectors are written with a space before the bracket, posteriors without one.
    if inner.endswith(b"]") and not first.startswith(b" "):
        return ("vector", "matrix", "posterior")
    return ("vector",) if inner.endswith(b"]") else ("matrix",)
