from __future__ import annotations

import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.remote.fetching.fake_store import content

from seekable.remote.cache.held_ranges import Block, Held, HeldRanges

SIZE = 300_000
A = content(SIZE)
SPANS = st.tuples(st.integers(0, SIZE), st.integers(0, 150_000)).map(
    lambda pair: (pair[0], min(SIZE, sum(pair)))
)


@given(st.lists(st.tuples(SPANS, st.booleans()), max_size=12), SPANS)
def test_what_is_held_is_found_and_nothing_else(
    spans: list[tuple[tuple[int, int], bool]], wanted: tuple[int, int]
) -> None:
    ranges = HeldRanges(recent_bytes=0)
    here = np.zeros(SIZE, np.bool_)
    kept: list[Block] = []
    for (start, stop), is_kept in spans:
        block = ranges.put("key", start, A[start:stop])
        if is_kept:
            kept.append(block)
            here[start:stop] = True
        del block
    start, stop = wanted
    view = ranges.view("key", start, stop) if start < stop else None
    assert (view is not None) == bool(start < stop and here[start:stop].all())
    if view is not None:
        assert view == A[start:stop]
        assert view.readonly
    blocks, gaps = ranges.cover("key", start, stop)
    missing = np.zeros(SIZE, np.bool_)
    for gap_start, gap_stop in gaps:
        missing[gap_start:gap_stop] = True
    assert (missing[start:stop] == ~here[start:stop]).all()
    assert not missing[:start].any()
    assert not missing[stop:].any()
    assert all(block.start < stop and block.stop > start for block in blocks)
    assert ranges.view("other", start, stop) is None


def test_memory_is_freed_with_the_last_holder() -> None:
    ranges = HeldRanges(recent_bytes=1000)
    for number in range(100):
        held = Held([ranges.put("key", number * 100_000, A[:100_000])])
    assert ranges.total_bytes == held.held_bytes == 100_000
    del held
    gc.collect()
    assert ranges.total_bytes == 0
    ranges.put("key", 0, A[:500])
    ranges.put("key", 500, A[500:1000])
    assert bytes(ranges.view("key", 100, 900) or b"") == A[100:900]
    ranges.put("key", 1000, A[1000:1001])
    assert ranges.view("key", 100, 900) is None
