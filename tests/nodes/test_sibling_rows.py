"""The rows of sibling archives that go together, against a model of dicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thrift import some

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.siblings import matched_rows


@dataclass
class Side:
    """An archive: its key hashes by shard. It stands for its files and its words too."""

    shards: list[list[int]]
    records: Any = field(init=False)
    starts: Any = field(init=False)

    def __post_init__(self) -> None:
        self.records = np.array([len(shard) for shard in self.shards], np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.records)])

    def __len__(self) -> int:
        return len(self.shards)

    @property
    def files(self) -> Side:
        return self

    @property
    def words(self) -> Side:
        return self

    def key_hashes_of(self, shard: int) -> Any:
        return np.array(self.shards[shard], np.uint64)

    def key_at(self, row: int) -> str:
        return f"key {[key for shard in self.shards for key in shard][row]}"

    def shown_path(self, shard: int) -> str:
        return f"{shard}.tar"


def model(sides: list[Side]) -> list[tuple[int, ...]]:
    """Return the row of each side for each record, -1 where it lacks the record."""
    records = []
    for shard in range(len(sides[0])):
        keys = dict.fromkeys(key for side in sides for key in side.shards[shard])
        records += [
            tuple(
                int(side.starts[shard]) + side.shards[shard].index(key) if key in side.shards[shard] else -1
                for side in sides
            )
            for key in keys
        ]
    return records


def matched(sides: list[Side], *, fills: bool = True) -> list[tuple[int, ...]]:
    names = [f"side{number}" for number in range(len(sides))]
    found = matched_rows(cast("Any", sides), names, fills=fills)
    if found.of_side is None:
        return [(row,) * len(sides) for row in range(int(found.counts.sum()))]
    assert {len(rows) for rows in found.of_side} == {int(found.counts.sum())}
    return list(zip(*(rows.tolist() for rows in found.of_side), strict=True))


SHARDS = st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), min_size=2, max_size=2)


@given(st.lists(SHARDS, min_size=1, max_size=3))
@settings(max_examples=some(150, of=3))
def test_rows_are_those_of_the_model(shards: list[list[list[int]]]) -> None:
    sides = [Side(each) for each in shards]
    expected = model(sides)
    assert matched(sides) == expected
    if any(-1 in rows for rows in expected):
        with pytest.raises(UnsupportedFormat, match=r"\.tar \('side\d'\) lacks \d+ sample"):
            matched(sides, fills=False)
    else:
        assert matched(sides, fills=False) == expected


def test_equal_keys_in_the_same_order_need_not_be_unique() -> None:
    sides = [Side([[1, 1, 2]]), Side([[1, 1, 2]])]
    assert matched(sides, fills=False) == [(0, 0), (1, 1), (2, 2)]
    with pytest.raises(UnsupportedFormat, match="rows 0 and 1 have the key 'key 1'"):
        matched([sides[0], Side([[1, 2]])])


def test_a_shard_in_order_may_stand_beside_one_that_is_not() -> None:
    assert matched([Side([[1, 1], [5, 6]]), Side([[1, 1], [6, 5]])], fills=False) == [
        *((0, 0), (1, 1)),
        *((2, 3), (3, 2)),
    ]
