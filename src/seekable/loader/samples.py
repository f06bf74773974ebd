"""States made of a count of samples, which is all that some older checkpoints hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable.errors import OutOfRange
from seekable.loader.steps import Cursor
from seekable.state.stream import StreamState
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from seekable.loader.resumable import Resumable
    from seekable.loader.steps import Steps

__all__ = ["state_from_sample_index"]


def state_from_sample_index(index: int, loader: Resumable[Any]) -> dict[str, Any]:
    """Return the state of a loader after some samples: for checkpoints that hold nothing but their number.

    Of a dataset it is arithmetic. A stream is run through from its start, in this process, because only that
    tells what its stages then remember: it takes as long as delivering the samples took.

    Args:
        index: how many samples were delivered, over all ranks and runs: records of a dataset, items of a
            stream.
        loader: of the pipeline that delivered them.

    Returns:
        What ``state_dict`` would have returned: for ``load_state_dict`` of this loader, and with
        ``resume="rows"`` for one of another pipeline.

    Raises:
        OutOfRange: the stream ends before.

    Example:
        >>> import seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(10)), batch_size=2, collate=list)
        >>> loader.load_state_dict(sk.state_from_sample_index(6, loader))
        >>> list(loader)
        [[6, 7], [8, 9]]
    """
    index = checked_count("index", index, least=0)
    course = loader._course  # noqa: SLF001 - what a loader is made of, in its own room
    if not isinstance(loader.dataset, Stream):
        document: dict[str, Any] = course.document(cursor_after(course.steps, index))
        return document
    run = iter(loader.dataset)
    for count in range(index):
        try:
            next(run)
        except StopIteration:
            message = f"the stream has {count:,} items in a run, and the sample index is {index:,}"
            raise OutOfRange(message) from None
    state = StreamState.parse(run.state_dict())
    began = None if course.steps.limit is None else 0
    return replace(state, step=index // course.steps.batch, began=began).document()


def cursor_after(steps: Steps, count: int) -> Cursor:
    """Return where a loader is after so many records of all ranks."""
    if not steps.total:
        return Cursor(count // steps.batch, 0, count)
    runs, rest = divmod(count, steps.total)
    if count and not rest:
        # After the last record of a run, and before its end was seen.
        runs, rest = runs - 1, steps.total
    began = runs * (steps.count or 0)
    return Cursor(began + -(-rest // steps.batch), runs * (steps.epochs or 0), count, began)
