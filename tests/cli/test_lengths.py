"""The percentiles of record lengths, against numpy's over all lengths at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.dataset.open import open as open_dataset
from seekable.nodes.files.byte_source import FileSource
from seekable.viewer.facts.lengths import PERCENTILES, bin_of, least_of, record_lengths

if TYPE_CHECKING:
    from pathlib import Path

EXACT = 1 << 14


def test_short_lengths_have_a_bin_each() -> None:
    lengths = np.arange(EXACT + 1)
    assert (bin_of(lengths) == lengths).all()
    assert [least_of(number) for number in range(EXACT + 1)] == lengths.tolist()


@given(st.integers(0, 2**53 - 1))
def test_a_bin_holds_its_length_and_is_narrow(length: int) -> None:
    number = int(bin_of(np.array([length]))[0])
    least, next_least = least_of(number), least_of(number + 1)
    assert least <= length < next_least
    assert next_least - least <= max(1, length * 2 // EXACT)


@pytest.mark.parametrize("longest", [10, 400, 60_000])
def test_lengths_of_many_files_are_those_of_their_lines(tmp_path: Path, longest: int) -> None:
    rng = np.random.default_rng(longest)
    lengths = rng.integers(1, longest, size=1000, endpoint=True)
    for number, some in enumerate(np.split(lengths, [1, 1, 500])):
        (tmp_path / f"{number}.txt").write_bytes(b"".join(b"x" * (length - 1) + b"\n" for length in some))
    source = open_dataset(tmp_path).node
    assert isinstance(source, FileSource)
    found = record_lengths(source.files)
    assert found is not None
    assert (found.mean, found.shortest, found.longest) == (lengths.mean(), lengths.min(), lengths.max())
    expected = np.percentile(lengths, PERCENTILES, method="inverted_cdf")
    got = np.array([found.percentiles[percent] for percent in PERCENTILES])
    assert (got <= expected).all()
    assert (expected - got <= expected / (EXACT // 2)).all()
    if longest < EXACT:
        assert (got == expected).all()
