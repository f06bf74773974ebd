"""Whether a state belongs to a pipeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seekable.errors import StateMismatch
from seekable.state.canonical import canonical_json
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
    # The saved description has been JSON: compare like with like.
    now = json.loads(canonical_json(dataset.describe(state.position)))
    changes = difference(saved, now) if saved else ""
    message = (
        f"the state is of another pipeline: its fingerprint is {state.fingerprint}, this one's is {present}\n"
        f"{changes or 'with sk.save_state and sk.load_state this message says what changed'}"
    )
    raise StateMismatch(message)
