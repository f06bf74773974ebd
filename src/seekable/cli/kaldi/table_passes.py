"""Passes over a table of Kaldi: copies, whose entries are chosen, cut and converted; and checks."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.cli.kaldi.named_tables import (
    counted,
    entries_in_words,
    is_on_stdout,
    looks_like_a_table,
    script_of_targets,
    writing,
    wxfilenames,
)
from seekable.cli.kaldi.object_forms import ShapeHolder, converted, plain
from seekable.errors import (
    CorruptTable,
    InvalidArgument,
    KeyNotFound,
    PipeFailed,
    PipeRefused,
    UnsupportedFormat,
)
from seekable.formats.kaldi.basic_types import decoded, encoded
from seekable.formats.kaldi.directory.utterances import parse_segment
from seekable.formats.kaldi.files.open_named import open_rx
from seekable.formats.kaldi.script_lines import iter_script
from seekable.kaldi import (
    RandomAccessReader,
    SequentialReader,
    Writer,
    classify_rxfilename,
    classify_wxfilename,
    parse_rspecifier,
    read,
    split_offset,
    split_range,
    write,
)

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.kaldi import Holder


_WORDS = 4


def _key_filter(include: str | None, exclude: str | None, *, pipes: Pipes) -> Callable[[str], bool]:
    """Return a condition on keys, which two files of keys describe.

    The key is the first word of a line, so that a script file and ``utt2spk`` are files of keys too. Empty
    lines count as no key. Lines may end with CR LF.

    Args:
        include: the rxfilename of the keys that pass; None for all.
        exclude: the rxfilename of the keys that do not pass, also if they are included; None for none.
        pipes: the commands that may run.

    Raises:
        SeekableError: a file cannot be read; see `open_rx`.
    """
    wanted = None if include is None else frozenset(_keys_in(include, pipes))
    unwanted = frozenset() if exclude is None else frozenset(_keys_in(exclude, pipes))
    return lambda key: (wanted is None or key in wanted) and key not in unwanted


def _keys_in(rxfilename: str, pipes: Pipes) -> Iterator[str]:
    with open_rx(rxfilename, header=False, pipes=pipes) as file:
        for line in file:
            if words := line.split(None, 1):
                yield decoded(words[0])


@dataclass(frozen=True, slots=True)
class _SegmentPart:
    """A part of an object."""

    key: str
    """The key of the new entry."""

    old_key: str
    """The key of the object."""

    cut: Callable[[Any], Any]
    """Returns the part of the object; raises a SeekableError if the object does not have it."""


def _read_parts(
    rxfilename: str, holder: str, frame_shift: float | None, *, pipes: Pipes
) -> list[_SegmentPart]:
    """Return the parts that the lines of a file describe: ``KEY OLD-KEY START END``.

    Of a wave, start and end are seconds, -1 is its end, and the number of a channel may follow, as Kaldi's
    ``extract-segments`` has it. Of other objects they are rows, the last one excluded, as ``extract-rows``
    has it; rows after the last one of the object are left out.

    Args:
        rxfilename: the extended filename.
        holder: the name of the holder of the objects.
        frame_shift: the time of a row in seconds, if start and end are times; None if they are rows. Times
            become rows by the division of single precision that Kaldi does, rounded toward zero.
        pipes: the commands that may run.

    Raises:
        CorruptTable: a line is of another form, or has no row; the message has the line.
        InvalidArgument: the frame shift is not above 0, or the objects are waves.
    """
    if frame_shift is not None and (holder == "wave" or not 0 < frame_shift < math.inf):
        found = "waves, whose segments have seconds" if holder == "wave" else str(frame_shift)
        raise InvalidArgument(f"--frame-shift must be above 0, and is for objects with rows (got {found})")
    parse = _of_wave if holder == "wave" else partial(_of_rows, frame_shift=frame_shift)
    parts = []
    with open_rx(rxfilename, header=False, pipes=pipes) as file:
        for number, line in enumerate(file, 1):
            try:
                parts.append(parse(line))
            except CorruptTable as error:
                raise CorruptTable(f"{rxfilename!r}: line {number:,}: {error}") from None
    return parts


def _of_wave(line: bytes) -> _SegmentPart:
    segment = parse_segment(line)
    return _SegmentPart(segment.key, segment.recording, segment.cut)


def _of_rows(line: bytes, *, frame_shift: float | None) -> _SegmentPart:
    words = decoded(line).split()
    bounds = _bounds(words, frame_shift)
    if bounds is None:
        raise CorruptTable(f"expected KEY OLD-KEY START END, with 0 <= START < END, found {line[:80]!r}")
    key, old_key = words[:2]
    return _SegmentPart(key, old_key, lambda value: _rows(value, *bounds, key=key, old_key=old_key))


def _bounds(words: list[str], frame_shift: float | None) -> tuple[int, int] | None:
    """Return the first row and the row after the last one; None if the words do not say that."""
    if len(words) != _WORDS:
        return None
    try:
        if frame_shift is None:
            first, end = (int(word) for word in words[2:])
        else:
            shift = float(np.float32(frame_shift))
            first, end = (int(float(word) / shift) for word in words[2:])
    except (ValueError, OverflowError):
        return None
    return (first, end) if 0 <= first < end else None


def _rows(value: Any, first: int, end: int, *, key: str, old_key: str) -> Any:
    rows = plain(value)
    if not isinstance(rows, list) and not (isinstance(rows, np.ndarray) and rows.ndim):
        raise InvalidArgument(f"the segment {key!r} needs an object with rows (got a {type(value).__name__})")
    if first >= len(rows):
        raise InvalidArgument(f"the segment {key!r} begins at row {first}, and {old_key!r} has {len(rows)}")
    return rows[first:end]


@dataclass(frozen=True, slots=True)
class CopyJob:
    """A copy: its source, its target, and the holders that read and write."""

    source: str
    """The rspecifier, or the extended filename of one object."""
    target: str
    """The wspecifier, or the extended filename of one object."""
    holder: str
    """The name of the holder that reads."""
    to_holder: str
    """The name of the holder that writes."""
    options: dict[str, Any]
    """The options of the holder that writes."""
    pipes: Pipes
    """The commands that may run."""

    @property
    def reading_holder(self) -> str:
        """The name of the holder that reads. Compressed matrices that stay so are read with their codes."""
        keeps_codes = self.holder == self.to_holder == "compressed-matrix" and "method" not in self.options
        return "general-matrix" if keeps_codes else self.holder


@dataclass(frozen=True, slots=True)
class _Copied:
    """The outcome of a copy."""

    copied: int
    """The number of objects that were written."""
    read: int
    """The number of objects that were read."""
    is_on_stdout: bool
    """True if objects were written to standard output."""

    def in_words(self, holder: str) -> str:
        """Return the outcome in words, such as ``Copied 12 entries (matrix)``."""
        return f"Copied {entries_in_words(self.copied, self.read)} ({holder})"


def is_table(source: str, target: str) -> bool:
    """Return True for two specifiers of tables, False for two extended filenames.

    Raises:
        InvalidArgument: one of them is a specifier and the other is a filename.
    """
    kinds = {looks_like_a_table(name) for name in (source, target)}
    if len(kinds) > 1:
        raise InvalidArgument(
            f"a table is copied to a table (ark: or scp:), and one object to one object "
            f"(got {source!r} and {target!r})"
        )
    return kinds == {True}


def copy_object(job: CopyJob, *, text: bool, atomic: bool) -> _Copied:
    """Copy one object from an extended filename to another one."""
    value = read(job.source, job.reading_holder, pipes=job.pipes)
    write(
        job.target,
        converted(value, job.to_holder),
        job.to_holder,
        not text,
        pipes=job.pipes,
        atomic=atomic,
        **job.options,
    )
    return _Copied(1, 1, is_on_stdout=classify_wxfilename(job.target) == "stdout")


def copy_table(
    job: CopyJob,
    *,
    include: str | None,
    exclude: str | None,
    segments: str | None,
    frame_shift: float | None,
    files: dict[str, bool],
    shown: bool,
) -> _Copied:
    """Copy the entries of a table.

    Args:
        job: the tables.
        include: the rxfilename of the keys that are copied; None for all.
        exclude: the rxfilename of the keys that are left out.
        segments: the rxfilename of segments, each of which becomes an entry; None for whole objects.
        frame_shift: the time of a row in seconds, if segments have times.
        files: arguments of the writer about its files.
        shown: show the progress, on a terminal.
    """
    on_stdout = is_on_stdout(job.target)
    _refuse_to_overwrite(job, **files)
    passes = _key_filter(include, exclude, pipes=job.pipes)
    parts = None if segments is None else _read_parts(segments, job.holder, frame_shift, pipes=job.pipes)
    with (
        counted("Copied", shown=shown, on_stdout=on_stdout) as entries,
        _opened(job, parts) as pairs,
        Writer(job.target, job.to_holder, pipes=job.pipes, **files, **job.options) as writer,
    ):
        for key, value in pairs:
            if passed := passes(key):
                with writing(job.to_holder, f"the entry is {key!r}"):
                    writer.write(key, converted(value, job.to_holder))
            entries.count(done=passed)
    return _Copied(entries.done, entries.read, is_on_stdout=on_stdout)


@contextmanager
def _opened(job: CopyJob, parts: list[_SegmentPart] | None) -> Iterator[Iterator[tuple[str, Any]]]:
    """Open the table, and return its entries, or those that are cut out of them.

    The table is closed after the last entry: a failed command is an error before atomic files appear.
    """
    if parts is None:
        with SequentialReader(job.source, job.reading_holder, pipes=job.pipes) as reader:
            yield _whole(reader)
    else:
        with RandomAccessReader(job.source, job.holder, pipes=job.pipes) as table:
            yield _cut(table, parts, job.source)


def _whole(reader: SequentialReader) -> Iterator[tuple[str, Any]]:
    yield from reader
    reader.close()


def _cut(table: RandomAccessReader, parts: list[_SegmentPart], source: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects that segments describe, and raise an error at the end for those that are missing."""
    missing: list[_SegmentPart] = []
    for part in parts:
        if part.old_key in table:
            yield part.key, part.cut(table[part.old_key])
        else:
            missing.append(part)
    table.close()
    if missing:
        raise KeyNotFound(
            f"{source!r} lacks the keys of {len(missing):,} of {len(parts):,} segments, the first of them "
            f"{missing[0].old_key!r} (for {missing[0].key!r}); the others were copied"
        )


def _refuse_to_overwrite(job: CopyJob, *, atomic: bool = False, append: bool = False) -> None:
    """Raise an error if the table would be written over itself, which destroys it before it is read.

    Raises:
        InvalidArgument: a file is read and written.
    """
    if atomic and not append:
        return
    named = wxfilenames(job.target) or [script_of_targets(job.target)]
    written = {os.path.realpath(name) for name in named if os.path.isfile(name)}
    for name in _files_read(job):
        if os.path.realpath(name) in written:
            raise InvalidArgument(
                f"{name!r} is read, and {job.target!r} writes it: nothing would be left to read. Write "
                f"another file, or use --atomic, with which the file is replaced at the end"
            )


def _files_read(job: CopyJob) -> Iterator[str]:
    """Yield the names of files that are read, the first of those that a script names among them."""
    specifier = parse_rspecifier(job.source)
    if classify_rxfilename(specifier.rxfilename) not in {"file", "offset"}:
        return
    yield split_offset(specifier.rxfilename)[0]
    if specifier.kind == "scp":
        for entry in iter_script(specifier.rxfilename, pipes="refuse"):
            if classify_rxfilename(entry.xfilename) != "pipe":
                yield split_offset(split_range(entry.xfilename)[0])[0]
            return


MOST_PROBLEMS = 1000
"""The most problems that are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class TableProblem:
    """A problem of a table."""

    kind: str
    """"torn" (nothing after it can be read), "unreadable", "unsorted" or "twice"."""

    key: str | None
    """The key of the entry; None if it is not known."""

    message: str
    """The problem, and its place in the table."""


@final
@dataclass(slots=True)
class TableCheck:
    """The outcome of the check of a table."""

    entries: int = 0
    """The number of entries whose keys were read."""

    problems: list[TableProblem] = field(default_factory=list)
    """The first problems in the order of the table, at most MOST_PROBLEMS; those of keys that stand apart
    come last."""

    problem_count: int = 0
    """The number of all problems."""

    def add(self, kind: str, key: str | None, message: str) -> None:
        """Count a problem, and keep it if it is one of the first."""
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(TableProblem(kind, key, message))


def check_table(
    rspecifier: str, holder: Holder, *, is_sorted: bool, pipes: Pipes, count: Callable[[], None]
) -> TableCheck:
    """Read each entry of a table.

    Memory grows by 8 bytes an entry, for the comparison of keys.

    Args:
        rspecifier: the table.
        holder: reads the objects.
        is_sorted: True if keys out of order are a problem.
        pipes: the commands that may run.
        count: is called after each entry.

    Raises:
        InvalidArgument, DataNotFound, AccessDenied, PipeRefused: the table cannot be opened.
    """
    found = TableCheck()
    keys = _Keys(found, is_sorted=is_sorted)
    try:
        with SequentialReader(rspecifier, holder, pipes=pipes) as reader:
            while not reader.done:
                keys.add(reader.key)
                _read(reader, found)
                count()
                reader.next()
    except (CorruptTable, PipeFailed) as error:
        found.add("torn", getattr(error, "key", None), str(error))
    keys.add_those_apart(rspecifier, holder, pipes=pipes)
    return found


def _read(reader: SequentialReader, found: TableCheck) -> None:
    """Read the present object; that it cannot be read is a problem."""
    try:
        reader.value  # noqa: B018 - it is read by this
    except PipeRefused:
        raise
    except (CorruptTable, UnsupportedFormat, InvalidArgument, OSError) as error:
        found.add("unreadable", reader.key, str(error))


class _Keys:
    """The keys of a table as they are read; those that are out of order, or occur twice, are problems."""

    def __init__(self, found: TableCheck, *, is_sorted: bool) -> None:
        self._found = found
        self._is_sorted = is_sorted
        self._last = b""
        self._last_key = ""
        self._hashes = array("Q")
        self._in_order = True

    def add(self, key: str) -> None:
        """Compare a key with the one before it."""
        raw = encoded(key)
        if self._found.entries and raw <= self._last:
            if raw == self._last:
                self._found.add("twice", key, f"the key {key!r} occurs twice in a row")
            else:
                self._in_order = False
                if self._is_sorted:
                    message = f"the key {key!r} comes after {self._last_key!r}: not in the order of bytes"
                    self._found.add("unsorted", key, message)
        self._found.entries += 1
        self._last, self._last_key = raw, key
        self._hashes.append(xxhash.xxh3_64_intdigest(raw))

    def add_those_apart(self, rspecifier: str, holder: Holder, *, pipes: Pipes) -> None:
        """Add the problems of keys that occur twice, and not in a row.

        The table is read again for their names, which is done only if there are any.
        """
        if self._in_order:
            return
        hashes, counts = np.unique(np.frombuffer(self._hashes, np.uint64), return_counts=True)
        repeated = set(hashes[counts > 1].tolist())
        if not repeated:
            return
        if classify_rxfilename(parse_rspecifier(rspecifier).rxfilename) != "file":
            self._found.add("twice", None, f"{len(repeated):,} keys occur more than once")
            return
        for key, message in _named(rspecifier, holder, repeated, pipes=pipes):
            self._found.add("twice", key, message)


def _named(rspecifier: str, holder: Holder, repeated: set[int], *, pipes: Pipes) -> Iterator[tuple[str, str]]:
    """Yield the key and a message for each entry whose key an entry before it has; not for keys in a row."""
    entries: dict[str, int] = {}
    last = None
    try:
        with SequentialReader(rspecifier, ShapeHolder(holder), pipes=pipes) as reader:
            number = 0
            while not reader.done:
                key = reader.key
                number += 1
                if xxhash.xxh3_64_intdigest(encoded(key)) in repeated:
                    first = entries.setdefault(key, number)
                    if first < number and key != last:
                        message = f"the key {key!r} of entry {number:,} is that of entry {first:,} too"
                        yield key, message
                last = key
                reader.next()
    except (CorruptTable, PipeFailed):
        return  # The first pass has the problem.
