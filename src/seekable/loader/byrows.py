"""From the state of an older pipeline to the rows that are left of it: ``resume="rows"``."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.dataset.continued import Continued
from seekable.dataset.contract import Leaf
from seekable.dataset.described.rebuild import outlined
from seekable.dataset.rows.parts import lefts, parts_of
from seekable.dataset.rows.resume import gone_by, resumed
from seekable.errors import CorruptState, StateMismatch
from seekable.loader.known import known
from seekable.loader.matching import described
from seekable.order.combs import Left
from seekable.state.canonical import fingerprint_of, plain_json

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.dataset.contract import Node
    from seekable.dataset.rows.resume import Resumed
    from seekable.state.document import RunState
    from seekable.state.stream import State

__all__ = ["dataset_by_rows", "description_of"]

_LOG = logging.getLogger("seekable")


def dataset_by_rows(plain: Dataset, state: RunState) -> tuple[Dataset, RunState]:
    """Return the dataset that goes on by rows from a state of another one, and the state of it there.

    Raises:
        StateMismatch: nothing says what the state is of, or the present sources do not have its rows.
        InvalidArgument: how much each source gave cannot be told.
    """
    old = outlined(description_of(state))
    gone = gone_by(old, Left((), state.position), epoch=state.epoch)
    went = resumed(plain, gone)
    tell(went)
    return went.dataset, replace(
        state,
        fingerprint=went.dataset.fingerprint_at(went.position),
        position=went.position,
        epoch=went.epoch,
        description=None,
    )


def description_of(state: State) -> dict[str, Any]:
    """Return what a state is of: as it says itself, or as this process knows.

    Raises:
        StateMismatch: neither says.
        CorruptState: the state comes with the description of another pipeline.
    """
    if state.description is not None:
        if fingerprint_of(state.description) != state.fingerprint:
            message = (
                f"the description that comes with the state is of {fingerprint_of(state.description)}, and "
                f"the state of {state.fingerprint}: one of them is of another run"
            )
            raise CorruptState(message)
        return state.description
    pipeline = known(state.fingerprint)
    if pipeline is None:
        message = (
            f"resume='rows' needs to know what the state was taken of ({state.fingerprint}), and the state "
            f"alone does not say it: use sk.load_state(folder, loader, resume='rows') with a folder that "
            f"sk.save_state wrote into, or take states with loader.state_dict(rows=True)"
        )
        raise StateMismatch(message)
    found: dict[str, Any] = plain_json(described(pipeline, state))
    return found


def tell(went: Resumed) -> None:
    """Log where each source goes on: what was opened, rows gone of the begun epoch, the file and row next."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    left = lefts(went.dataset, Left((), went.position))
    for part, (dataset, rows), taken in zip(parts_of(went.dataset), left, went.taken, strict=True):
        place = _next_place(dataset, rows)
        _LOG.info(
            "resume: spec=%s sample_row=%d shard=%s offset=%s",
            _spec(part.dataset),
            taken,
            "-" if place is None else place.path,
            "-" if place is None else place.row,
        )


def _next_place(dataset: Dataset, left: Left) -> Any:
    if not dataset.size:
        return None
    place = dataset.plan(np.array([left.first], dtype=np.int64)).locate()[0]
    while isinstance(place, list | tuple):
        place = place[0]
    return place


def _spec(node: Node) -> str:
    """Return what was asked of ``sk.open``, for each source below a node; of others, what stands for them."""
    if isinstance(node, Continued):
        node = node.new
    if isinstance(node, Leaf):
        return str(getattr(node, "asked", None) or node.shown([]))
    return ",".join(dict.fromkeys(map(_spec, node.children)))
