"""States made of a number of samples: some older checkpoints hold nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable.errors import OutOfRange
from seekable.loader.steps import Cursor
from seekable.state.stream_document import StreamState
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from seekable.loader.loader import Loader
    from seekable.loader.steps import Steps

__all__ = ["state_from_sample_index"]


def state_from_sample_index(index: int, loader: Loader) -> dict[str, Any]:
    """Return the state of a loader after some samples: for checkpoints that hold nothing but their number.

    Of a dataset it is arithmetic. A stream is run from its start, in this process, because nothing else gives
    the states of its stages: that takes as long as delivering the samples took.

    Args:
        index: the number of samples delivered, over all ranks and runs: records of a dataset, items of a
            stream.
        loader: a loader of the pipeline that delivered them.

    Returns:
        What ``state_dict`` would have returned: for ``load_state_dict`` of this loader, and with
        ``resume="rows"`` for one of another pipeline.

    Raises:
        OutOfRange: the stream has fewer items in a run.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=2, collate=list)
        >>> loader.load_state_dict(sk.state_from_sample_index(6, loader))
        >>> list(loader)
        [[6, 7], [8, 9]]
    """
    index = checked_count("index", index, least=0)
    progress = loader._progress  # noqa: SLF001 - of the same room
    if not isinstance(loader.dataset, Stream):
        return progress.document(cursor_after(progress.steps, index))
    run = iter(loader.dataset)
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
