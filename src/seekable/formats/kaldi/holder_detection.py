"""The holder of a table: the one that the user named, or one found from the first bytes of objects."""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, SeekableError
from seekable.formats.kaldi.files.filenames import classify_rxfilename
from seekable.formats.kaldi.files.opening import open_named, open_rx
from seekable.formats.kaldi.files.streams import StandardInput
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.formats.kaldi.objects.tokens import BINARY_HEADER, TOKEN_AND_SPACE
from seekable.formats.kaldi.script_lines import parse_line
from seekable.storage import paths
from seekable.storage.first_bytes import check_compression, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.storage.listing import FoundFiles

__all__ = ["detect_holder", "first_paths"]

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
