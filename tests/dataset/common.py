"""Datasets that the tests of nodes are made of, and their parts.

Other processes import this module: it does without pytest and hypothesis, which take most of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from seekable.writing.manifest import Written

FORMS = ["parquet", "jsonl"]


def numbers(n: int, version: str | None = None) -> sk.Dataset:
    return sk.from_sequence(range(n), version=version)


def endless(n: int = 10) -> sk.Dataset:
    """A mixture without end, of 0 to n - 1 and of 1000 and up."""
    other = sk.from_sequence(range(1000, 1000 + n))
    return sk.mix([numbers(n), other], weights=[2, 1], seed=5, stop="never")


def flow(dataset: sk.Dataset, count: int, start: int = 0) -> list[Any]:
    """Return records by position, over the ends of epochs."""
    return dataset._node.fetch(np.arange(start, start + count))


def split_of(n: int, shares: list[float], seed: int = 0, *, stable: bool = False) -> list[sk.Dataset]:
    named = {str(i): share for i, share in enumerate(shares)}
    return list(numbers(n).split(named, seed=seed, stable=stable).values())


def rows_of(part: sk.Dataset) -> NDArray[np.int64]:
    """Return the rows of a part of ``numbers``, without making records of them."""
    return part._node.plan(np.arange(len(part))).origins().rows


def row(number: int) -> dict[str, Any]:
    return {"n": number, "text": f"text {number}", "half": number / 2}


def rows(count: int) -> sk.Dataset:
    return numbers(count).map(row)


def write(dataset: sk.Dataset, folder: Path, form: str = "jsonl", **arguments: Any) -> Written:
    method = dataset.write_parquet if form == "parquet" else dataset.write_jsonl
    return method(folder, **arguments)


def broken(number: int) -> bool:
    if number == 4321:
        message = "no such word"
        raise KeyError(message)
    return True
