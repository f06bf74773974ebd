"""Utterances of a data directory: a line in the main table becomes a record from all tables.

The lines of the main table are the records: segments, wav.scp, feats.scp, text or utt2spk, the first of these
that there is. What another table says about an utterance, its speaker or its recording is found by key.
A table is read only for a column that is used.
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from seekable._cached import cached
from seekable.errors import CorruptState, CorruptTable, InvalidArgument, SeekableError, UnsupportedFormat
from seekable.formats.kaldi.basic_types import decoded, encoded
from seekable.formats.kaldi.directory.text_tables import TABLES, shown
from seekable.formats.kaldi.directory.validation import BASES, check_directory
from seekable.formats.kaldi.entry_reader import EntryReader, ObjectFiles, fetch_named
from seekable.formats.kaldi.files.pipes import checked_pipes
from seekable.formats.kaldi.files.store_files import script_folders
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.holders.wave import (
    Wave,
    WaveHolder,
    find_wave_part,
    read_wave_header,
    read_wave_part,
)
from seekable.formats.lines.line_source import line_span
from seekable.nodes.columns.names import checked_names
from seekable.nodes.files.decoders import Decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from seekable.formats.contract import Reading
    from seekable.formats.kaldi.cursor import Cursor, Output
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.index.fileset import FileSet
    from seekable.nodes.saving import Loading, Saving


_TO_THE_END: Final = -1.0
_KEY_COLUMN: Final = "key"
"""The column of the name of the utterance."""

_READ_WHOLE: Final = (b"|", b".gz", b".zst", b".flac")
"""The ends of lines that name recordings without a cheap way to their middle."""

WAVE: Final = find_holder("wave")
"""The holder of the recordings of ``wav.scp``."""

_HOLDERS: Final = MappingProxyType(
    {
        "feats.scp": find_holder("matrix"),
        "vad.scp": find_holder("vector"),
        "cmvn.scp": find_holder("double-matrix"),
    }
)
"""The holders of the objects of scripts."""


@final
class SortedTable:
    """One indexed file, sorted by bytes, each key once. Safe from threads; a pickle has the file alone."""

    def __init__(self, files: FileSet) -> None:
        """Take the file; nothing is read.

        Args:
            files: a set of one file.
        """
        self.files = files
        """The set of the one file."""
        self._last = 0

    def __reduce__(self) -> tuple[type[SortedTable], tuple[FileSet]]:
        return SortedTable, (self.files,)

    def find(self, key: bytes, guess: int = -1) -> int:
        """Return the row of the line with a key.

        The guess, and the rows from the one found last, are tried first; else it is a binary search.

        Args:
            key: the key.
            guess: a row, -1 for none.

        Raises:
            CorruptTable: the table has no such key.
            IndexStale: the file was changed.
        """
        files = self.files
        files.mapped(0).check()
        count, last = int(files.records[0]), self._last
        for row in (guess, last, last + 1):
            if 0 <= row < count and self._key(row, len(key)) == key:
                break
        else:
            row = self._search(key, count)
        self._last = row
        return row

    def rest(self, row: int, key: bytes) -> bytes:
        """Return what follows the key in the line of a row, without the white space around it."""
        return bytes(self.files.bytes_of(0, row))[len(key) :].strip()

    def _search(self, key: bytes, count: int) -> int:
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._key(middle, len(key)) < key:
                low = middle + 1
            else:
                high = middle
        if low == count or self._key(low, len(key)) != key:
            message = (
                f"{self.files.path(0)!r} has no line for {decoded(key)!r}: add it; `seekable kaldi validate` "
                f"finds all that is missing"
            )
            raise CorruptTable(message)
        return low

    def _key(self, row: int, length: int) -> bytes:
        """Return the first word of a line, cut one byte after a length, which is enough to compare it."""
        start, end = self.files.range(0, row)
        words = bytes(self.files.mapped(0).view[start : min(end, start + length + 1)]).split(None, 1)
        return words[0] if words else b""


@dataclass(frozen=True, slots=True)
class UtteranceSegment:
    """A part of a recording.

    Example:
        >>> segment = parse_segment(b"utt1 rec1 0.25 1.5")
        >>> segment.samples(8000, 60_000)
        slice(2000, 12000, None)
    """

    key: str
    """The name of the utterance."""

    recording: str
    """The name of the recording."""

    start: float
    """The start in the recording, in seconds."""

    end: float
    """The end, in seconds; -1 for the end of the recording."""

    channel: int | None = None
    """The channel, counted from 0; None for all channels."""

    def samples(self, rate: int, count: int) -> slice:
        """Return the samples of the segment, as Kaldi's ``extract-segments`` cuts them.

        Times are truncated to samples. An end less than half a second after the last sample is taken for the
        last sample.

        Args:
            rate: the samples a second.
            count: the samples of the recording.

        Raises:
            CorruptTable: the recording does not have these samples.
        """
        start = int(self.start * rate)
        stop = count if self.end == _TO_THE_END else int(self.end * rate)
        if start >= count or (stop > count and stop >= count + rate // 2):
            message = (
                f"the segment from {self.start} s to {self.end} s lies beyond the recording "
                f"{self.recording!r}, which lasts {count / rate:.3f} s ({count:,} samples): mend segments, "
                f"or the file that wav.scp names"
            )
            raise CorruptTable(message)
        stop = min(stop, count)
        if stop <= start:
            message = (
                f"the segment from {self.start} s to {self.end} s has no sample of the recording "
                f"{self.recording!r}, at {rate:,} samples a second: mend segments"
            )
            raise CorruptTable(message)
        return slice(start, stop)

    def cut(self, recording: Wave) -> Wave:
        """Return the segment of a recording.

        Raises:
            CorruptTable: the recording does not have its samples, or not its channel.
        """
        part = recording.data[:, self.samples(recording.rate, recording.data.shape[1])].copy()
        return self.of_channel(Wave(recording.rate, part))

    def of_channel(self, part: Wave) -> Wave:
        """Return the channel of the segment from a wave that is already cut to its samples.

        Raises:
            CorruptTable: the wave does not have the channel.
        """
        if self.channel is None:
            return part
        if self.channel >= len(part.data):
            message = (
                f"segments names the channel {self.channel} of the recording {self.recording!r}, which "
                f"has {len(part.data)} channel{'s' * (len(part.data) > 1)}, counted from 0: mend segments"
            )
            raise CorruptTable(message)
        return Wave(part.rate, part.data[self.channel : self.channel + 1].copy())


def parse_segment(line: bytes) -> UtteranceSegment:
    """Return the segment of a line of ``segments``, whose end the line may have.

    Raises:
        CorruptTable: it is not such a line.
    """
    if not TABLES["segments"].line.fullmatch(line.strip() + b"\n"):
        message = f"expected {TABLES['segments'].shown}, found {shown(line.strip())}"
        raise CorruptTable(message)
    key, recording, start, end, *channel = line.split()
    number = int(channel[0]) if channel else None
    return UtteranceSegment(decoded(key), decoded(recording), float(start), float(end), number)


@dataclass(frozen=True, slots=True)
class SegmentHolder:
    """Reads the segment of a recording. Other samples are not touched where the file is in memory."""

    segment: UtteranceSegment
    name: str = "segment"

    def read(self, cursor: Cursor) -> Wave:
        """Return the samples of the segment; the cursor stays after them.

        Raises:
            CorruptTable: the recording does not have these samples, or not the channel.
        """
        return self.segment.of_channel(read_wave_part(cursor, self.segment.samples))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a wave: a segment has no form of its own."""
        WaveHolder().write(file, value, binary=binary)

    def extent(self, cursor: Cursor) -> tuple[int, int]:
        """Return the first byte of the samples of the segment, and the byte after the last."""
        return find_wave_part(cursor, self.segment.samples)

    def skip(self, cursor: Cursor) -> None:
        """Move past the header of the recording; the samples belong to other segments too."""
        read_wave_header(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (channels, samples) of the segment."""
        channels, samples = self.read(cursor).data.shape
        return channels, samples


@final
class _Utterance:
    """One utterance, while its record is made: its line in each table that was read."""

    __slots__ = ("_rests", "_row", "_segment", "key", "reader")

    def __init__(self, reader: Utterances, line: bytes) -> None:
        words = line.split(None, 1)
        if not words:
            message = f"expected a line of {reader.main}, found {shown(line)}"
            raise CorruptTable(message)
        self.reader = reader
        self.key = words[0]
        self._rests = {reader.main: words[1].strip() if len(words) > 1 else b""}
        self._row = -1
        self._segment: UtteranceSegment | None = None

    def rest(self, name: str) -> bytes:
        """Return what a table says about the utterance, its speaker or its recording."""
        found = self._rests.get(name)
        if found is not None:
            return found
        table, key = self.reader.tables[name], self.owner(name)
        if key is self.key:
            # Tables of utterances have the same rows.
            row = self._row = table.find(key, self._row)
        else:
            row = table.find(key)
        self._rests[name] = table.rest(row, key)
        return self._rests[name]

    def owner(self, name: str) -> bytes:
        """Return the key under which a table has something about the utterance."""
        keyed = TABLES[name].keyed
        if keyed == "speaker":
            return self.rest("utt2spk")
        if keyed == "recording" and self.reader.has_segments:
            return encoded(self.segment.recording)
        return self.key

    @property
    def segment(self) -> UtteranceSegment:
        """The segment of a recording that the utterance is."""
        if self._segment is None:
            self._segment = parse_segment(self.key + b" " + self.rest("segments"))
        return self._segment

    def script_line(self, name: str) -> bytes:
        """Return the line of a script that names the object of the utterance."""
        return self.owner(name) + b" " + self.rest(name)


def _word(utterance: _Utterance, name: str) -> str:
    return decoded(utterance.rest(name))


def _text(utterance: _Utterance, name: str) -> str:
    return str(utterance.rest(name), "utf-8")


def _number(utterance: _Utterance, name: str) -> float:
    return float(utterance.rest(name))


def _audio(utterance: _Utterance, name: str) -> Wave:
    reader, line = utterance.reader, utterance.script_line(name)
    if reader.has_segments and line.endswith(_READ_WHOLE):
        return utterance.segment.cut(reader.whole_recording(name, line))
    holder = SegmentHolder(utterance.segment) if reader.has_segments else WAVE
    wave: Wave = reader.read(name, line, holder)
    return wave


def _object(utterance: _Utterance, name: str) -> Any:
    return utterance.reader.read(name, utterance.script_line(name), _HOLDERS[name])


_COLUMNS: Final[Mapping[str, tuple[str, Callable[[_Utterance, str], Any]]]] = MappingProxyType(
    {
        "audio": ("wav.scp", _audio),
        "features": ("feats.scp", _object),
        "text": ("text", _text),
        "speaker": ("utt2spk", _word),
        "gender": ("spk2gender", _word),
        "language": ("utt2lang", _word),
        "duration": ("utt2dur", _number),
        "num_frames": ("utt2num_frames", lambda utterance, name: int(utterance.rest(name))),
        "recording": ("segments", lambda utterance, _: utterance.segment.recording),
        "start": ("segments", lambda utterance, _: utterance.segment.start),
        "end": ("segments", lambda utterance, _: utterance.segment.end),
        "vad": ("vad.scp", _object),
        "cmvn": ("cmvn.scp", _object),
        "warp": ("utt2warp", _number),
        "speaker_warp": ("spk2warp", _number),
        "uniq": ("utt2uniq", _word),
    }
)
"""The columns that there can be besides the key, in the order of records: of each, the table that it is made
of, and what returns the value, given the utterance and the name of the table."""


def columns_of(tables: Collection[str]) -> tuple[str, ...]:
    """Return the columns that the tables of a directory make, in their order.

    Example:
        >>> columns_of(["text", "utt2spk", "wav.scp"])
        ('key', 'audio', 'text', 'speaker')
    """
    found = [column for column, (table, _) in _COLUMNS.items() if table in tables]
    if "utt2spk" not in tables:
        found = [column for column in found if TABLES[_COLUMNS[column][0]].keyed != "speaker"]
    return (_KEY_COLUMN, *found)


def tables_of(columns: Collection[str]) -> frozenset[str]:
    """Return the names of the tables that columns are made of, directly or through another table.

    Example:
        >>> sorted(tables_of(["key", "gender"]))
        ['spk2gender', 'utt2spk']
    """
    found = {_COLUMNS[column][0] for column in columns if column != _KEY_COLUMN}
    if any(TABLES[name].keyed == "speaker" for name in found):
        found.add("utt2spk")
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class Utterances:
    """A reader of the utterances of a directory. Picklable, and safe from threads."""

    main: str
    """The name of the table whose lines are the records."""

    tables: Mapping[str, SortedTable]
    """The other tables that columns are made of, by name."""

    columns: tuple[str, ...]
    """The columns of records, in their order."""

    entries: EntryReader
    """The reader of the lines of scripts."""

    modified_ns: Mapping[str, int | None]
    """The time at which each script was modified, in nanoseconds; None in a store."""

    only: frozenset[str] | None = None
    """The columns that are used; None for all. They are not part of the description."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __call__(self, view: memoryview) -> dict[str, Any]:
        """Return the record of the utterance that a line of the main table names.

        Raises:
            CorruptTable: a table lacks the utterance, or has a line that is not of its form.
            DataNotFound, CorruptObject, PipeRefused, ...: its audio, or another object, cannot be read.
        """
        utterance = _Utterance(self, bytes(view))
        return {column: read(utterance, table) for column, table, read in self._wanted}

    def named_lines(self, view: memoryview) -> Iterator[bytes]:
        """Yield the lines that name the objects of an utterance; none where a table lacks it."""
        with suppress(SeekableError):
            utterance = _Utterance(self, bytes(view))
            for _, table, _ in self._wanted:
                if table.endswith(".scp"):
                    yield utterance.script_line(table)

    def narrowed(self, columns: frozenset[str]) -> Utterances:
        """Return a reader of some of the columns, which reads nothing for the others."""
        return replace(self, only=columns if self.only is None else columns & self.only)

    def described(self) -> dict[str, Any]:
        """Return the columns, and each table by name, size, records and digests, JSON-safe."""
        tables = [self.tables[name].files.described()[0] for name in sorted(self.tables)]
        return {"main": self.main, "columns": list(self.columns), "tables": tables}

    def close(self) -> None:
        """Close all files. They are opened again when a record is read."""
        self.entries.files.close()
        for table in self.tables.values():
            table.files.close()

    @property
    def has_segments(self) -> bool:
        """True if utterances are segments of recordings."""
        return self.main == "segments"

    def read(self, name: str, line: bytes, holder: Holder) -> Any:
        """Return the object that a line of a script names."""
        entries = replace(self.entries, holder=holder, script_ns=self.modified_ns[name])
        return entries.read(memoryview(line))[1]

    def whole_recording(self, name: str, line: bytes) -> Wave:
        """Return a recording that is read from its start; the last one is kept for its next segments."""
        known = self._last_recording[0]
        if known is None or known[0] != line:
            known = self._last_recording[0] = (line, self.read(name, line, WAVE))
        return known[1]

    @cached
    def _last_recording(self) -> list[tuple[bytes, Wave] | None]:
        return [None]

    @cached
    def _wanted(self) -> list[tuple[str, str, Callable[[_Utterance, str], Any]]]:
        wanted = [each for each in self.columns if self.only is None or each in self.only]
        known = {_KEY_COLUMN: ("", lambda utterance, _: decoded(utterance.key)), **_COLUMNS}
        return [(column, *known[column]) for column in wanted]


__all__ = ["UtteranceDecoder", "decoder_from_json", "utterances_in", "utterances_of"]


@final
@dataclass(frozen=True, slots=True)
class UtteranceDecoder(Decoder):
    """Decodes the line of an utterance, with what the other tables say about it."""

    utterances: Utterances
    fast: Callable[[memoryview], Any] = field(init=False)
    name: str = field(init=False, default="kaldi-directory")
    recover: None = field(init=False, default=None)
    function: None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Decode lines by the reader of utterances."""
        object.__setattr__(self, "fast", self.utterances)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the reader alone."""
        return UtteranceDecoder, (self.utterances,)

    @property
    def reads_objects(self) -> bool:
        """True: recordings and features."""
        return True

    @property
    def names_objects(self) -> bool:
        """True: scripts name them."""
        return True

    def span(self, view: memoryview) -> int:
        """Return the length of the line."""
        return line_span(view)

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the columns and the other tables."""
        folders = [folder for files in self.beside() for folder in into.folders(files)]
        return {"columns": list(self.utterances.columns), "tables": folders}

    def described_besides(self) -> dict[str, Any]:
        """Return the columns, and each other table."""
        return self.utterances.described()

    def fetch_named(self, views: Iterable[memoryview]) -> list[object]:
        """Fetch the objects of stores that the lines of scripts name."""
        lines = itertools.chain.from_iterable(map(self.utterances.named_lines, views))
        return fetch_named(self.utterances.entries, lines)

    def narrowed(self, columns: frozenset[str]) -> UtteranceDecoder:
        """Return a decoder that reads nothing for the other columns."""
        return UtteranceDecoder(self.utterances.narrowed(columns))

    def declared(self) -> Mapping[str, Any] | None:
        """Return the names of the columns."""
        return dict.fromkeys(self.utterances.columns)

    def beside(self) -> tuple[FileSet, ...]:
        """Return the other tables."""
        return tuple(table.files for table in self.utterances.tables.values())

    def close(self) -> None:
        """Close the other tables and the files that scripts name."""
        self.utterances.close()


def utterances_in(files: FileSet, reading: Reading, *, pipes: Pipes) -> tuple[FileSet, UtteranceDecoder]:
    """Return the table that lists the utterances of a directory, and the decoder of its lines.

    Args:
        files: the indexed tables.
        reading: the arguments of ``sk.open``; ``columns`` are columns of records.
        pipes: ``"allow"`` if commands in scripts may be run.

    Raises:
        UnsupportedFormat: the files are not the tables of one directory.
        InvalidArgument: the directory has no table for a column.
        CorruptTable: the tables do not go together.
    """
    columns = None if reading.columns is None else checked_names("columns", reading.columns)
    _check_tables(files)
    check_directory(files)
    main, *others = files.apart()
    most, allow = reading.most_open_files, reading.allow
    utterances = utterances_of(main, others, columns, pipes=pipes, most_open_files=most, allow=allow)
    return main, UtteranceDecoder(utterances)


def utterances_of(
    main: FileSet,
    others: Sequence[FileSet],
    columns: tuple[str, ...] | None,
    *,
    pipes: Pipes,
    most_open_files: int,
    allow: tuple[str, ...],
) -> Utterances:
    """Return the reader of the utterances of a directory.

    Args:
        main: the table that lists the utterances.
        others: the other tables, each by itself; those that no column is made of are left out.
        columns: the columns of records, in their order; None for all that there are.
        pipes: ``"allow"`` if commands in scripts may be run.
        most_open_files: the most files of audio and other objects that are open at once.
        allow: the folders and files that lines of scripts in stores may name besides.

    Raises:
        InvalidArgument: the directory has no table for a column.
    """
    tables = {files.name(0): files for files in (main, *others)}
    there = columns_of(tables)
    for column in columns or ():
        if column not in there:
            message = (
                f"the data directory {os.path.dirname(main.path(0))!r} has no column {column!r}; its tables "
                f"make the columns {', '.join(map(repr, there))}"
            )
            raise InvalidArgument(message)
    folder = os.path.dirname(main.path(0))
    files = ObjectFiles(most_open_files, folder if "://" in folder else "")
    columns = there if columns is None else columns
    used = tables_of(columns)
    return Utterances(
        main.name(0),
        {name: SortedTable(table) for name, table in tables.items() if name in used and table is not main},
        columns,
        EntryReader(
            "scp",
            WAVE,
            pipes=pipes,
            permissive=False,
            files=files,
            below=script_folders(f"{folder}/"),
            allow=allow,
            folder=folder,
        ),
        {
            name: None if "://" in folder else int(table.mtimes_ns[0])
            for name, table in tables.items()
            if name.endswith(".scp")
        },
    )


def decoder_from_json(said: Mapping[str, Any], given: Loading, where: str) -> UtteranceDecoder:
    """Return the decoder that ``UtteranceDecoder.as_json`` wrote.

    Raises:
        CorruptState: it wrote no such thing.
        DataNotFound: a table is not found.
    """
    columns = given.checked(said.get("columns"), tuple[str, ...], f"{where}.columns")
    main: FileSet = given.arguments["files"]
    others = given.beside(said.get("tables"), "tables", f"{where}.tables")
    pipes = checked_pipes(given.pipes)
    try:
        utterances = utterances_of(
            main, others, columns, pipes=pipes, most_open_files=main.most_open, allow=given.allow
        )
    except InvalidArgument as error:
        message = f"{where}: {error}"
        raise CorruptState(message) from None
    return UtteranceDecoder(utterances)


def _check_tables(files: FileSet) -> None:
    """Check that files are the tables of one directory, in their order, as a spec names them.

    Raises:
        UnsupportedFormat: they are something else.
    """
    names = files.names()
    if names[0] in BASES and names == [name for name in TABLES if name in names]:
        return
    message = (
        f"{files.path(0)!r} is opened with the directory that it is in, as "
        f"{'kaldi:' + os.path.dirname(files.path(0))!r}; leave format='kaldi-directory' out"
    )
    raise UnsupportedFormat(message)
