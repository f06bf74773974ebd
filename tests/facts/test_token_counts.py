"""The tokens of all records, against a count of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import seekable as sk
from seekable.viewer.facts.token_counts import record_measure, token_estimate

if TYPE_CHECKING:
    from pathlib import Path


def letters(text: str) -> list[int]:
    return [1] * len(text)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[sk.Dataset, int]:
    """Lines of very different lengths, one in ten without a text, and the letters of all texts."""
    folder: Path = tmp_path_factory.mktemp("estimate")
    lengths = np.random.default_rng(0).lognormal(4, 1, 4000).astype(int)
    records = [{"text": "x" * int(length)} if row % 10 else {"n": row} for row, length in enumerate(lengths)]
    (folder / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return sk.open(folder / "a.jsonl"), sum(len(record.get("text", "")) for record in records)  # type: ignore[arg-type, misc]


def test_all_records_are_counted_where_the_sample_has_them(data: tuple[sk.Dataset, int]) -> None:
    dataset, tokens = data
    found = token_estimate(dataset._node, letters, n=4000)
    assert (found.tokens, found.low, found.high) == (tokens, tokens, tokens)
    assert found.made_of == "exact, from all 4,000 rows"


def test_texts_that_the_tokenizer_refuses_are_left_out() -> None:
    texts = sk.from_sequence(["ab", "\ud800 x", "c"])

    def encoded(text: str) -> list[int]:
        return list(text.encode())

    found = token_estimate(texts._node, encoded)
    assert (found.tokens, found.made_of) == (
        3,
        "exact, from all 3 rows, without 1 text that the tokenizer refuses",
    )
    assert record_measure("a", tokenizer=encoded).lengths(list(texts)).tolist() == [2, -1, 1]
    with pytest.raises(sk.errors.InvalidArgument, match=r"refuses all of 1 texts.*surrogates not allowed"):
        token_estimate(sk.from_sequence(["\ud800"])._node, encoded)


@pytest.mark.parametrize("lines", [True, False], ids=["lines", "other data"])
def test_bounds_of_a_sample_hold_the_count(data: tuple[sk.Dataset, int], *, lines: bool) -> None:
    dataset, tokens = data
    if not lines:
        dataset = sk.from_sequence(list(dataset))
    for n in (100, 1000):
        found = token_estimate(dataset._node, letters, n=n)
        assert found.low < tokens < found.high
        assert found.low < found.tokens < found.high
        assert f"{n:,} of 4,000 rows, seed 0" in found.made_of
    # Bytes of lines say nearly all of their letters, so that the bounds are narrow.
    assert (found.high - found.low < 0.03 * tokens) == lines


def test_data_without_records_has_no_tokens() -> None:
    assert token_estimate(sk.from_sequence([])._node, letters).document()["count"] == 0
