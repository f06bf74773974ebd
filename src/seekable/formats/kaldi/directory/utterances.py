"""Utterances of a data directory: a line in the main table becomes a record from all tables.

The lines of the main table are the records: segments, wav.scp, feats.scp, text or utt2spk, the first of these
that there is. What another table says about an utterance, its speaker or its recording is found by key.
A table is read only for a column that is used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from seekable._cached import cached
from seekable.errors import CorruptTable, SeekableError
from seekable.formats.kaldi.directory.text_tables import TABLES, shown
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.holders.wave import (
    Wave,
    WaveHolder,
    find_wave_part,
    read_wave_header,
    read_wave_part,
)
from seekable.formats.kaldi.objects.tokens import decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.formats.kaldi.objects.cursor import Cursor, Output
    from seekable.index.fileset import FileSet

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
        CorruptTable: it is no such line.
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
