"""One run over a loader: the iterator that ``iter(loader)`` returns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from seekable.errors import ForkUnsafe, StoppedIterator
from seekable.loader.prefetch import Prefetched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.produce import Made

__all__ = ["Run"]


class Delivers(Protocol):
    """What a run asks of its loader, which holds the cursor."""

    @property
    def prefetch(self) -> int:
        """How many batches are made ahead."""
        ...

    def source(self) -> Iterator[Made]:
        """Return the batches from the present cursor to the end of its run."""
        ...

    def deliver(self, made: Made) -> None:
        """Count a batch as delivered."""
        ...

    def end_run(self) -> None:
        """Move on to the next run, because the end of this one was seen."""
        ...


class Run:
    """Holds the batches made ahead, while the loader holds the cursor."""

    def __init__(self, loader: Delivers) -> None:
        self._loader = loader
        self._process = os.getpid()
        self._source: Iterator[Made] | None = None
        self._over: Exception | None = None
        self.restart()

    @property
    def waited_seconds(self) -> float:
        """How long batches were waited for."""
        return self._source.waited_seconds if isinstance(self._source, Prefetched) else 0.0

    def restart(self) -> None:
        """Drop what was made ahead and begin at the loader's cursor."""
        self.stop()
        source = self._loader.source()
        self._source = Prefetched(source, depth=self._loader.prefetch) if self._loader.prefetch else source
        self._over = None

    def stop(self) -> None:
        """End the thread; the iterator raises when it is touched."""
        if isinstance(self._source, Prefetched):
            self._source.close()
        self._source = None
        self._over = self._over or StoppedIterator(
            "this iterator was ended, by a later iter(loader), by set_epoch() or by close()"
        )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            message = "this iterator was made before a fork: call iter(loader) in the child"
            raise ForkUnsafe(message)
        if self._over is not None:
            raise self._over
        assert self._source is not None
        try:
            made = next(self._source)
        except StopIteration as end:
            self._over = end
            self._loader.end_run()
            raise
        except Exception as error:
            # A generator that has raised would only say that it is at its end.
            self._over = error
            raise
        self._loader.deliver(made)
        return made.batch
