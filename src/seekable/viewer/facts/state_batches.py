"""The number of records in a batch and the number of ranks, by a folder of saved states.

A state has the steps and the records that were delivered, so two of them in one run tell how many records a
batch has. The files of a state have the number of ranks in their names.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.loader.checkpoint_files import generations_in, read_generation, resumable
from seekable.state.document import RunState
from seekable.storage.paths import output_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader.checkpoint_files import Generation

__all__ = ["StateBatches", "generation_at", "state_batches"]

_MOST_READ = 16
"""The states that are read at most: those nearest to the step that is asked for."""


@dataclass(frozen=True, slots=True)
class StateBatches:
    """The batch size, ranks and epochs of a run, as found in a folder of states."""

    batch: int | None
    """The records of a batch over all ranks; None if the states do not tell."""

    world_size: int | None
    """The number of ranks; None without a state."""


def generation_at(found: Sequence[Generation], step: int | None) -> Generation | None:
    """Return the newest state at or before a step, else the oldest; None if there is none.

    Only complete ones count, unless none is complete (`resumable`).

    Args:
        found: the states of a folder, the oldest first.
        step: the step; None for the newest state.
    """
    usable = resumable(found)
    before = [generation for generation in usable if step is None or generation.step <= step]
    return before[-1] if before else next(iter(usable), None)


def state_batches(folder: str, *, size: int | None, step: int | None = None) -> StateBatches:
    """Return the records of a batch and the ranks at a step, by the states of a folder.

    Args:
        folder: the folder that ``sk.save_state`` wrote into.
        size: the number of records of an epoch; None without end.
        step: the step; None for that of the newest state.

    Raises:
        CorruptState: a state cannot be read.
    """
    folder = output_path(folder)
    usable = resumable(generations_in(folder))
    chosen = generation_at(usable, step)
    if chosen is None:
        return StateBatches(None, None)
    at = usable.index(chosen)
    near = usable[max(0, at - 1) : at + _MOST_READ]
    found = [read_generation(folder, generation) for generation in near]
    states = [state for state in found if isinstance(state, RunState)]
    return StateBatches(batch_of(states, size=size, at=chosen.step), chosen.ranks)


def batch_of(states: Sequence[RunState], *, size: int | None, at: int) -> int | None:
    """Return the records of a batch that the states of a run tell; None if they do not.

    Args:
        states: the states, the oldest first.
        size: the number of records of an epoch; None without end.
        at: the step of the state from which the batches are counted: those after it count first.

    Example:
        >>> states = [RunState("xxh3:0", step=4, epoch=0, position=128)]
        >>> batch_of(states, size=1000, at=4), batch_of(states, size=128, at=4)
        (32, None)
    """
    start = RunState("", step=0, epoch=0, position=0)
    pairs = list(itertools.pairwise([start, *states]))
    later = [pair for pair in pairs if pair[0].step >= at]
    for old, new in [*later, *reversed([pair for pair in pairs if pair not in later])]:
        records, steps = new.position - old.position, new.step - old.step
        may_be_short = size is not None and size > 0 and new.position % size == 0
        if steps > 0 and old.epoch == new.epoch and not may_be_short and records % steps == 0:
            return records // steps or None
    return None
