"""A loader in words: its batches, whether a run ends, and its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.loader.producers import WorkerOptions
    from seekable.loader.steps import StepCursor, Steps

__all__ = ["explained", "run_in_words", "sizes_in_words"]

_LAST = {
    "short": "the last batch has {rest:,}",
    "drop": "{rest:,} more records would be an incomplete batch, which is left out",
    "pad": "the last batch has {rest:,}, and is filled from the start of the run",
}


def run_in_words(steps: Steps, cursor: StepCursor, *, endless: bool) -> str:
    """Return in a few words whether a run ends, and after how many batches.

    Args:
        steps: how the data is cut into runs and batches.
        cursor: the place of the present run.
        endless: the dataset or the stream has no end.

    Example:
        >>> from seekable.loader.steps import StepCursor, Steps
        >>> steps = Steps(size=10, epochs=1, batch=4, end="short", limit=None, rank=0, world_size=1)
        >>> run_in_words(steps, StepCursor(), endless=False)
        '3 in a run'
    """
    count = steps.count(cursor)
    if count is not None:
        bound = "" if endless or steps.total is not None else "at most "
        return f"{bound}{count:,} in a run"
    return "a run without end" if endless else "a run to the end of the stream"


def sizes_in_words(steps: Steps) -> str:
    """Return the records of a batch over all ranks, and from which steps on there are others.

    Example:
        >>> from seekable.loader.ramp import Ramp
        >>> from seekable.loader.steps import Steps
        >>> ramp = Ramp((0, 1000), (256, 512))
        >>> sizes_in_words(Steps(None, None, batch=ramp, end="short", limit=None, rank=0, world_size=1))
        '256, from step 1,000 on 512'
    """
    if isinstance(steps.batch, int):
        return str(steps.batch)
    (_, first), *others = steps.batch.pairs
    return ", ".join([str(first), *(f"from step {step:,} on {size}" for step, size in others)])


def explained(
    steps: Steps, cursor: StepCursor, options: WorkerOptions, *, endless: bool, single: bool
) -> list[str]:
    """Return a line each for the batches, the run and the workers.

    Args:
        steps: how the data is cut into runs and batches.
        cursor: the place of the present run.
        options: the workers.
        endless: the dataset or the stream has no end.
        single: records are delivered as they are.
    """
    return [
        f"batches: {_batches(steps, single=single)}",
        f"a run: {_run(steps, cursor, endless=endless)}",
        f"workers: {_workers(options)}",
    ]


def _batches(steps: Steps, *, single: bool) -> str:
    ranks = f"on {steps.world_size:,} ranks, of which this is {steps.rank}"
    if single:
        return "none, single records" if steps.world_size == 1 else f"none, single records {ranks}"
    if not isinstance(steps.batch, int):
        text = f"of {sizes_in_words(steps)} records"
        return text if steps.world_size == 1 else f"{text} {ranks}"
    text = f"of {_counted(steps.batch, 'record')}"
    return text if steps.world_size == 1 else f"{text}, {steps.batch // steps.world_size:,} each {ranks}"


def _run(steps: Steps, cursor: StepCursor, *, endless: bool) -> str:
    if endless:
        if steps.limit is None:
            return "without end, because the data has none; steps= bounds it"
        return (
            f"{_counted(steps.limit, 'batch')} (steps=) of data without end; the next run goes on after them"
        )
    if steps.total is None or steps.epochs is None or steps.size is None:
        bound = "" if steps.limit is None else f", or {_counted(steps.limit, 'batch')} (steps=)"
        return f"to the end of the stream{bound}"
    epochs = f"{_counted(steps.epochs, 'epoch')} of {_counted(steps.size, 'record')}"
    count = steps.count(cursor) or 0
    if steps.limit is not None and count == steps.limit:
        return f"{_counted(count, 'batch')} (steps=) of {epochs}"
    rest = steps.total - steps.records(cursor.began, steps.whole_batches(cursor.began, steps.total))
    last = f"; {_LAST[steps.end].format(rest=rest)}" if rest else ""
    return f"{_counted(count, 'batch')}, {epochs}{last}"


def _workers(options: WorkerOptions) -> str:
    workers = options.workers
    if not workers.count:
        if not options.prefetch:
            return "none, and each batch is made when it is asked for"
        return (
            f"none; a thread makes up to {_counted(options.prefetch, 'batch')} ahead while the caller is busy"
        )
    is_thread = workers.type == "thread"
    ahead = _counted(max(1, options.prefetch), "batch")
    texts = [f"{_counted(workers.count, 'thread' if is_thread else 'process')}, each up to {ahead} ahead"]
    if not is_thread and workers.timeout is not None:
        texts.append(f"a batch may take {workers.timeout:g} seconds")
    if not is_thread and workers.restart != 0:
        many = "all" if workers.restart is None else f"the first {workers.restart:,}"
        texts.append(f"{many} that die are replaced")
    return "; ".join(texts)


def _counted(count: int, noun: str) -> str:
    """Return a number and its noun.

    Example:
        >>> _counted(1, "batch"), _counted(2000, "batch"), _counted(2, "epoch")
        ('1 batch', '2,000 batches', '2 epochs')
    """
    many = f"{noun}es" if noun.endswith(("tch", "ss")) else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"
