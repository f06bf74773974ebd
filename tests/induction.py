"""Exact resume, proven by induction over the cuts.

Restored from the state at a cut, a loader must have that state, deliver the next batch of the
uninterrupted run, and then have the state of the next cut. So what holds at each cut holds from there to the
end, if a state says all that there is to say. Whether it does is tested at chosen cuts, by a whole suffix
with a second resume half way: before the first batch, in the middle, at the first run's end, after the last
batch; in ``make nightly`` at each run's end.
"""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle
from tests.cli import warm
from tests.thrift import ALL

from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import seekable as sk

RUNS = 3


@dataclass(frozen=True)
class Uninterrupted:
    """The batches of some runs without a cut, and the states around them."""

    batches: list[Any]
    states: list[dict[str, Any]]
    """The state before the first batch, and after each."""

    ends: list[int]
    """How many batches had come at the end of each run."""


def uninterrupted(make: Callable[[], sk.Loader]) -> Uninterrupted:
    """Return the batches of three runs."""
    loader = make()
    batches: list[Any] = []
    states = [_through_json(loader.state_dict())]
    ends = []
    for _ in range(RUNS):
        for batch in loader:
            batches.append(batch)
            states.append(_through_json(loader.state_dict()))
        ends.append(len(batches))
    loader.close()
    return Uninterrupted(batches, states, ends)


def check_every_cut(make: Callable[[], sk.Loader]) -> None:
    """Check that a loader resumes exactly at each cut of three runs."""
    check_cuts(make, uninterrupted(make))


def check_cuts(make: Callable[[], sk.Loader], run: Uninterrupted) -> None:
    """Check that loaders resume exactly at each cut of a run that was recorded here or in another process."""
    last = len(run.batches)
    whole = {0, last // 2, last, *(run.ends if ALL else run.ends[:1])}
    for cut in range(last + 1):
        if cut in whole:
            middle = (cut + last) // 2
            state = _check_from(make, run, cut, middle, run.states[cut])
            _check_from(make, run, middle, last, state)
        else:
            _check_from(make, run, cut, cut + 1, run.states[cut])


def check_in_a_new_process(cases: Iterable[tuple[str, Callable[[], sk.Loader]]]) -> None:
    """Check that loaders resume exactly at each cut in a new process, which is one for all of them.

    Args:
        cases: names for the message, and functions that make a loader; they are pickled by value.
    """
    sent = [(name, make, uninterrupted(make)) for name, make in cases]
    child = warm.run(
        [],
        program=_CHILD,
        # The path comes first, so that what follows finds its modules.
        data=cloudpickle.dumps(sys.path) + cloudpickle.dumps(sent),
        timeout=600,
    )
    assert child.returncode == 0, f"in a new process: {child.stderr.decode(errors='replace')}"


_CHILD = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from tests.induction import check_cuts
for name, make, run in pickle.load(sys.stdin.buffer):
    try:
        check_cuts(make, run)
    except AssertionError as error:
        raise AssertionError(name) from error
"""


def _check_from(
    make: Callable[[], sk.Loader], run: Uninterrupted, start: int, end: int, state: dict[str, Any]
) -> dict[str, Any]:
    """Check what comes between two cuts, from a state at the first; return the state at the second."""
    loader = make()
    loader.load_state_dict(state)
    assert loader.state_dict() == run.states[start], f"cut at {start}: the state changed by being restored"
    found = _following(loader, end - start)
    assert len(found) == end - start, f"cut at {start}: {len(found)} batches follow, not {end - start}"
    for number, (one, other) in enumerate(zip(found, run.batches[start:end], strict=True), start):
        assert alike(one, other), f"cut at {start}: batch {number} is {one!r}, without a cut {other!r}"
    reached = _through_json(loader.state_dict())
    loader.close()
    assert reached == run.states[end], f"cut at {start}: the state at {end} is another one than without a cut"
    return reached


def alike(one: Any, other: Any) -> bool:
    """Return `same` of two values, faster for what is alike: with one pickle they are."""
    return pickle.dumps(one, 5) == pickle.dumps(other, 5) or same(one, other)


def _following(loader: sk.Loader, count: int) -> list[Any]:
    """Return the next batches, over the ends of runs."""
    batches: list[Any] = []
    # A run may be over where it is cut, and one more may be empty.
    for _ in range(RUNS + 1):
        if len(batches) == count:
            break
        for batch in loader:
            batches.append(batch)
            if len(batches) == count:
                break
    return batches


def _through_json(state: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(state))
    return copied
