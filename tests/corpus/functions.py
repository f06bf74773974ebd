"""The functions and the sequences of the pipelines of the corpus.

Descriptions hold their names, ``tests.corpus.functions.doubled``: a renamed one changes fingerprints.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    import seekable as sk

SEQUENCES: dict[str, Sequence[Any]] = {
    "numbers": range(12),
    "others": range(100, 109),
    "documents": [
        {"tokens": list(range(10 * row, 10 * row + row % 7)), "mask": [row % 2] * (row % 7)}
        for row in range(1, 13)
    ],
    "right": [{"id": row // 2, "other": row} for row in range(12)],
}
"""The sequences by the versions that stand for them."""


def doubled(number: int) -> int:
    return 2 * number


def is_odd(number: int) -> bool:
    return number % 2 == 1


def drawn(number: int, rng: np.random.Generator) -> tuple[int, int]:
    return number, int(rng.integers(1000))


def all_doubled(numbers: list[int]) -> list[int]:
    return [2 * number for number in numbers]


def scaled(number: int, by: int = 1) -> int:
    return number * by


def remainder(number: int) -> int:
    return number % 5


def twice(number: int) -> list[int]:
    return [number, -number] if number % 2 == 0 else []


def lengths(records: list[Mapping[str, Any]]) -> list[int]:
    return [len(record["text"]) for record in records]


def read_line(line: bytes) -> str:
    return line.decode().strip()


def key_of(record: Mapping[str, Any]) -> str:
    return f"key-{record['id']}"


def replaced(_: sk.CorruptRecord) -> dict[str, int]:
    return {"id": -1}


SCALED = functools.partial(scaled, by=3)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{each.__module__}.{each.__qualname__}": each
    for each in (all_doubled, doubled, drawn, is_odd, key_of, lengths, read_line, remainder, replaced, twice)
} | {f"{__name__}.scaled": SCALED}
"""The functions by their names in pipeline files."""
