"""The laws of streams, checked of any one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.stream import model
from tests.stream.common import check_same, delivered, following, resumed, run_of, through_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import seekable as sk

MOST = 150
"""Items that are compared."""


def check(stream: sk.Stream, number: Callable[[int, int], int]) -> None:
    """Compare a stream with its model, and cut it where the numbers that are drawn say."""
    pairs, ended = model.slots(stream)
    wanted, ended = pairs[:MOST], ended and len(pairs) <= MOST
    # Where the model knows of no end, it does not know what comes either.
    check_same(delivered(stream, len(wanted) + 1 if ended else len(wanted)), wanted)
    check_resume(stream, len(wanted), number)
    check_tokens(stream, wanted)


def check_resume(stream: sk.Stream, count: int, number: Callable[[int, int], int]) -> None:
    """Cut at random, twice, through JSON: items, tokens and states are those of a run without a cut."""
    pairs, states = run_of(stream, count)
    assert len(pairs) == count
    first = number(0, count)
    second = number(first, count)
    iterator = resumed(stream, states[first])
    check_same(following(iterator, second - first), pairs[first:second])
    assert iterator.state_dict() == states[second]
    check_same(following(resumed(stream, states[second]), count - second), pairs[second:])
    for state in states:
        assert through_json(state) == state
    assert len(json.dumps(states[-1])) < 100_000


def check_tokens(stream: sk.Stream, pairs: model.Pairs) -> None:
    """Every token rebuilds its item, alone."""
    for token, item in pairs[:40]:
        check_same([(token, stream[through_json(token)])], [(token, item)])
        assert stream.locate(token)
