"""Batches of records with None: filled, left out or refused, here, in workers and under PyTorch."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import seekable as sk

RECORDS: list[dict[str, Any]] = [
    {"n": None if row % 3 == 0 else row, "text": None if row % 4 == 0 else f"t{row}"} for row in range(24)
]


def test_a_loader_fills() -> None:
    collate = sk.FillCollate(values={"n": -1, "text": "", "new": 0})
    loader = sk.Loader(sk.from_sequence(RECORDS), batch_size=8, collate=collate)
    batches = list(loader)
    numbers = np.concatenate([batch["n"] for batch in batches]).tolist()
    assert numbers == [-1 if record["n"] is None else record["n"] for record in RECORDS]
    assert [text for batch in batches for text in batch["text"]] == [r["text"] or "" for r in RECORDS]
    assert all(batch["new"].tolist() == [0] * 8 for batch in batches)
    assert RECORDS[0] == {"n": None, "text": None}


def test_records_with_none_are_left_out() -> None:
    loader = sk.Loader(
        sk.from_sequence(RECORDS), batch_size=8, collate=sk.FillCollate(none="drop"), workers=1
    )
    kept = [record for record in RECORDS if None not in record.values()]
    assert [text for batch in loader for text in batch["text"]] == [record["text"] for record in kept]


def test_arrays_are_not_compared_with_none() -> None:
    batch = [{"a": np.arange(3), "n": None}, {"a": np.arange(3), "n": 1}]
    assert sk.FillCollate(none="drop")(batch)["a"].tolist() == [[0, 1, 2]]
    assert sk.FillCollate(values={"n": 0})(batch)["n"].tolist() == [0, 1]


@pytest.mark.frameworks(name="torch")
def test_then_makes_the_batch() -> None:
    import torch
    from torch.utils.data import default_collate

    made = sk.FillCollate(values={"n": 0, "text": ""}, then=default_collate)(RECORDS[:4])
    assert torch.equal(made["n"], torch.tensor([0, 1, 2, 0]))
    again = pickle.loads(pickle.dumps(sk.FillCollate(values={"n": 0}, then=list)))
    assert again([{"n": None}]) == [{"n": 0}]


@pytest.mark.parametrize(
    ("collate", "records", "error", "why"),
    [
        (
            sk.FillCollate(none="error"),
            [{"a": 1}, {"a": None}],
            sk.errors.BadValue,
            "'a' is None in record 1",
        ),
        (
            sk.FillCollate(values={"b": 1}),
            [{"a": None}],
            sk.errors.BadValue,
            "say what to fill with, values=",
        ),
        (sk.FillCollate(none="drop"), [{"a": None}], sk.errors.NothingPassed, "each of the 1 records"),
        (sk.FillCollate(), ["a"], sk.errors.WrongType, "records that are dicts"),
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_a_batch_is_named(
    collate: sk.FillCollate, records: list[Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        collate(records)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="'fill', 'drop' or 'error'"):
        sk.FillCollate(none="raise")  # type: ignore[arg-type]  # what a user might try
    with pytest.raises(sk.errors.WrongType, match="values must be a dict"):
        sk.FillCollate(values=[1])  # type: ignore[arg-type]  # what a user might try
