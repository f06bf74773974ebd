"""The work of ``seekable kaldi copy``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.cli.kaldi.conversion import converted
from seekable.cli.kaldi.entry_count import counted, entries_in_words, writing
from seekable.cli.kaldi.key_filter import key_filter
from seekable.cli.kaldi.segment_lines import Part, read_parts
from seekable.cli.kaldi.targets import is_on_stdout, looks_like_a_table, script_of_targets, wxfilenames
from seekable.errors import InvalidArgument, KeyNotFound
from seekable.formats.kaldi.tables.script import iter_script
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

__all__ = ["Copied", "Job", "copy_object", "copy_table", "is_table"]


@dataclass(frozen=True, slots=True)
class Job:
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
class Copied:
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
        message = (
            f"a table is copied to a table (ark: or scp:), and one object to one object "
            f"(got {source!r} and {target!r})"
        )
        raise InvalidArgument(message)
    return kinds == {True}


def copy_object(job: Job, *, text: bool, atomic: bool) -> Copied:
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
    return Copied(1, 1, is_on_stdout=classify_wxfilename(job.target) == "stdout")


def copy_table(
    job: Job,
    *,
    include: str | None,
    exclude: str | None,
    segments: str | None,
    frame_shift: float | None,
    files: dict[str, bool],
    shown: bool,
) -> Copied:
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
    passes = key_filter(include, exclude, pipes=job.pipes).passes
    parts = None if segments is None else read_parts(segments, job.holder, frame_shift, pipes=job.pipes)
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
    return Copied(entries.done, entries.read, is_on_stdout=on_stdout)


@contextmanager
def _opened(job: Job, parts: list[Part] | None) -> Iterator[Iterator[tuple[str, Any]]]:
    """Open the table, and return its entries, or those that are cut out of them.

    The table is closed behind the last entry: a failed command is an error before atomic files appear.
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


def _cut(table: RandomAccessReader, parts: list[Part], source: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects that segments describe, and raise an error at the end for those that are missing."""
    missing: list[Part] = []
    for part in parts:
        if part.old_key in table:
            yield part.key, part.cut(table[part.old_key])
        else:
            missing.append(part)
    table.close()
    if missing:
        message = (
            f"{source!r} lacks the keys of {len(missing):,} of {len(parts):,} segments, the first of them "
            f"{missing[0].old_key!r} (for {missing[0].key!r}); the others were copied"
        )
        raise KeyNotFound(message)


def _refuse_to_overwrite(job: Job, *, atomic: bool = False, append: bool = False) -> None:
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
            message = (
                f"{name!r} is read, and {job.target!r} writes it: nothing would be left to read. Write "
                f"another file, or use --atomic, with which the file is replaced at the end"
            )
            raise InvalidArgument(message)


def _files_read(job: Job) -> Iterator[str]:
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
