"""Whether a state belongs to a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import StateMismatch
from seekable.state.difference import difference

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.state.document import RunState

__all__ = ["check_pipeline"]


def check_pipeline(dataset: Dataset, state: RunState, *, saved: dict[str, Any] | None) -> None:
    """Refuse a state of another pipeline, or of other data.

    Args:
        dataset: what is to go on.
        state: where from.
        saved: the description of the pipeline that the state is of, if it was kept.

    Raises:
        StateMismatch: the fingerprints differ; the message says in what, where that can be known.
    """
    present = dataset.fingerprint_at(state.position)
    if state.fingerprint == present:
        return
    changes = difference(saved, dataset.describe(state.position)) if saved else ""
    message = (
        f"the state is of another pipeline: its fingerprint is {state.fingerprint}, this one's is {present}. "
        f"{changes or 'With sk.save_state and sk.load_state the message says what changed.'}"
    )
    raise StateMismatch(message)
