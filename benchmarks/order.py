"""Order alone: nothing is read."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks import floors
from benchmarks.measure import Contestant, Row, Target, absolute, race

import seekable as sk
from seekable.order.exclusion import Exclusion
from seekable.order.permutation import permute, permute_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from numpy.typing import NDArray

_AT_ONCE = 4096
_BLOCKS = 100
_SINGLE = 20_000
_SIZE = 1_000_000_007
_KEY = 0x0123456789ABCDEF
_MANY = 100_000_000
_LOADED, _LOADED_BLOCKS = 16384, 25
_FORMS = {"a list": 100, "a bitmap": 50}
"""The forms in which rows that are left out are kept, and one in how many is."""


def rows(data: Data) -> Iterator[Row]:
    """Measure the permutation, in blocks and one by one, and what randomness adds to a map."""
    positions = _AT_ONCE * _BLOCKS
    contestants = {
        "blocks": Contestant(_permute_blocks, count=positions),
        "numpy": Contestant(lambda: floors.shuffled(positions), count=positions),
        "single": Contestant(_permute_singly, count=_SINGLE),
    }
    times = race(contestants, rounds=data.sizes.rounds)
    against = f"numpy's shuffle of an array in memory {times.median('numpy') * 1e6:.3f}"
    yield absolute(
        f"permutation, blocks of {_AT_ONCE}",
        times.median("blocks") * 1e6,
        "us",
        Target("at most", 0.08),
        against=against,
    )
    yield absolute(
        "permutation, one by one", times.median("single") * 1e6, "us", Target("at most", 4), against=against
    )
    yield _windowed(data)
    yield from _left_out(data)
    yield _randomness(data)


def _windowed(data: Data) -> Row:
    """Measure a shuffle with windows and lanes through its node, whose table of the epoch is there."""
    ds = sk.from_sequence(range(_SIZE)).shuffle(seed=0, window=16, lanes=8)
    whole = sk.from_sequence(range(_SIZE)).shuffle(seed=0)
    positions = _AT_ONCE * _BLOCKS
    contestants = {
        "windowed": Contestant(lambda: _plan_blocks(ds), count=positions),
        "whole": Contestant(lambda: _plan_blocks(whole), count=positions),
    }
    times = race(contestants, rounds=data.sizes.rounds)
    return absolute(
        f"shuffle(window=16, lanes=8), blocks of {_AT_ONCE}",
        times.median("windowed") * 1e6,
        "us",
        Target("at most", 0.3),
        against=f"shuffle of everything {times.median('whole') * 1e6:.3f}",
    )


def _left_out(data: Data) -> Iterator[Row]:
    """Measure what leaving rows out adds to a shuffle, in the blocks that a loader resolves at once."""
    rng = np.random.default_rng(0)
    positions = _LOADED * _LOADED_BLOCKS
    shuffled = [
        permute(np.arange(start, start + _LOADED), _MANY, _KEY) for start in range(0, positions, _LOADED)
    ]
    out = {form: Exclusion(np.flatnonzero(rng.random(_MANY) < 1 / of), _MANY) for form, of in _FORMS.items()}
    contestants = {
        form: Contestant(partial(_leave_out, each, shuffled), count=positions) for form, each in out.items()
    }
    contestants["shuffle"] = Contestant(
        lambda: [permute(block, _MANY, _KEY) for block in shuffled], count=positions
    )
    times = race(contestants, rounds=data.sizes.rounds)
    for form, of in _FORMS.items():
        yield absolute(
            f"without(1 row in {of} of 10^8, {form}) adds, blocks of {_LOADED}",
            times.median(form) * 1e6,
            "us",
            Target("at most", 0.06),
            against=f"the shuffle itself {times.median('shuffle') * 1e6:.3f}",
        )


def _leave_out(out: Exclusion, blocks: list[NDArray[np.int64]]) -> None:
    for block in blocks:
        out.forward(block)


def _randomness(data: Data) -> Row:
    source = sk.from_sequence(range(_AT_ONCE * 4))
    plain, random = source.map(same), source.map(same_randomly, rng=True, seed=0)
    positions = np.arange(len(source))
    contestants = {
        "plain": Contestant(lambda: plain._node.fetch(positions), count=len(source)),
        "random": Contestant(lambda: random._node.fetch(positions), count=len(source)),
    }
    times = race(contestants, rounds=data.sizes.rounds)
    added = times.median("random") - times.median("plain")
    against = f"map without rng {times.median('plain') * 1e6:.2f}"
    return absolute("map(rng=True) adds", added * 1e6, "us", Target("at most", 2), against=against)


def same(record: int) -> int:
    """Return the record."""
    return record


def same_randomly(record: int, rng: Any) -> int:  # noqa: ARG001 - what is measured is how it is made
    """Return the record."""
    return record


def _permute_blocks() -> None:
    for start, stop in itertools.pairwise(range(0, _AT_ONCE * (_BLOCKS + 1), _AT_ONCE)):
        permute(np.arange(start, stop), _SIZE, _KEY)


def _plan_blocks(ds: sk.Dataset) -> None:
    for start, stop in itertools.pairwise(range(0, _AT_ONCE * (_BLOCKS + 1), _AT_ONCE)):
        ds._node.plan(np.arange(start, stop))


def _permute_singly() -> None:
    for position in range(_SINGLE):
        permute_one(position, _SIZE, _KEY)
