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
        self.stop()
        self._source = self._course.batches()
        self._over = None

    def stop(self) -> None:
        """End what runs ahead; the iterator raises when it is touched, unless it is at its end."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()
        self._over = self._over or StoppedIterator(
            "this iterator was ended by a later iter(loader), by set_epoch() or by close()"
        )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            message = "this iterator was made before a fork: call iter(loader) in the child"
            raise ForkUnsafe(message)
        if self._over is not None:
            raise self._over
        began = time.perf_counter()
        try:
            made = next(self._source)
        except StopIteration as end:
            self._over = end
            self._course.end()
            raise
        except Exception as error:
            # A generator that has raised would only say that it is at its end.
            self._over = error
            raise
        except BaseException:
            # An interrupt ends a generator too, and not the run: the same batch comes next.
            if not isinstance(self._source, Prefetched):
                self.restart()
            raise
        self._course.deliver(made, waited_seconds=time.perf_counter() - began)
        return made.batch
