"""Streams over the lines of files that are read from start to end, without an index."""

from __future__ import annotations

import copy
import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import xxhash

from seekable._arguments import AT_ONCE, checked_count, checked_flag, checked_path
from seekable._cached import cached
from seekable.errors import (
    BadToken,
    CorruptRecord,
    InvalidArgument,
    StateMismatch,
    UnsupportedFormat,
    WrongType,
)
from seekable.formats.classify import card_of_file
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK
from seekable.formats.lines.line_source import decoder_named, line_span
from seekable.formats.lines.sequential_file import content_from, sequential_files
from seekable.formats.refusals import without_other_tools, without_their_files
from seekable.formats.table import SUFFIXES, card_named, format_named
from seekable.index.digest import END_BYTES
from seekable.index.finder import is_table_indexer
from seekable.index.location import Location
from seekable.nodes.display import listed
from seekable.state.functions import describe_function
from seekable.storage.listing import checked_asked
from seekable.storage.memory import most_record_bytes, record_too_large
from seekable.stream.shapes import ForwardOnly
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.formats.contract import Card
    from seekable.formats.lines.line_source import LineDecoder, Lines
    from seekable.formats.lines.sequential_file import SequentialFile
    from seekable.nodes.files.decoders import Decode
    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["FromLines", "open_stream"]

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
        """Yield the records behind the last delivered one, after a comparison of that one with the state.

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
