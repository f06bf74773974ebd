"""Utterances of a data directory of Kaldi: from a line of one table to a record of all tables.

The lines of the main table are the records: segments, wav.scp, feats.scp, text or utt2spk, the first of these
that there is. What another table says of an utterance, of its speaker or of its recording is found by key. A
table is read only for a column that is used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from seekable._cached import cached
from seekable.errors import CorruptTable, SeekableError
from seekable.formats.kaldi.directory.scan_table import shown
from seekable.formats.kaldi.directory.segments import SegmentHolder, parse_segment
from seekable.formats.kaldi.directory.text_tables import TABLES
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.objects.tokens import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from seekable.formats.kaldi.directory.segments import Segment
    from seekable.formats.kaldi.directory.sorted_table import SortedTable
    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.holders.wave import Wave
    from seekable.nodes.saving import Saving

__all__ = ["KEY_COLUMN", "WAVE", "Utterances", "columns_of", "tables_of"]

KEY_COLUMN: Final = "key"
"""The column of the name of the utterance."""

_READ_WHOLE: Final = (b"|", b".gz", b".zst", b".flac")
"""The ends of lines that name recordings without a cheap way to their middle."""

WAVE: Final = find_holder("wave")
"""The holder of the recordings of ``wav.scp``."""

HOLDERS: Final = MappingProxyType(
    {
        "feats.scp": find_holder("matrix"),
        "vad.scp": find_holder("vector"),
        "cmvn.scp": find_holder("double-matrix"),
    }
)
"""The holders of the objects of scripts."""


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
        self._segment: Segment | None = None

    def rest(self, name: str) -> bytes:
        """Return what a table has behind the key of the utterance, of its speaker or of its recording."""
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
            return self.segment.recording.encode("utf-8", "surrogateescape")
        return self.key

    @property
    def segment(self) -> Segment:
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
    return utterance.reader.read(name, utterance.script_line(name), HOLDERS[name])


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
    """Return the columns of records, in their order, by the names of the tables of a directory.

    Example:
        >>> columns_of(["text", "utt2spk", "wav.scp"])
        ('key', 'audio', 'text', 'speaker')
    """
    found = [column for column, (table, _) in _COLUMNS.items() if table in tables]
    if "utt2spk" not in tables:
        found = [column for column in found if TABLES[_COLUMNS[column][0]].keyed != "speaker"]
    return (KEY_COLUMN, *found)


def tables_of(columns: Collection[str]) -> frozenset[str]:
    """Return the names of the tables that columns are made of, directly or through another table.

    Example:
        >>> sorted(tables_of(["key", "gender"]))
        ['spk2gender', 'utt2spk']
    """
    found = {_COLUMNS[column][0] for column in columns if column != KEY_COLUMN}
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
    """The columns that are used; None for all. They are no part of the description."""

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

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the columns and the tables for a pipeline file."""
        folders = [folder for table in self.tables.values() for folder in into.folders(table.files)]
        return {"columns": list(self.columns), "tables": folders}

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
        known = {KEY_COLUMN: ("", lambda utterance, _: decoded(utterance.key)), **_COLUMNS}
        return [(column, *known[column]) for column in wanted]
