"""Parts by label: each label in its shares, and each row in one part."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

labels = st.lists(st.sampled_from(["de", "fr", None, 7]), max_size=300)
SHARES = {"train": 0.8, "test": 0.2}


def labelled(some: list[Any]) -> sk.Dataset:
    return sk.from_sequence([{"row": row, "lang": lang} for row, lang in enumerate(some)])


def rows_of(part: sk.Dataset) -> list[int]:
    return [record["row"] for record in part]


@given(some=labels, seed=st.integers(0, 9), more=labels)
def test_stable_parts_keep_each_row_for_ever(some: list[Any], seed: int, more: list[Any]) -> None:
    parts = labelled(some).split(SHARES, seed=seed, by="lang", stable=True)
    grown = labelled(some + more).split(SHARES, seed=seed, by="lang", stable=True)
    for name, part in grown.items():
        assert [row for row in rows_of(part) if row < len(some)] == rows_of(parts[name])


@given(some=labels, seed=st.integers(0, 9), stable=st.booleans())
def test_each_row_is_in_one_part(some: list[Any], seed: int, *, stable: bool) -> None:
    parts = labelled(some).split(SHARES, seed=seed, by="lang", stable=stable)
    rows = {name: rows_of(part) for name, part in parts.items()}
    assert sorted(rows["train"] + rows["test"]) == list(range(len(some)))
    assert all(found == sorted(found) for found in rows.values())
    # The rows of a label are dealt as those of a dataset of that label alone.
    for label in set(some):
        own = [row for row, lang in enumerate(some) if lang == label]
        alone = sk.from_sequence(own).split(SHARES, seed=seed, stable=stable)
        for name, part in alone.items():
            assert list(part) == [row for row in rows[name] if some[row] == label]


def test_whole_thousands_have_their_share_to_the_row() -> None:
    ds = labelled(["a", "b", "b"] * 2000)
    parts = ds.split({"train": 0.9, "test": 0.1}, seed=3, by=lambda record: record["lang"])
    assert Counter(record["lang"] for record in parts["test"]) == {"a": 200, "b": 400}
    assert "split(..., seed=3, by=" in repr(parts["test"])


@given(some=labels, test=st.sampled_from([0.1, 0.25, 0.5]))
def test_each_label_is_shared_out_by_largest_remainder(some: list[Any], test: float) -> None:
    parts = labelled(some).split({"train": None, "test": test}, seed=0, by="lang")
    found = Counter(record["lang"] for record in parts["test"])
    for label, count in Counter(some).items():
        exact = count * Fraction(repr(test))
        # Of equal remainders the first part gets the row, and this is the second.
        assert found[label] == math.ceil(exact - Fraction(1, 2))


def test_what_has_no_label_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"l": [1]} if row else {"l": 1}) + "\n" for row in range(2))
    )
    ds = sk.open(tmp_path)
    with pytest.raises(
        sk.errors.MissingColumn, match=r"a.jsonl row 0: split\(by='lang'\): there is no column 'lang'"
    ):
        ds.split(SHARES, seed=1, by="lang")
    with pytest.raises(sk.errors.BadValue, match=r"a.jsonl row 1: .*unhashable"):
        ds.split(SHARES, seed=1, by="l")
    with pytest.raises(sk.errors.WrongType, match="by must be the name of a column"):
        ds.split(SHARES, seed=1, by=3)  # type: ignore[arg-type]  # what a user might try
    with pytest.raises(sk.errors.InvalidArgument, match="shares must sum to 1"):
        sk.from_sequence([]).split({"train": 0.5}, seed=1, by="lang")
    with pytest.raises(sk.errors.InvalidArgument, match=r"split\(by=\) takes shares .*: divide .* by 2"):
        ds.split({"train": None, "test": 1}, seed=1, by="l")
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        ds.shuffle(seed=1).split(SHARES, seed=1, by="l")


def test_holes_have_a_label_of_their_own() -> None:
    ds = sk.from_sequence([sk.HOLE, {"l": 1}] * 500)
    parts = ds.split({"a": 0.5, "b": 0.5}, seed=1, by="l")
    assert len(parts["a"]) + len(parts["b"]) == 1000
    assert 200 < sum(record is sk.HOLE for record in parts["a"]) < 300
