"""States made of a number of samples: some older checkpoints hold nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable._arguments import POSITIONS, checked_count
from seekable.errors import InvalidArgument, OutOfRange
from seekable.loader.steps import Cursor
from seekable.nodes.node import Node
from seekable.state.document import StreamState, has_row_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.run_progress import Progress
    from seekable.loader.steps import Steps

__all__ = ["has_sample_index", "state_after"]


def has_sample_index(document: Mapping[str, Any]) -> bool:
    """Return True for a checkpoint with the number of samples delivered, and nothing else to resume from.

    Example:
        >>> has_sample_index({"sample_index": 6}), has_sample_index({"seekable": 1, "sample_index": 6})
        (True, False)
    """
    if not hasattr(document, "get") or has_row_offsets(document):
        return False
    return "seekable" not in document and document.get("sample_index") is not None


def state_after(progress: Progress, index: int) -> dict[str, Any]:
    """Return the state of a run after some samples, counted over all ranks and runs.

    Raises:
        InvalidArgument: ``index`` is no integer of at least 0 and below 2**63.
        OutOfRange: the stream has fewer items in a run.
    """
    index = checked_count("sample_index", index, least=0)
    if index >= POSITIONS:
        message = f"sample_index must be below 2**63, as positions are (got {index})"
        raise InvalidArgument(message)
    pipeline = progress.state.pipeline
    if isinstance(pipeline, Node):
        return progress.document(cursor_after(progress.steps, index))
    run = iter(pipeline)
    for count in range(index):
        try:
            next(run)
        except StopIteration:
            message = f"the stream has {count:,} items in a run, and the sample index is {index:,}"
            raise OutOfRange(message) from None
    state = StreamState.parse(run.state_dict())
    began = None if progress.steps.limit is None else 0
    return replace(state, step=index // progress.steps.batch, began=began).document()


def cursor_after(steps: Steps, count: int) -> Cursor:
    """Return the cursor of a loader after ``count`` records of all ranks."""
    if not steps.total:
        return Cursor(count // steps.batch, 0, count)
    runs, rest = divmod(count, steps.total)
    if count and not rest:
        # After the last record of a run, and before its end was seen.
        runs, rest = runs - 1, steps.total
    began = runs * (steps.count or 0)
    return Cursor(began + -(-rest // steps.batch), runs * (steps.epochs or 0), count, began)
