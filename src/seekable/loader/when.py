"""The steps at which positions of a dataset come: the inverse of the division into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._arguments import checked_count, checked_epoch
from seekable.errors import WrongType

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.loader.steps import Cursor, Steps

__all__ = ["Coming", "checked_epochs", "comings"]


@dataclass(frozen=True, slots=True)
class Coming:
    """One place in a run at which a record comes."""

    step: int
    """The number of the batch, from 0."""

    position: int
    """The position on the endless axis of the dataset."""

    epoch: int
    """The epoch of the position; 0 if the dataset is endless."""

    rank: int
    """The rank that the record goes to."""


def comings(steps: Steps, anchor: Cursor, positions: Int64s) -> list[Coming]:
    """Return the places at which some positions come, from a cursor on and over all ranks, in their order.

    A position of a batch that is left out (``end="drop"``, ``steps=``) has none, and one that fills a last
    batch (``end="pad"``) has one more.

    Args:
        steps: the division into runs and batches.
        anchor: the cursor from which steps are counted; nothing before it is returned.
        positions: int64, one dimension, at least 0.

    Example:
        >>> from seekable.loader.steps import Cursor, Steps
        >>> steps = Steps(size=10, epochs=1, batch=4, end="pad", limit=None, rank=0, world_size=2)
        >>> [(at.step, at.rank) for at in comings(steps, Cursor(), np.array([1, 9]))]
        [(0, 1), (2, 1), (2, 1)]
    """
    if steps.total is None or not steps.total:
        positions = positions[positions >= anchor.position] if steps.total is None else positions[:0]
        numbers = anchor.step + (positions - anchor.position) // steps.batch
        return _in_order(steps, numbers, positions, positions)
    size, epochs, total = steps.size or 1, steps.epochs or 1, steps.total
    positions = positions[positions >= steps.start_of(anchor.epoch)]
    runs = (positions // size - anchor.epoch) // epochs
    left, later = steps.left(anchor) or 0, steps.count or 0
    start = (anchor.epoch + runs * epochs) * size
    first_place = np.where(runs == 0, anchor.position, start)
    first_step = anchor.step + np.where(runs == 0, 0, left + (runs - 1) * later)
    batches = np.where(runs == 0, left, later)
    padded = max(0, left * steps.batch + anchor.position - steps.start_of(anchor.epoch) - total)
    padded = max(padded, later * steps.batch - total) if steps.end == "pad" else 0
    # Places behind the end of a run hold its records again, from the first one on.
    places = positions + np.arange(1 - (-padded // total))[:, None] * total
    batch = (places - first_place) // steps.batch
    comes = (places >= first_place) & (batch < batches)
    held = np.broadcast_to(positions, places.shape)
    return _in_order(steps, (first_step + batch)[comes], held[comes], places[comes])


def checked_epochs(epochs: int | range | None, steps: Steps, anchor: Cursor) -> range:
    """Return the epochs to search: by default those of the run of a cursor, or epoch 0 of endless data.

    Raises:
        WrongType: ``epochs`` is neither a number nor a range.
        InvalidArgument: an epoch is below 0, or its positions would be 2**63 or more.
    """
    if epochs is None:
        return range(anchor.epoch, anchor.epoch + (steps.epochs or 1))
    if isinstance(epochs, bool) or not isinstance(epochs, int | range):
        message = f"epochs must be a number of epochs from epoch 0 on, or a range of epochs (got {epochs!r})"
        raise WrongType(message)
    searched = epochs if isinstance(epochs, range) else range(checked_count("epochs", epochs, least=0))
    # The ends alone: a search through a range of 10**12 epochs would take hours.
    ends = (searched[0], searched[-1]) if searched else (0, 0)
    checked_count("epochs", min(ends), least=0)
    checked_epoch(max(ends), steps.size)
    return searched


def _in_order(steps: Steps, numbers: Int64s, positions: Int64s, places: Int64s) -> list[Coming]:
    order = np.argsort(places, kind="stable")
    order = order[np.argsort(numbers[order], kind="stable")]
    epochs = positions // steps.size if steps.size else np.zeros_like(positions)
    ranks = places % steps.world_size
    columns = zip(*(each[order].tolist() for each in (numbers, positions, epochs, ranks)), strict=True)
    return [Coming(*column) for column in columns]
