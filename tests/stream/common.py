"""What the tests of streams share."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from tests.induction import alike

from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Iterable

    import seekable as sk

Pairs = list[tuple[Any, Any]]


def delivered(stream: sk.Stream, most: int | None = None) -> Pairs:
    """Return items, each after its token."""
    return following(iter(stream), most)


def following(iterator: Any, most: int | None = None) -> Pairs:
    """Return the next items of an iterator, each after its token."""
    return [(iterator.token, item) for item in itertools.islice(iterator, most)]


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def resumed(stream: sk.Stream, state: dict[str, Any]) -> Any:
    """Return an iterator that stands where a state was taken."""
    iterator = iter(stream)
    iterator.load_state_dict(through_json(state))
    assert iterator.state_dict() == state, "a state changed by being restored"
    return iterator


def run_of(stream: sk.Stream, most: int | None = None) -> tuple[Pairs, list[dict[str, Any]]]:
    """Return the items of a run, and the states before the first of them and after each."""
    iterator = iter(stream)
    pairs: Pairs = []
    states = [iterator.state_dict()]
    while pair := following(iterator, 1) if most is None or len(pairs) < most else []:
        pairs += pair
        states.append(iterator.state_dict())
    end = iterator.state_dict()
    assert (end["step"], end["slot"]) == (states[-1]["step"], states[-1]["slot"]), "the end was counted"
    check_same(following(resumed(stream, end), 1) if most is None else [], [])
    return pairs, states


def check_cuts(stream: sk.Stream, *, cuts: Iterable[int] | None = None, most: int | None = None) -> None:
    """Cut at each item, or where it is said, and resume, by induction as in tests/induction.py.

    At each cut the next item, its token and the state after it are those of one run. At the first cut, the
    middle and the last one the whole rest is, with a second resume half way; and at each cut that is named.
    """
    pairs, states = run_of(stream, most)
    if cuts is None:
        check_every_cut(stream, pairs, states, ends=most is None)
        return
    for at in cuts:
        middle = (at + len(pairs) + 1) // 2
        iterator = _checked_up_to(middle, stream, at, pairs, states)
        _check_rest(iterator, pairs[middle:], ends=most is None)


def check_every_cut(
    stream: sk.Stream, pairs: Pairs, states: list[dict[str, Any]], *, ends: bool = True
) -> None:
    """Check that a stream resumes exactly at each cut of a run, recorded here or in another process."""
    whole = {0, len(pairs) // 2, len(pairs)}
    for at in range(len(states)):
        middle = (at + len(pairs) + 1) // 2 if at in whole else min(at + 1, len(pairs))
        iterator = _checked_up_to(middle, stream, at, pairs, states)
        if at in whole:
            check_same(following(resumed(stream, states[middle]), len(pairs) - middle), pairs[middle:])
            _check_rest(iterator, pairs[middle:], ends=ends)


def _checked_up_to(
    middle: int, stream: sk.Stream, at: int, pairs: Pairs, states: list[dict[str, Any]]
) -> Any:
    """Resume at a cut, check the items and the state up to another one, and return the iterator there."""
    iterator = resumed(stream, states[at])
    check_same(following(iterator, middle - at), pairs[at:middle])
    assert iterator.state_dict() == states[middle], f"cut at {at}: another state at {middle} than in one run"
    return iterator


def _check_rest(iterator: Any, pairs: Pairs, *, ends: bool) -> None:
    check_same(following(iterator, len(pairs)), pairs)
    check_same(following(iterator, 1) if ends else [], [])


def check_same(found: Pairs, wanted: Pairs) -> None:
    """Compare items and tokens, with the first difference in the message."""
    if alike(found, wanted):
        return
    for i, (one, other) in enumerate(zip(found, wanted, strict=False)):
        assert same(one, other), f"item {i} is {one!r}, and should be {other!r}"
    assert len(found) == len(wanted), f"{len(found)} items, and there should be {len(wanted)}"
