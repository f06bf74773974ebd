"""The check of a table: each object is read, and the keys are compared with each other."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.cli.kaldi.values import ShapeHolder
from seekable.errors import CorruptTable, InvalidArgument, PipeFailed, PipeRefused, UnsupportedFormat
from seekable.formats.kaldi.objects.tokens import encoded
from seekable.kaldi import SequentialReader, classify_rxfilename, parse_rspecifier

if TYPE_CHECKING:
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.kaldi import Holder

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
                    message = f"the key {key!r} comes behind {self._last_key!r}: not in the order of bytes"
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
