"""Functions of any item, for the stages of pipelines that are drawn or listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def number_of(item: Any) -> int:
    """Return a number that depends on all of an item."""
    return crc32(shown(item).encode())


def shown(item: Any) -> str:
    if isinstance(item, dict):
        return "".join(f"{name}:{shown(value)}" for name, value in item.items())
    if isinstance(item, list | tuple):
        return "".join(f"({shown(part)})" for part in item)
    return str(item.tolist()) if isinstance(item, np.ndarray) else repr(item)


def wrapped(item: Any) -> tuple[str, Any]:
    return ("m", item)


def full_of_holes(item: Any) -> Any:
    return item if number_of(item) % 4 else sk.HOLE


def drawn(item: Any, rng: np.random.Generator) -> list[Any]:
    return [item, int(rng.integers(1000))]


def likes(item: Any) -> bool:
    return number_of(item) % 3 > 0


def parts(item: Any) -> list[Any]:
    return [(item, number) for number in range(number_of(item) % 4)]


def lazy_parts(item: Any) -> Any:
    yield from parts(item)


def joined(item: Any, partner: Any, rng: np.random.Generator) -> tuple[Any, Any, int]:
    return item, partner, int(rng.integers(100))


def joined_three(item: Any, partners: Iterator[Any], rng: np.random.Generator) -> tuple[Any, ...]:
    """Take a number of partners that depends on the generator, which their draws must not disturb."""
    first = next(partners)
    count = int(rng.integers(3))
    return item, first, [next(partners) for _ in range(count)], int(rng.integers(100))


def cost(item: Any) -> float:
    return number_of(item) % 19 / 2


def document(item: Any) -> NDArray[np.int64]:
    """Return up to 8 tokens."""
    number = number_of(item)
    return np.arange(number % 9, dtype=np.int64) + number % 1000


def masked(item: Any) -> dict[str, Any]:
    ids = document(item)
    return {"ids": ids, "mask": (ids % 2).tolist()}


def counted(n: int, lane: int, lanes: int) -> Iterator[tuple[str, int]]:
    for number in range(lane, n, lanes):
        yield "counted", number


class Kept:
    """As ``counted``, with a state of its own."""

    def __init__(self, n: int, lane: int, lanes: int) -> None:
        self.n, self.next, self.step = n, lane, lanes

    def __iter__(self) -> Kept:
        return self

    def __next__(self) -> tuple[str, int]:
        if self.next >= self.n:
            raise StopIteration
        number, self.next = self.next, self.next + self.step
        return "kept", number

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]
