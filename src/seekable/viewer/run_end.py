"""The end of a run: what pages say of steps that come after it, or after the newest saved state."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from seekable.loader.loader import Loader
    from seekable.viewer.opened import OpenPipeline


def after_end(pipeline: OpenPipeline, step: int) -> str | None:
    """Return why the records of a step were not trained on as far as is known; None where nothing says so.

    Example:
        >>> import seekable as sk
        >>> from seekable.viewer.opened import OpenPipeline
        >>> run = OpenPipeline(sk.Loader(sk.from_sequence("abcdef"), batch_size=4, prefetch=0))
        >>> after_end(run, 1) is None, after_end(run, 2)
        (True, 'The run ends after step 1: step 2 comes only if the loader is iterated again')
    """
    loader = pipeline.loader
    left = loader.steps_left if pipeline.has_batch else None
    end = None if left is None else loader.step + left
    if end is not None and step >= end:
        ends = f"The run ends after step {end - 1:,}" if end else "The run has no step"
        return f"{ends}: step {step:,} comes only if the loader is iterated again"
    if pipeline.saved is not None and step >= pipeline.saved:
        newest = f"The newest state is of step {pipeline.saved:,}"
        return f"{newest}: no state says that step {step:,} was trained on"
    return None


def position_after_end(pipeline: OpenPipeline, position: int) -> str | None:
    """Return why the record at a position was not trained on as far as is known; None as of ``after_end``."""
    loader = pipeline.loader
    if not pipeline.has_batch or position < loader.position_of(loader.first_step):
        return None
    step = step_of(loader, position)
    if step is None:
        return f"Position {position:,} is in no step of a run"
    return after_end(pipeline, step)


def step_of(loader: Loader, position: int) -> int | None:
    """Return the step that a position is in; None where it is not known, or never comes."""
    low = loader.first_step
    if position < loader.position_of(low):
        return None
    high = max(low, position // loader.global_batch_size) + 1
    with suppress(InvalidArgument):
        # Runs may end with short batches, so that a position comes later than full batches say.
        while loader.position_of(high) <= position:
            high *= 2
        step = bisect_right(range(high), position, lo=low, key=loader.position_of) - 1
        # A run that is cut by steps= leaves out the rest of its epoch.
        return step if position < loader.position_of(step) + loader.global_batch_size else None
    return None
