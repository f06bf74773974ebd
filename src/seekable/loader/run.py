"""One run over a loader: the iterator that ``iter(loader)`` returns."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from seekable.errors import ForkUnsafe, StoppedIterator
from seekable.loader.prefetch import Prefetched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.course import Course
    from seekable.loader.produce import Made
    from seekable.loader.steps import Cursor

__all__ = ["Run"]


class Run:
    """Delivers batches to the end of the run; it holds those made ahead, the course where it is."""

    def __init__(self, course: Course) -> None:
        """Begin at the course's cursor."""
        self._course = course
        self._process = os.getpid()
        self._source: Iterator[Made] = iter(())
        self._over: Exception | None = None
        self.restart()

    def restart(self) -> None:
        """Drop what was made ahead and begin at the course's cursor; what is at its end stays there."""
        if isinstance(self._over, StopIteration):
            return
        self._open_source()
        self._over = None

    def stop(self, why: str) -> None:
        """End what runs ahead; the iterator says why when it is touched, unless it is at its end."""
        self._close_source()
        self._over = self._over or StoppedIterator(why)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            message = "this iterator was made before a fork: call iter(loader) in the child"
            raise ForkUnsafe(message)
        if isinstance(self._over, StopIteration):
            raise StopIteration
        if self._over is not None:
            raise self._over
        began = time.perf_counter()
        try:
            made = next(self._source)
        except StopIteration:
            # Not the one that was raised: it holds the frames that it came through, and what lives in them.
            self._over = StopIteration()
            self._at_end()
            raise
        except Exception as error:
            # A generator that has raised would only say that it is at its end.
            self._over = error
            raise
        except BaseException:
            # An interrupt ends a generator too, and not the run: the same batch comes next.
            if not isinstance(self._source, Prefetched):
                self._open_source()
            raise
        self._take(made, waited_seconds=time.perf_counter() - began)
        return made.batch

    @property
    def cursor(self) -> Cursor:
        """Where the next batch begins."""
        return self._course.cursor

    def _take(self, made: Made, *, waited_seconds: float) -> None:
        """Count a batch that is handed out."""
        self._course.deliver(made, waited_seconds=waited_seconds)

    def _at_end(self) -> None:
        """Count the end as seen."""
        self._course.end()

    def _open_source(self) -> None:
        self._close_source()
        self._source = self._course.maker.batches(self.cursor)

    def _close_source(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None:
            close()
