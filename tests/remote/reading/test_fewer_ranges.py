"""Ranges that lie near each other are put together before a look-ahead gets them."""

from __future__ import annotations

import numpy as np

from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.object_bytes import fewer_ranges
from seekable.remote.stores.object_store import Pin


def wants_of(sizes: list[int], ranges: list[tuple[int, int, int]]) -> Wants:
    refs = tuple(ObjectRef(f"s3://bucket/{n}", Pin(size, identity=n)) for n, size in enumerate(sizes))
    return Wants(refs, *np.array(ranges, np.int64).T.copy())


def rows_of(wants: Wants) -> list[tuple[int, int, int]]:
    return list(zip(*(part.tolist() for part in (wants.which, wants.starts, wants.stops)), strict=True))


def test_near_ranges_of_one_object_are_one_in_the_order_of_first_need() -> None:
    wants = wants_of([100_000, 100_000], [(1, 50, 60), (0, 40, 50), (1, 0, 40), (0, 90_000, 90_001)])
    assert rows_of(fewer_ranges(wants)) == [(1, 0, 60), (0, 40, 50), (0, 90_000, 90_001)]


def test_ranges_of_very_many_objects_stay_apart() -> None:
    count = 40_000
    ranges = [(number, 0, 10) for number in range(count)] + [(count - 1, 12, 20)]
    expected = [*ranges[: count - 1], (count - 1, 0, 20)]
    assert rows_of(fewer_ranges(wants_of([20] * count, ranges))) == expected
