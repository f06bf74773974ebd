"""A step of a stream, made again with the batches before it: the content of records decides what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable.loader.checkpoint_files import generations_in, read_generation
from seekable.loader.loader import Loader
from seekable.viewer.facts.documents import json_value

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from seekable.state.document import State
    from seekable.stream.stream import Stream

MOST_RECORDS = 500
"""The records of a step in its document."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The progress of a replay, and at the end the records of the step."""

    step: int
    began: int
    """The step of the saved state from which batches were made again; 0 for the start of the run."""
    world_size: int
    done: int
    of: int
    """The number of batches to make."""
    records: tuple[Any, ...] | None
    """The records of the step in their order over all ranks; None before it is made."""

    @property
    def made_of(self) -> str:
        """The state from which the records were replayed."""
        return f"exact, replayed from step {self.began:,}"

    def document(self) -> dict[str, Any]:
        """Return the fact, JSON-safe: of the first 500 records with their ranks."""
        shown = None
        if self.records is not None:
            shown = [
                {"rank": at % self.world_size, "record": json_value(record)}
                for at, record in enumerate(self.records[:MOST_RECORDS])
            ]
        return {
            "step": self.step,
            "began": self.began,
            "world_size": self.world_size,
            "done": self.done,
            "of": self.of,
            "unit": "batches",
            "count": None if self.records is None else len(self.records),
            "records": shown,
            "made_of": self.made_of,
        }


def replay(
    stream: Stream, *, batch: int, world_size: int, step: int, began: int = 0, state: State | None = None
) -> Generator[Replay]:
    """Yield how far the replay of a step is, after each batch; the last one has the records.

    The functions of the stream run. Records are those before ``collate``, without holes. Where a run ends,
    the next one begins, as a trainer loops over epochs.

    Args:
        stream: the stream of the run.
        batch: the records of a batch over all ranks.
        world_size: the number of ranks of the run.
        step: the step, from 0.
        began: the step of ``state``.
        state: a state of the run at or before ``step``; None for the start of the run.

    Raises:
        InvalidArgument: a number is out of range, or ``step`` is before ``began``.
        StateMismatch: the state is of another pipeline.

    Example:
        >>> import seekable as sk
        >>> odd = sk.from_sequence(range(100)).stream(epochs=1).filter(lambda n: n % 2 == 1)
        >>> *_, last = replay(odd, batch=4, world_size=2, step=3)
        >>> last.records, last.done
        ((25, 27, 29, 31), 4)
    """
    checked_count("began", began, least=0)
    checked_count("step", step, least=began)
    loader = Loader(stream, global_batch_size=batch, rank=0, world_size=1, collate=tuple, prefetch=0)
    if state is not None:
        loader.load_state_dict(state.document())
    of = step - began + 1
    with loader:
        batches = _batches(loader)
        for done in range(of - 1):
            next(batches, None)
            yield Replay(step, began, world_size, done + 1, of, None)
        yield Replay(step, began, world_size, of, of, next(batches, ()))


def _batches(loader: Loader) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of all runs; the end is a run without any."""
    began = -1
    while loader.step > began:
        began = loader.step
        yield from loader


def nearest_state(folders: Iterable[str], fingerprint: str, step: int) -> tuple[int, State | None]:
    """Return the newest saved state of a pipeline at or before a step, and its step; 0 and None without one.

    Args:
        folders: the folders of states to look in.
        fingerprint: that of the pipeline.
        step: the step.
    """
    best: tuple[int, State | None] = (0, None)
    for folder in folders:
        for generation in reversed(generations_in(folder)):
            if not generation.complete or not best[0] < generation.step <= step:
                continue
            state = read_generation(folder, generation)
            if state.fingerprint == fingerprint:
                best = (generation.step, state)
                break
    return best
