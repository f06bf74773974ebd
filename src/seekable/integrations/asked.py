"""Batches that someone else reads: they are asked for before they are delivered, and both are counted.

torch's ``DataLoader`` asks its batch sampler for batches ahead of those that it delivers, and calls nothing
of the sampler when it delivers one. But it takes each batch from its own iterator's ``_next_data``, which
asks for one more when it has one: with workers for a later batch, without them for this one. So
``_next_data`` of that one iterator is overlaid with a function that counts: what was asked for lies in a
queue, and a call that asked has taken the queue's head, which was delivered if the call returned it.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from seekable.dataset.position import Position, Positions
from seekable.errors import InvalidArgument, StoppedIterator
from seekable.loader.course import Course
from seekable.loader.memory import OfDataset
from seekable.loader.produce import Made, stretches
from seekable.loader.run import Run
from seekable.loader.steps import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType

    from seekable.loader.arguments import Resume
    from seekable.loader.runs import Runs
    from seekable.loader.steps import Steps
    from seekable.nodes.contract import Node

__all__ = ["Asked", "AskedCourse", "Asks", "caller", "follow", "is_torchdata"]

_TORCHDATA = ("torchdata.",)
_TORCH = ("torch.utils.data.", *_TORCHDATA)
_ACCELERATE = ("accelerate.data_loader",)

_WRAPPED = (
    "a DataLoader asks for batches through something that stands between it and this sampler, as "
    "accelerator.prepare() with several processes and skip_first_batches() put it there"
)
_READ_AHEAD = "Accelerate's loaders read one batch more than they deliver"
_UNORDERED = "in_order=False delivers batches in another order than it asks for them"
_UNTOLD = "this version of torch does not say which batches it has delivered"


class Asks:
    """Makes batches that are lists of positions, or single positions."""

    def __init__(self, steps: Steps, *, single: bool) -> None:
        """Make nothing yet."""
        self._steps, self._single = steps, single

    def batches(self, cursor: Cursor) -> Iterator[Made]:
        """Begin to make batches."""
        for stretch in stretches(self._steps, cursor):
            for start, stop, _, after in stretch.batches(self._steps):
                positions = Positions(map(Position, stretch.positions[start:stop].tolist()))
                yield Made(positions[0] if self._single else positions, stop - start, 0, after)

    def close(self) -> None:
        """Do nothing: nothing outlasts a run."""


class AskedCourse(Course):
    """A course that also knows what was asked for since its iterator began, or was moved."""

    def __init__(self, dataset: Node, steps: Steps, *, maker: Asks) -> None:
        """Stand before the first batch."""
        self.start = Cursor()
        self.asked = 0
        self.doubt: str | None = None
        """Why it is not known which of the batches asked for were delivered."""
        super().__init__(steps, make=lambda _: maker, memory=OfDataset(dataset), max_holes=None)

    def load(self, document: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go to where a state was taken.

        Raises:
            StateMismatch: it is of another pipeline, or of other data.
            CorruptState: the document is not a state.
            InvalidArgument: it is to go on by rows, or did.
        """
        if resume == "rows" or document.get("rows"):
            message = (
                "resume='rows' changes what comes at a position, and a DataLoader that is given positions "
                "reads the dataset that it was made with: use sk.Loader"
            )
            raise InvalidArgument(message)
        super().load(document)

    def begin(self) -> None:
        """Go on at the cursor if that was asked for, else with the next run."""
        super().begin()
        self.doubt = None
        self._start_here()

    def skip(self, count: int) -> None:
        """Leave out batches, at most to the end of the run."""
        super().skip(count)
        self._start_here()

    def move(self, cursor: Cursor) -> None:
        """Begin elsewhere than where the batches so far lead to."""
        super().move(cursor)
        self._start_here()

    def after(self, delivered: int) -> Cursor:
        """Return the cursor after some of the batches that were asked for.

        Raises:
            InvalidArgument: so many were not asked for.
        """
        if delivered > self.asked:
            message = (
                f"delivered must be at most {self.asked}, the batches that the present iterator was asked "
                f"for since it began or was moved (got {delivered})"
            )
            raise InvalidArgument(message)
        return self.steps.after(self.start, delivered)

    def _start_here(self) -> None:
        self.start, self.asked = self.cursor, 0


class Asked(Run):
    """The iterator over a sampler's batches; it has a state of its own, of the batches asked for."""

    def __init__(self, course: AskedCourse, runs: Runs) -> None:
        """Begin at the course's cursor."""
        self._asked_course, self._runs = course, runs
        self._in_flight: deque[Made] = deque()
        self._stale = 0
        self._calls = 0
        self._is_followed = self._is_torchdatas = False
        self._is_ended = False
        super().__init__(course)

    @property
    def cursor(self) -> Cursor:
        """Where the batch begins that is asked for next."""
        return self._in_flight[-1].after if self._in_flight else self._course.cursor

    def restart(self) -> None:
        """Drop what is in flight and begin at the course's cursor; what is at its end stays there.

        So does what has no batch in flight after its end was asked for: its reader asks no more.
        """
        if isinstance(self._over, StopIteration) and not self._in_flight:
            self._is_ended = True
        elif self._in_flight:
            self._stale += len(self._in_flight)
            self._in_flight.clear()
            self._over = None
        super().restart()

    def stop(self, why: str) -> None:
        """End the iterator; torchdata begins another one where it knows that this one has no batch left."""
        if self._is_torchdatas:
            self._see_end()
        if self._is_followed and not self._is_ended:
            self._over = None  # the end was asked for, and not seen
        super().stop(why)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the batches that were asked for, as torchdata wants it of an iterator."""
        return self._course.document(self.cursor)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ask on from where a state was taken.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            StoppedIterator: a later iterator took the place of this one.
        """
        self._check_live()
        self._runs.load(state)

    def __next__(self) -> Any:
        self._calls += 1
        course = self._asked_course
        if self._calls == 1 and not self._is_followed and _stands_in(caller(), _TORCH):
            course.doubt = course.doubt or _WRAPPED
        return super().__next__()

    def doubt(self, why: str | None) -> None:
        """Note why it will not be known what was delivered."""
        self._asked_course.doubt = why

    def follow(self, *, is_torchdatas: bool) -> None:
        """From now on count batches when ``deliver`` delivers them, and not when they are asked for."""
        self._is_followed, self._is_torchdatas = True, is_torchdatas

    def deliver(self, fetch: Callable[[], Any]) -> Any:
        """Return the batch that a reader fetches, and count it."""
        self._check_live()
        while self._stale:
            self._drop(fetch)
        calls, began = self._calls, time.perf_counter()
        passed: Made | None = None
        try:
            batch = fetch()
        except StopIteration:
            self._see_end()
            raise
        finally:
            if self._calls > calls and self._in_flight:
                passed = self._in_flight.popleft()
        if passed is None:
            self._asked_course.doubt = _UNTOLD
        else:
            self._course.deliver(passed, waited_seconds=time.perf_counter() - began)
        return batch

    def _drop(self, fetch: Callable[[], Any]) -> None:
        """Fetch a batch that was asked for before the run was moved; an error of it goes with it."""
        calls = self._calls
        try:
            fetch()
        except Exception:
            if self._calls == calls:
                raise
        finally:
            self._stale -= self._calls > calls

    def _take(self, made: Made, *, waited_seconds: float) -> None:
        self._asked_course.asked += 1
        if self._is_followed:
            self._in_flight.append(made)
        else:
            super()._take(made, waited_seconds=waited_seconds)

    def _at_end(self) -> None:
        # A reader may have asked far ahead of what it delivers, and tells when it ends.
        if not self._is_followed:
            super()._at_end()

    def _see_end(self) -> None:
        """Count the end as seen, if it was asked for and all before it is delivered."""
        if (
            isinstance(self._over, StopIteration)
            and self._is_followed
            and not (self._in_flight or self._is_ended)
        ):
            self._is_ended = True
            super()._at_end()
            self._asked_course.doubt = None

    def _check_live(self) -> None:
        if isinstance(self._over, StoppedIterator):
            raise StoppedIterator(*self._over.args)


def caller() -> FrameType:
    """Return the frame that called the function that calls this."""
    # A frame that is kept in a variable of its own would hold its callers, and torch's workers with them.
    return sys._getframe(2)  # noqa: SLF001 - there is no other name for it


def follow(run: Asked, beginner: FrameType) -> None:
    """Let a run know what is delivered, where torch begins it; a run that nobody reads ahead knows anyway.

    Args:
        run: just begun.
        beginner: where ``iter`` of the sampler was called.
    """
    if not _is_in(beginner, _TORCH):
        return
    reader = beginner.f_locals.get("self")
    fetch = getattr(type(reader), "_next_data", None)
    if reader is None or fetch is None:
        run.doubt(_UNTOLD)
        return
    # The reader's end ends its workers: it must not be kept alive by what it holds itself.
    known = weakref.ref(reader)
    vars(reader)["_next_data"] = lambda: run.deliver(lambda: fetch(known()))
    unordered = not getattr(reader, "_in_order", True)
    ahead = _stands_in(beginner, _ACCELERATE)
    run.follow(is_torchdatas=type(reader).__module__.startswith(_TORCHDATA))
    run.doubt(_UNORDERED if unordered else _READ_AHEAD if ahead else None)


def is_torchdata(frame: FrameType) -> bool:
    """Tell whether a frame belongs to torchdata."""
    return _is_in(frame, _TORCHDATA)


def _stands_in(frame: FrameType | None, modules: tuple[str, ...]) -> bool:
    """Tell whether a frame, or one that it was called from, belongs to some modules."""
    while frame is not None:
        if _is_in(frame, modules):
            return True
        frame = frame.f_back
    return False


def _is_in(frame: FrameType, modules: tuple[str, ...]) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(modules)
