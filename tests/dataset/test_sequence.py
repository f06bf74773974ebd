"""Anything with a length and items is a source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.dataset.common import flow

import seekable as sk


class Together:
    """Reads lists of rows at once, and says which."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __len__(self) -> int:
        return 10

    def __getitem__(self, row: int) -> int:
        return row

    def __getitems__(self, rows: list[int]) -> list[int]:
        self.calls.append(rows)
        return rows


@pytest.mark.parametrize("sequence", [[1, 2, 3], (1, 2, 3), range(1, 4), np.array([1, 2, 3]), "abc", b"xyz"])
def test_sequences_are_sources(sequence: Any) -> None:
    ds = sk.from_sequence(sequence)
    assert len(ds) == 3
    assert list(ds) == list(sequence)
    assert flow(ds, 7) == [*sequence, *sequence, sequence[0]]


def test_rows_are_read_together_where_that_is_possible() -> None:
    sequence = Together()
    assert sk.from_sequence(sequence)[[5, 3]] == [5, 3]
    assert sequence.calls == [[5, 3]]


def test_rows_are_plain_integers() -> None:
    class Strict:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, row: int) -> int:
            assert type(row) is int
            return row

    ds = sk.from_sequence(Strict()).shuffle(seed=1)
    assert sorted(ds) == sorted(ds[row] for row in range(5)) == list(range(5))


@pytest.mark.parametrize("thing", [{1: 2}, {1}, iter([1]), 3, None])
def test_what_is_no_sequence_is_refused(thing: Any) -> None:
    with pytest.raises(
        sk.errors.WrongType, match=rf"__len__ and __getitem__.*\(got {type(thing).__name__}\)"
    ):
        sk.from_sequence(thing)


def test_type_length_and_version_are_all_that_is_known_of_it() -> None:
    fingerprint = sk.from_sequence([1, 2, 3]).fingerprint
    assert sk.from_sequence([7, 8, 9]).fingerprint == fingerprint
    assert sk.from_sequence([1, 2]).fingerprint != fingerprint
    assert sk.from_sequence((1, 2, 3)).fingerprint != fingerprint
    assert sk.from_sequence([1, 2, 3], version=1).fingerprint != fingerprint
    assert (
        sk.from_sequence([1, 2, 3], version=1).fingerprint
        != sk.from_sequence([1, 2, 3], version="1").fingerprint
    )


def test_its_records_have_a_place() -> None:
    ds = sk.from_sequence([1, 2, 3], version="mine")
    location = ds.locate(1)
    assert (location.path, location.row) == ("<builtins.list mine>", 1)
    assert ds.find(location.path, 1, epoch=4) == [13]
    assert ds.find("<builtins.list>", 1) == ds.find(location.path, 3) == []
