"""Pipelines whose states were taken in this process: what a state is of, where it does not say so itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from seekable.dataset.base import Dataset
from seekable.errors import CorruptState, StateMismatch
from seekable.resume.described.kept import kept_paths, with_paths
from seekable.state.canonical import plain_json
from seekable.stream.base import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.state.stream import State
    from seekable.stream.contract import Stage

__all__ = ["check_described", "datasets_of", "described_for_rows", "description_of", "known", "remember"]

_HELD = 8
"""The last pipelines, which are kept although nobody else has them any more: descriptions, no data."""

_alive: WeakValueDictionary[str, Dataset | Stream] = WeakValueDictionary()
_last: OrderedDict[str, Dataset | Stream] = OrderedDict()


def remember(fingerprint: str, pipeline: Dataset | Stream) -> None:
    """Remember which pipeline a fingerprint is of."""
    _alive[fingerprint] = pipeline
    _last[fingerprint] = pipeline
    _last.move_to_end(fingerprint)
    while len(_last) > _HELD:
        _last.popitem(last=False)


def known(fingerprint: str) -> Dataset | Stream | None:
    """Return the pipeline of a fingerprint, if its state was taken here and it is still there.

    Example:
        >>> known("xxh3:0") is None
        True
    """
    return _alive.get(fingerprint)


def description_of(state: State) -> dict[str, Any]:
    """Return what a state is of: as it says itself, or as this process knows.

    Raises:
        StateMismatch: neither says.
    """
    if state.description is not None:
        return state.description
    pipeline = known(state.fingerprint)
    if pipeline is None:
        message = (
            f"resume='rows' needs to know what the state was taken of ({state.fingerprint}), and the state "
            f"alone does not say it: use sk.load_state(folder, loader, resume='rows') with a folder that "
            f"sk.save_state wrote into, or take states with loader.state_dict(rows=True)"
        )
        raise StateMismatch(message)
    return described_for_rows(pipeline)


def described_for_rows(pipeline: Dataset | Stream) -> dict[str, Any]:
    """Return all that others need to go on by rows from a pipeline, as JSON has it."""
    whole = pipeline.describe(None) if isinstance(pipeline, Dataset) else pipeline.describe()
    paths: dict[str, str] = {}
    for dataset in datasets_of(pipeline):
        paths |= kept_paths(dataset)
    return with_paths(plain_json(whole), paths)


def datasets_of(pipeline: Dataset | Stage) -> Iterator[Dataset]:
    """Yield the datasets in the order in which they stand in the description."""
    if isinstance(pipeline, Dataset):
        yield pipeline
    elif isinstance(pipeline, Stream):
        for source in pipeline.inputs:
            yield from datasets_of(source)
        yield from pipeline.datasets


def check_described(fingerprint: str, state: State) -> None:
    """Refuse the description of another pipeline than the state's.

    Raises:
        CorruptState: it is that.
    """
    if fingerprint != state.fingerprint:
        message = (
            f"the description that comes with the state is of {fingerprint}, and the state of "
            f"{state.fingerprint}: one of them is of another run"
        )
        raise CorruptState(message)
