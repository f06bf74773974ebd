"""Ranges merged before they are read, against a model that goes byte by byte."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.storage.ranges import merge_near

RANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 9)), max_size=20).map(
    lambda ranges: sorted((file, start, start + length) for file, start, length in ranges)
)


@given(RANGES, st.integers(0, 12))
def test_merged_ranges_hold_all_and_lie_apart(ranges: list[tuple[int, int, int]], gap: int) -> None:
    # Records of a file do not overlap: cut each where the next one begins.
    kept = [
        (file, start, min(end, *(s for f, s, _ in ranges[i + 1 : i + 2] if f == file), end))
        for i, (file, start, end) in enumerate(ranges)
    ]
    columns = [np.array(column) for column in zip(*kept, strict=True)] or [np.zeros(0, int)] * 3
    files, starts, ends = merge_near(
        columns[0], columns[1].astype(np.uint64), columns[2].astype(np.uint64), gap=gap
    )
    merged = list(zip(files.tolist(), starts.tolist(), ends.tolist(), strict=True))
    for file, start, end in kept:
        assert any(file == f and s <= start and end <= e for f, s, e in merged)
    for (f, _, end), (g, start, _) in itertools.pairwise(merged):
        assert f != g or start > end + gap
    # Nothing is read for nothing, but for gaps.
    for file, start, end in merged:
        inside = sorted(r for r in kept if r[0] == file and start <= r[1] and r[2] <= end)
        reach = inside[0][2]
        assert inside[0][1] == start
        for _, s, e in inside[1:]:
            assert s <= reach + gap
            reach = max(reach, e)
        assert reach == end
