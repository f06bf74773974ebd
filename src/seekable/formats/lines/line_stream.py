"""Streams over the lines of files that are read from start to end, without an index."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import subprocess
import sys
import weakref
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast, final

import xxhash

from seekable._arguments import AT_ONCE, checked_count, checked_flag, checked_path
from seekable._cached import cached
from seekable.errors import (
    BadToken,
    CorruptRecord,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    NotResumable,
    StateMismatch,
    UnsupportedFormat,
    WorkerDied,
    WrongType,
)
from seekable.formats.classify import card_of_file
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK
from seekable.formats.lines.line_source import decoder_named, line_span
from seekable.formats.look import find_files
from seekable.formats.refusals import refuse_unopened, without_other_tools, without_their_files
from seekable.formats.table import SUFFIXES, card_named, format_named
from seekable.index.digest import END_BYTES, digest_text, head_tail_digest
from seekable.index.finder import is_table_indexer
from seekable.index.location import Location
from seekable.nodes.display import listed
from seekable.state.functions import describe_function
from seekable.storage.compression import compression_of, inflated
from seekable.storage.files import stat_file, unreadable_error
from seekable.storage.listing import checked_asked
from seekable.storage.memory import most_record_bytes, record_too_large
from seekable.stream.shapes import ForwardOnly
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from seekable.formats.contract import Card
    from seekable.formats.lines.line_source import LineDecoder, Lines
    from seekable.nodes.files.decoders import Decode
    from seekable.storage.listing import Inspect
    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["FromLines", "SequentialFile", "content_from", "open_stream", "sequential_files"]

_KEEPS_BLANK: Final = {"jsonl": False, "text": True}
"""The formats of one record a line; True if a blank line is a record."""

_PAIR: Final = 2
_SPACE: Final = 32


def open_stream(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    lanes: int = 1,
    format: str | None = None,  # noqa: A002 - what users call it
    decode: Decode | None = None,
    replay: bool = False,
    allow_pipes: bool = False,
    version: str | int | None = None,
) -> Stream:
    r"""Return the lines of files as a stream, without an index: each file is read from its start to its end.

    For files that can be indexed ``sk.open`` is better: it gives any record, shuffles, and resumes at any
    position without reading. Use this function for data that is read once or cannot be indexed: standard
    input, the output of a command, a large ``.zst`` of one frame.

    A stream of plain files resumes without reading again. Compressed files and the output of commands can
    only be read from the start: with ``replay=True`` a resume skips what was read, without it no state can be
    taken. Standard input never resumes.

    Args:
        source: a path, a folder, a glob, ``"-"`` for standard input, ``"command |"`` for the output of a
            command, or a list of those. Files with the suffix ``.gz`` or ``.zst`` are decompressed.
        lanes: the number of lanes; whole files are distributed to them in turn.
        format: ``"jsonl"`` or ``"text"``; by default the format of the suffix, which standard input and
            commands lack.
        decode: ``"json"``, ``"text"`` (a str), ``"bytes"``, or a function of a line's bytes; by default the
            decoding of the format.
        replay: allow a resume to skip content, and ``stream[token]`` to read a file from its start again.
        allow_pipes: allow commands; the shell runs them.
        version: enters the fingerprint beside the name of a ``decode`` function.

    Raises:
        DataNotFound: there is no such file.
        UnsupportedFormat: a suffix is not known, or there is more than one format.
        InvalidArgument: a command without ``allow_pipes``, a format that is not made of lines.

    Example:
        >>> import gzip, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.jsonl.gz")
        ...     _ = path.write_bytes(gzip.compress(b'{"id": 0}\n{"id": 1}\n'))
        ...     list(open_stream(path))
        [{'id': 0}, {'id': 1}]
    """
    given = checked_asked(source)
    asked = [checked_path(each) for each in ([given] if isinstance(given, str | os.PathLike) else given)]
    if not asked:
        message = f"open_stream() takes a path, or a list of at least one (got {source!r})"
        raise WrongType(message)
    files = sequential_files(
        asked,
        suffixes=SUFFIXES,
        inspect=without_other_tools if format is None else without_their_files,
        allow_pipes=checked_flag("allow_pipes", allow_pipes),
    )
    if checked_flag("replay", replay) and any(file.way == "stdin" for file in files):
        message = "standard input cannot be read again: write it to a file, or leave out replay=True"
        raise InvalidArgument(message)
    name = (_card_of_all(files) if format is None else card_named(format)).name
    if name not in _KEEPS_BLANK:
        message = f"open_stream() reads {', '.join(map(repr, _KEEPS_BLANK))} (got {name!r}): use open()"
        raise InvalidArgument(message)
    kind = cast("Lines", format_named(name))
    decoder = decoder_named(kind.decoding if decode is None else decode)
    count = checked_count("lanes", lanes, least=1, below=AT_ONCE)
    return Stream(FromLines(count, replay, files, kind, decoder, version, tuple(asked)))


def _card_of_all(files: Sequence[SequentialFile]) -> Card:
    nameless = next((file for file in files if file.way != "file"), None)
    if nameless is not None:
        message = f"say what {nameless.path} has with format='jsonl' or format='text': no name tells"
        raise InvalidArgument(message)
    kinds = {(kind := card_of_file(file.name or file.path)).name: (kind, file) for file in files}
    if len(kinds) > 1:
        examples = ", ".join(f"{name} ({file.path!r})" for name, (_, file) in kinds.items())
        message = f"a stream has one format, and here there are {len(kinds)}: {examples}; say format="
        raise InvalidArgument(message)
    return next(iter(kinds.values()))[0]


@final
@dataclass(frozen=True, eq=False, repr=False)
class FromLines(ForwardOnly):
    """The lines of files: lane ``l`` has the files ``f % lanes == l``. A token is (file, row in it)."""

    files: tuple[SequentialFile, ...]
    format: Lines
    decoder: LineDecoder
    version: str | int | None
    asked: tuple[str, ...]

    kind: ClassVar[str] = "lines"

    @property
    def checkpointable(self) -> bool:
        """True with ``replay``, or if all files are plain."""
        return self.replay or all(file.plain for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        """The absolute paths of the files, without commands and standard input."""
        return tuple(file.path for file in self.files if file.way == "file")

    @property
    def constant_time(self) -> bool:
        """True if all files are plain, and ``replay`` is not set."""
        return not self.replay and self.checkpointable

    @property
    def way_out(self) -> str:
        """Advice for compressed files, commands and standard input."""
        if any(file.way == "stdin" for file in self.files):
            return "standard input cannot be read again: write it to a file first"
        if any(file.way == "command" for file in self.files):
            return (
                "write what the command prints to a file, or say replay=True, which runs it again and skips"
            )
        return (
            "open it with sk.open(), which indexes .gz and .zst (a .zst of one frame after `seekable "
            "recompress`), or say replay=True, which decompresses from the start and skips"
        )

    def arguments(self) -> dict[str, Any]:
        """Return the format, the decoding, and of every file the name, the size and a digest of both ends."""
        function = self.decoder.function
        decode = self.decoder.name if function is None else describe_function(function, self.version)
        return {"format": self.format.name, "decode": decode, "files": self._described}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.open_stream``."""
        given = f", lanes={self.lane_count}" if self.lane_count > 1 else ""
        given += ", replay=True" if self.replay else ""
        asked = repr(self.asked[0]) if len(self.asked) == 1 else f"[{listed([*map(repr, self.asked)])}]"
        return f"open_stream({asked}{given})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the records after the last delivered one, after a comparison of that one with the state.

        Raises:
            CorruptRecord: a line cannot be decoded.
            StateMismatch: the last delivered record has other bytes now.
        """
        state, checked = lane.state, self.checkpointable
        for number in range(state.get("file", lane.number), len(self.files), self.lanes):
            row, start = (state["row"], state["start"]) if state.get("file") == number else (0, 0)
            records = self._records(number, row - 1 if row else 0, start)
            if row:
                self._check(number, state, next(records, None))
            for row, start, view in records:
                item = self._decoded(number, row, start, view)
                state["file"], state["row"], state["start"] = number, row + 1, start
                if checked:
                    state["check"] = xxhash.xxh3_64_hexdigest(view)
                yield (number, row), item

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Return the records of some tokens; each file is read once.

        Raises:
            BadToken: ``replay`` is not set, or a file has no such record.
        """
        if not self.replay:
            message = f"{self!r} cannot give a record again: say replay=True, which reads its file once more"
            raise BadToken(message)
        found: list[Any] = [None] * len(tokens)
        for number, row, start, view, places in self._picked(tokens):
            item = self._decoded(number, row, start, view)
            found[places[0]] = item
            for place in places[1:]:
                found[place] = copy.deepcopy(item)
        return found

    def places(self, token: Token) -> list[Any]:
        """Return the ``Location`` of a record; its file is read for that.

        Raises:
            BadToken: ``replay`` is not set, or the file has no such record.
        """
        number, row = self._parsed(token)
        if not self.replay:
            message = f"record {row} of {self.files[number].path!r} can be located with replay=True only"
            raise BadToken(message)
        ((_, _, start, view, _),) = self._picked([token])
        return [Location(self.files[number].path, row, start, line_span(view))]

    def _picked(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int, int, memoryview, list[int]]]:
        """Yield file, row, byte offset and line of each record, and its indices in ``tokens``."""
        wanted: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, token in enumerate(tokens):
            number, row = self._parsed(token)
            wanted[number][row].append(place)
        for number, rows in wanted.items():
            left = len(rows)
            for row, start, view in self._records(number, 0, 0):
                if row in rows:
                    yield number, row, start, view, rows[row]
                    left -= 1
                    if not left:
                        break
            else:
                message = f"{self.files[number].path!r} has no record {max(rows)}"
                raise BadToken(message)

    def _records(self, number: int, row: int, start: int) -> Iterator[tuple[int, int, memoryview]]:
        """Yield row, byte offset and line of each record, from a given row and offset on."""
        file, keep_blank = self.files[number], _KEEPS_BLANK[self.format.name]
        pieces = content_from(file, start)
        if not start:
            pieces = self._headed(file, pieces)
        for at, view in _lines(pieces, start):
            if not keep_blank and view[0] <= _SPACE and not bytes(view).strip(b" \t\r\n"):
                continue
            yield row, at, view
            row += 1

    def _headed(self, file: SequentialFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the content after a check of its first piece: the next piece of a pipe may come late."""
        head = next(pieces, b"")
        assert not is_table_indexer(self.format.finder)
        self.format.finder.check_head(head[:END_BYTES], file.path)
        yield head
        yield from pieces

    def _decoded(self, number: int, row: int, start: int, view: memoryview) -> Any:
        try:
            return self.decoder.fast(view)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything; its cause is kept
            cause, line = error, bytes(view[: line_span(view)])
        try:
            if self.decoder.recover is not None:
                return self.decoder.recover(line)
        except ValueError as recovering:
            cause = recovering
        path = self.files[number].path
        corrupt = CorruptRecord(path, row, offset=start, length=len(line), preview=line, cause=cause)
        raise corrupt from cause

    def _check(self, number: int, state: dict[str, Any], found: tuple[int, int, memoryview] | None) -> None:
        """Raise ``StateMismatch`` unless the last delivered record is still the same."""
        if found is None or xxhash.xxh3_64_hexdigest(found[2]) != state.get("check"):
            message = (
                f"record {state['row'] - 1} of {self.files[number].path!r}, at byte {state['start']:,} of "
                f"its content, is not the one that was read before the state was taken: it has other data now"
            )
            raise StateMismatch(message)

    @cached
    def _described(self) -> list[dict[str, object]]:
        return [file.describe() for file in self.files]

    def _parsed(self, token: Token) -> tuple[int, int]:
        if isinstance(token, tuple) and len(token) == _PAIR and all(isinstance(part, int) for part in token):
            number, row = token
            if 0 <= number < len(self.files) and row >= 0:
                return number, row
        message = f"a token of {self!r} is a pair of the numbers of a file and of a record (got {token!r})"
        raise BadToken(message)


def _lines(pieces: Iterable[bytes], start: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the byte offset and the bytes of each line, with its line end and without a byte order mark."""
    held: list[bytes] = []
    at, size, most = start, 0, most_record_bytes()
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if b"\n" not in piece:
            if size > most:
                message = f"byte {at:,} of the content: {record_too_large(size)}"
                raise UnsupportedFormat(message)
            continue
        data = b"".join(held)
        view = memoryview(data)
        begin = len(BYTE_ORDER_MARK) if at == 0 and data.startswith(BYTE_ORDER_MARK) else 0
        while (end := data.find(b"\n", begin) + 1) > 0:
            yield at + begin, view[begin:end]
            begin = end
        at, held = at + begin, [data[begin:]]
        size = len(held[0])
    rest = b"".join(held)
    begin = len(BYTE_ORDER_MARK) if at == 0 and rest.startswith(BYTE_ORDER_MARK) else 0
    if rest[begin:]:
        yield at + begin, memoryview(rest)[begin:]


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
