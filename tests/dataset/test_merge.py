"""Merged datasets have each row of a file once, the first dataset's first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import numbers

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

parts = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 9), max_size=8)), min_size=1, max_size=3
)


def dataset(some: list[tuple[str, list[int]]]) -> tuple[sk.Dataset, list[tuple[str, int]]]:
    """Return rows of two sources, and what they are."""
    made = sk.concat(
        [
            sk.from_sequence([(name, row) for row in range(10)], version=name).select(rows)
            for name, rows in some
        ]
    )
    return made, [(name, row) for name, rows in some for row in rows]


@given(one=parts, other=parts)
def test_rows_are_those_of_the_model(
    one: list[tuple[str, list[int]]], other: list[tuple[str, list[int]]]
) -> None:
    (first, rows), (second, others) = dataset(one), dataset(other)
    merged = sk.concat([first, second], distinct=True)
    assert list(merged) == list(dict.fromkeys(rows + others))
    assert merged._node.steady
    assert list(sk.concat([merged, merged], distinct=True)) == list(merged)


def test_files_are_the_same_by_their_path(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name}0\n{name}1\n")
    one, other = sk.open(str(tmp_path / "[ab].txt")), sk.open(str(tmp_path / "[bc].txt"))
    assert list(sk.concat([one, other], distinct=True)) == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert sk.concat([one, sk.open(tmp_path / "a.txt")], distinct=True)._node is one._node
    assert list(sk.concat([other.filter(lambda line: line != "b1"), one], distinct=True)) == [
        "b0",
        "c0",
        "c1",
        "a0",
        "a1",
        "b1",
    ]


def test_what_cannot_be_merged_is_named() -> None:
    with pytest.raises(sk.errors.WrongType, match=r"takes Datasets \(got a list"):
        sk.concat([numbers(3), [1]], distinct=True)  # type: ignore[list-item]  # what a user might try
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        sk.concat([numbers(3), numbers(3).shuffle(seed=1)], distinct=True)
    with pytest.raises(sk.errors.InvalidArgument, match="made of several"):
        sk.concat([numbers(3), numbers(4).batch(2)], distinct=True)
