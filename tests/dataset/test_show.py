"""What a dataset says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dataset.common import endless, numbers

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "from_sequence(<builtins.range of 9>)"


def squared(record: int) -> int:
    return record * record


@pytest.mark.parametrize(
    ("dataset", "expression"),
    [
        (numbers(9), SOURCE),
        (numbers(9).shuffle(seed=7), f"{SOURCE}.shuffle(seed=7)"),
        (numbers(9)[2:5], f"{SOURCE}[2:5]"),
        (numbers(9)[::-1], f"{SOURCE}[8::-1]"),
        (numbers(9).take(3).skip(1), f"{SOURCE}[0:3][1:3]"),
        (numbers(9).repeat(3), f"{SOURCE}.repeat(3)"),
        (numbers(9).batch(2), f"{SOURCE}.batch(2)"),
        (numbers(9).epoch(4), f"{SOURCE}.epoch(4)"),
        (numbers(9).select([1, 2]), f"{SOURCE}.select([1, 2])"),
        (numbers(9).select(range(9)), f"{SOURCE}.select([0, 1, 2, 3, ...])"),
        (numbers(9).map(squared), f"{SOURCE}.map({__name__}.squared)"),
        (sk.concat([numbers(9)] * 2), f"concat([{SOURCE}, {SOURCE}])"),
        (sk.zip([numbers(9)]), f"zip([{SOURCE}])"),
    ],
    ids=range(13),
)
def test_a_dataset_shows_the_expression_that_makes_it(dataset: sk.Dataset, expression: str) -> None:
    records = f"{len(dataset):,} record{'s' * (len(dataset) != 1)}"
    assert repr(dataset) == f"<Dataset, {records}: {expression}>"


def test_a_mixture_shows_names_weights_and_stop() -> None:
    shown = repr(sk.mix({"a": numbers(9), "b": numbers(9)}, weights={"a": 0.75, "b": 0.25}, seed=1))
    assert f"'a': {SOURCE}" in shown
    assert "weights=[3, 1]" in shown
    assert "seed=1" in shown
    assert repr(endless()).startswith("<Dataset, endless: mix(")


def test_a_large_pipeline_is_shown_in_short() -> None:
    parts = [numbers(9, str(i)).shuffle(seed=i) for i in range(500)]
    for ds in (sk.mix(parts, seed=0), sk.concat(parts)):
        assert len(repr(ds)) < 1000
        assert len(ds.explain()) < 3000


def test_an_explanation_is_a_tree_with_records_and_files(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("x\n" * 1234)
    ds = sk.concat([sk.open(str(tmp_path)), numbers(9).shuffle(seed=7)]).take(5)
    lines = ds.explain().splitlines()
    assert lines[0].startswith("slice(")
    assert "5 records" in lines[0]
    assert "6,179 records" in lines[1]
    assert "concat" in lines[1]
    text = ds.explain()
    assert "0.txt: 1,234 records, 2,468 bytes" in text
    assert "more files" in text
    assert "shuffle(seed=7): 9 records, another order each epoch" in text
    assert [len(line) - len(line.lstrip()) for line in lines[:3]] == [0, 2, 4]


def test_nothing_that_is_shown_has_an_address() -> None:
    ds = sk.mix([numbers(9).map(lambda record: record).batch(2)], weights=[1], seed=0)
    assert " at 0x" not in repr(ds) + ds.explain()
