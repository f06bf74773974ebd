"""Files, the output of commands and standard input, read from start to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seekable.errors import DataNotFound, IndexStale, InvalidArgument, NotResumable, StateMismatch, WorkerDied
from seekable.formats.finding import find_files
from seekable.formats.refusals import refuse_unopened
from seekable.index.digest import END_BYTES, digest_text, head_tail_digest
from seekable.storage.compression import compression_of, inflated
from seekable.storage.files import stat_file, unreadable_error

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from seekable.storage.listing import Inspect

__all__ = ["SequentialFile", "content_from", "sequential_files"]

_READ_BYTES = 256 << 10
_STDIN = "-"
_PIPE = "|"

_taken = False
"""True once standard input was read from: what was read cannot be read again."""


@dataclass(frozen=True, slots=True)
class SequentialFile:
    """A file, a command or standard input, whose bytes are read from start to end."""

    name: str
    """The name in fingerprints: a file's name relative to the folder of its pattern, a command, or ``-``."""

    path: str
    """The absolute path of a file; a label for messages otherwise."""

    way: Literal["file", "command", "stdin"]
    """The way to read it."""

    size: int = 0
    """The bytes of a file when the stream was opened."""

    mtime_ns: int = 0
    """The modification time of a file when the stream was opened, in nanoseconds."""

    @property
    def plain(self) -> bool:
        """True for a file that is not compressed: reading can begin at any byte."""
        return self.way == "file" and compression_of(self.path) is None

    def describe(self) -> dict[str, object]:
        """Return what identifies the content, JSON-safe: the name; of a file also its size and both ends."""
        if self.way != "file":
            return {"name": self.name}
        with _opened(self) as descriptor:
            head = os.pread(descriptor, END_BYTES, 0)
            digest = head_tail_digest(descriptor, size=self.size, head=head)
        return {"name": self.name, "size": self.size, "head_tail": digest_text(digest)}


def sequential_files(
    asked: Sequence[str], *, suffixes: tuple[str, ...], inspect: Inspect, allow_pipes: bool
) -> tuple[SequentialFile, ...]:
    """Return the files, commands and standard input that some arguments name, in their order.

    Args:
        asked: paths, folders, globs, ``-`` for standard input, and commands that end with ``|``.
        suffixes: the suffixes of data files in folders.
        inspect: returns the files of a folder that are never data.
        allow_pipes: accept commands.

    Raises:
        DataNotFound: there is no such file.
        InvalidArgument: a command without ``allow_pipes``, or standard input twice.
        UnsupportedFormat: a spec, an address or a folder of another tool, which is not read.
    """
    found: list[SequentialFile] = []
    for each in asked:
        if each == _STDIN:
            found.append(SequentialFile(_STDIN, "<standard input>", "stdin"))
        elif each.rstrip().endswith(_PIPE) and not os.path.exists(each):
            command = each.rstrip().removesuffix(_PIPE).strip()
            if not allow_pipes:
                message = (
                    f"{each!r} is a command, which is run only with allow_pipes=True: a command can do "
                    f"whatever this user can do"
                )
                raise InvalidArgument(message)
            found.append(SequentialFile(command, f"<{command} |>", "command"))
        else:
            refuse_unopened(each)
            for run in find_files(each, suffixes=suffixes, inspect=inspect):
                for name in run.names:
                    path = os.path.join(run.root, name)
                    status = stat_file(path)
                    found.append(SequentialFile(name, path, "file", status.st_size, status.st_mtime_ns))
    if [each.way for each in found].count("stdin") > 1:
        message = "standard input can be read once (got '-' more than once)"
        raise InvalidArgument(message)
    return tuple(found)


def content_from(source: SequentialFile, start: int) -> Iterator[bytes]:
    """Yield the content in pieces, from byte ``start`` of the (decompressed) content on.

    Raises:
        IndexStale: the file was changed since the stream was opened.
        DataNotFound: the file was removed.
        UnsupportedFormat: a compressed file is damaged.
        StateMismatch: the content ends before ``start``.
        WorkerDied: a command failed.
        NotResumable: standard input was read before.
    """
    if source.way == "file":
        kind = compression_of(source.path)
        if kind is None:
            yield from _bytes_of(source, start)
            return
        pieces: Iterable[bytes] = inflated(_bytes_of(source, 0), kind, source.path)
    else:
        pieces = _output_of(source) if source.way == "command" else _standard_input()
    left = start
    for piece in pieces:
        if left < len(piece):
            yield piece[left:]
        left = max(left - len(piece), 0)
    if left:
        message = (
            f"{source.path!r} has {start - left:,} bytes of content, and had more than {start:,}: other data"
        )
        raise StateMismatch(message)


@contextlib.contextmanager
def _opened(source: SequentialFile) -> Iterator[int]:
    try:
        descriptor = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        message = f"{source.path!r} is not there any more"
        raise DataNotFound(message) from None
    except PermissionError:
        raise unreadable_error(source.path) from None
    try:
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) != (source.size, source.mtime_ns):
            message = (
                f"{source.path!r} was changed since the stream was opened: it has {status.st_size:,} bytes, "
                f"modified at {status.st_mtime_ns} ns, and had {source.size:,}, modified at "
                f"{source.mtime_ns} ns; open the stream again"
            )
            raise IndexStale(message)
        yield descriptor
    finally:
        os.close(descriptor)


def _bytes_of(source: SequentialFile, start: int) -> Iterator[bytes]:
    with _opened(source) as descriptor:
        while data := os.pread(descriptor, _READ_BYTES, start):
            start += len(data)
            yield data


def _standard_input() -> Iterator[bytes]:
    global _taken  # noqa: PLW0603 - there is one standard input to a process
    if _taken:
        message = "standard input was read already, and cannot be read from its start again"
        raise NotResumable(message)
    _taken = True
    while data := os.read(sys.stdin.fileno(), _READ_BYTES):
        yield data


def _output_of(source: SequentialFile) -> Generator[bytes]:
    # The command runs in a session of its own, so that all processes of a shell pipeline can be killed.
    command = ["/bin/sh", "-c", source.name]
    process = subprocess.Popen(  # noqa: S603 - the caller allowed it
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    assert process.stdout is not None
    # This generator may still be open when the interpreter ends, and is not closed then.
    ending = weakref.finalize(process, _end, process.pid)
    try:
        while data := process.stdout.read(_READ_BYTES):
            yield data
        code = process.wait()
    finally:
        ending.detach()
        process.stdout.close()
        if process.poll() is None:
            _end(process.pid)
            process.wait()
    if code:
        message = f"the command {source.name!r} failed with exit code {code}: what it printed may not be all"
        raise WorkerDied(message)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
