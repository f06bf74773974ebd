"""From the state of an older pipeline to a dataset that goes on with the rows that are left of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.order.positions import Left
from seekable.resume.by_rows import gone_by, resumed
from seekable.resume.description import outlined
from seekable.resume.log import tell
from seekable.resume.saved_description import check_described, description_of

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.state.document import RunState

__all__ = ["dataset_by_rows"]


def dataset_by_rows(plain: Dataset, state: RunState) -> tuple[Dataset, RunState]:
    """Return the dataset that goes on by rows from a state of another one, and the state of it there.

    Raises:
        StateMismatch: nothing says what the state is of, or the present sources do not have its rows.
        InvalidArgument: how much each source gave cannot be told.
    """
    old = outlined(description_of(state))
    check_described(old.fingerprint_at(state.position), state)
    gone = gone_by(old, Left((), state.position), epoch=state.epoch)
    went = resumed(plain, gone)
    tell(went)
    return went.dataset, replace(
        state,
        fingerprint=went.dataset.fingerprint_at(went.position),
        position=went.position,
        epoch=went.epoch,
        pipeline=None,
    )
