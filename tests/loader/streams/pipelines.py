"""Streams that tests of the loader run, and what they must deliver, read off an iterator."""

from __future__ import annotations

import itertools
from typing import Any

import seekable as sk

LANES = 12
BATCH = 24


def is_even(number: int) -> bool:
    return number % 2 == 0


def some(number: int) -> list[int]:
    return [number] * (number % 3)


def numbers(start: int, n: int, *, lanes: int, epochs: int | None) -> sk.Stream:
    shuffled = sk.from_sequence(range(start, start + n)).shuffle(seed=start)
    return shuffled.stream(lanes=lanes, epochs=epochs)


def everything(*, lanes: int = LANES, epochs: int | None = None, n: int = 50) -> sk.Stream:
    """A mixture of what a filter passes and what flatten makes, through a buffer."""
    first = numbers(0, n, lanes=lanes, epochs=epochs).filter(is_even)
    second = numbers(1000, n, lanes=lanes, epochs=epochs).flatten(some)
    mixed = sk.mix([first, second], weights=[2, 1], seed=0, stop="all")
    return mixed.shuffle(buffer=7, seed=3)


def first_of(stream: sk.Stream, count: int) -> list[Any]:
    return list(itertools.islice(iter(stream), count))


def put_together(parts: list[list[Any]], start: int) -> list[Any]:
    """Put the ranks' parts of one global batch together: slot s is rank s % world_size's."""
    world_size, total = len(parts), sum(map(len, parts))
    items = [iter(part) for part in parts]
    return [next(items[(start + i) % world_size]) for i in range(total)]
