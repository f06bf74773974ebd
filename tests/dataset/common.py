"""Datasets that the tests of nodes are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

import seekable as sk


def numbers(n: int, version: str | None = None) -> sk.Dataset:
    return sk.from_sequence(range(n), version=version)


def endless(n: int = 10) -> sk.Dataset:
    """A mixture without end, of 0 to n - 1 and of 1000 and up."""
    other = sk.from_sequence(range(1000, 1000 + n))
    return sk.mix([numbers(n), other], weights=[2, 1], seed=5, stop="never")


def flow(dataset: sk.Dataset, count: int, start: int = 0) -> list[Any]:
    """Return records by position, over the ends of epochs."""
    return dataset.fetch(np.arange(start, start + count))
