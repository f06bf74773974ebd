"""The job that writes one part of one lane, or merges the lanes of a part; it runs in any process."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO, final

from seekable.nodes.graph import HOLE
from seekable.writing.target import content_digest, write_whole
from seekable.writing.write_source import Tally
from seekable.writing.written_parts import LanePart, PartSlots, turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.formats.file_format import FileFormat
    from seekable.writing.write_source import LanedItems, LaneRun

__all__ = ["LaneAnswer", "LaneWork", "MergeAnswer", "MergeWork", "PartWriter", "TookTooLong"]

_AT_ONCE = 64
"""The number of items that become a chunk."""

_RECENT = 1024 + _AT_ONCE
"""The number of records whose tokens are remembered, for error messages."""


class TookTooLong(Exception):
    """The work was given up, because it goes on in other processes."""


@dataclass(frozen=True, slots=True)
class LaneWork:
    """A part of a lane to write."""

    lane: int

    part: int

    slots: int
    """The number of slots that the lane has in the part."""

    state: list[Any] | None
    """The state of the lane at the beginning of the part; None for its first state."""

    path: str
    """The path of the file to write, unless there are no records."""

    beside: tuple[str, ...]
    """The paths of the files that belong to it."""

    is_piece: bool
    """True for a piece that is to be merged with those of other lanes; False for a file of the result."""


@dataclass(frozen=True, slots=True)
class LaneAnswer:
    """The part of a lane that was written, and the state of the lane after it."""

    done: LanePart

    state: list[Any]


@dataclass(frozen=True, slots=True)
class MergeWork:
    """Parts whose lanes are to be merged into one file of the result."""

    number: int
    """The index of the file."""

    path: str

    beside: tuple[str, ...]
    """The paths of the files that belong to it."""

    parts: tuple[tuple[tuple[LanePart, str], ...], ...]
    """For each part, what was written of its lanes, each with the path of its piece."""


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """The rows and the bytes of a file of the result."""

    rows: int

    bytes: int


@final
class PartWriter:
    """Writes and merges parts: a function of a piece of work, for `answered`.

    It keeps the lanes that it ran last, so that the next part of a lane goes on without reading the waiting
    items of the lane again. One thread at a time runs a lane.
    """

    def __init__(
        self,
        items: LanedItems,
        form: FileFormat,
        division: PartSlots,
        tally: Tally,
        mounts: object = None,
    ) -> None:
        self._items = items
        self._form = form
        self._division = division
        self._tally = tally
        self._mounts = mounts
        self._running: dict[int, tuple[int, LaneRun]] = {}
        """By lane, the next part and the items from there on."""
        self.until: float | None = None
        """The time, of ``time.monotonic``, at which work of this process is given up; None for never."""

    def give_up(self) -> None:
        """Forget the lanes that ran here, which go on elsewhere, and do all later work to its end."""
        self.until = None
        self._running.clear()

    def __reduce__(self) -> tuple[type[PartWriter], tuple[Any, ...]]:
        """Pickle without the lanes that run, and with a counter that does nothing."""
        return PartWriter, (self._items, self._form, self._division, Tally(), self._mounts)

    def __call__(self, work: LaneWork | MergeWork) -> LaneAnswer | MergeAnswer:
        """Do a piece of work.

        Raises:
            TookTooLong: the time of ``until`` has come.
            WrongType: a record cannot be written; the message names it.
            OSError: the disk is full, or the folder cannot be written.
        """
        return self._merge(work) if isinstance(work, MergeWork) else self._write(work)

    def _write(self, work: LaneWork) -> LaneAnswer:
        part, run = self._running.pop(work.lane, (-1, None))
        if run is None or part != work.part:
            run = self._items.run(work.lane, work.state)
        reading = _LaneReading(run, work.slots, self._checked)
        chunks = reading.read()
        some, size = next(chunks, None), 0
        if some is not None:
            size = write_whole(
                work.path,
                lambda file, others: self._write_chunks(file, others, chain([some], chunks), work),
                beside=work.beside,
                form=self._form,
                named=lambda back: self._items.named(work.lane, reading.recent[-back]),
                lasting=not work.is_piece,
            )
        if not reading.ended:
            self._running[work.lane] = work.part + 1, run
        done = LanePart(
            work.lane,
            work.part,
            slots=reading.slots,
            rows=reading.slots - len(reading.gaps),
            holes=reading.holes,
            gaps=tuple(reading.gaps),
            ended=reading.ended,
            bytes=size,
            digest=content_digest(work.path) if size and work.is_piece else "",
        )
        return LaneAnswer(done, run.state())

    def _write_chunks(
        self, file: BinaryIO, others: Sequence[BinaryIO], chunks: Iterator[Any], work: LaneWork
    ) -> None:
        if work.is_piece:
            self._form.write_piece(file, chunks)
        else:
            self._form.write(file, chunks, first=work.part * self._division.slots, beside=others)

    def _checked(self, items: int) -> None:
        """Report the number of items read so far of a part."""
        if self.until is not None and time.monotonic() > self.until:
            raise TookTooLong
        self._tally.add(items)

    def _merge(self, work: MergeWork) -> MergeAnswer:
        def write(file: BinaryIO, others: Sequence[BinaryIO]) -> None:
            first = work.number * self._division.slots
            chunks = chain.from_iterable(map(self._merged, work.parts))
            self._form.write(file, chunks, first=first, beside=others)

        size = write_whole(work.path, write, form=self._form, named=lambda _: "a record", beside=work.beside)
        return MergeAnswer(sum(done.rows for part in work.parts for done, _ in part), size)

    def _merged(self, part: tuple[tuple[LanePart, str], ...]) -> Iterator[Any]:
        pieces = [path for _, path in part]
        return self._form.merged(pieces, turns(self._division, [done for done, _ in part]))


class _LaneReading:
    """Reads the items of a lane in chunks, as many as the lane has slots in a part."""

    def __init__(self, run: LaneRun, slots: int, tell: Any) -> None:
        self._run = run
        self._most = slots
        self._tell = tell
        self._holes = run.holes
        self.slots = 0
        """The number of items so far."""
        self.gaps: list[int] = []
        """The indices of the items that were holes."""
        self.recent: deque[Any] = deque(maxlen=_RECENT)
        """The tokens of the last records."""
        self.ended = False

    @property
    def holes(self) -> int:
        """The number of records that were left out so far, by the sources or here."""
        return self._run.holes - self._holes + len(self.gaps)

    def read(self) -> Iterator[list[Any]]:
        """Yield the records without holes, in lists that are not empty."""
        pairs = iter(self._run)
        while self.slots < self._most:
            some = list(islice(pairs, min(_AT_ONCE, self._most - self.slots)))
            if not some:
                self.ended = True
                return
            records = []
            for number, (token, item) in enumerate(some, self.slots):
                if item is HOLE:
                    self.gaps.append(number)
                else:
                    records.append(item)
                    self.recent.append(token)
            self.slots += len(some)
            self._tell(self.slots)
            if records:
                yield records
