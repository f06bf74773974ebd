from __future__ import annotations

import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.remote.fetching.fake_store import content

from seekable.remote.cache.held_ranges import CELL_BYTES, Held, HeldBlock, HeldRanges
from seekable.storage.addresses import object_key

SIZE = 300_000
KEY = object_key("s3://bucket/a", size=SIZE, identity=1)
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
    kept: list[HeldBlock] = []
    for (start, stop), is_kept in spans:
        block = ranges.put(KEY, start, A[start:stop])
        if is_kept:
            kept.append(block)
            here[start:stop] = True
        del block
    start, stop = wanted
    view = ranges.view(KEY, start, stop) if start < stop else None
    assert (view is not None) == bool(start < stop and here[start:stop].all())
    if view is not None:
        assert view == A[start:stop]
        assert view.readonly
    blocks, gaps = ranges.cover(KEY, start, stop)
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
        held = Held([ranges.put(KEY, number % 3 * 100_000, A[:100_000])])
    assert ranges.total_bytes == held.held_bytes == 100_000
    del held
    gc.collect()
    assert ranges.total_bytes == 0
    ranges.put(KEY, 0, A[:500])
    ranges.put(KEY, 500, A[500:1000])
    assert bytes(ranges.view(KEY, 100, 900) or b"") == A[100:900]
    ranges.put(KEY, 1000, A[1000:1001])
    assert ranges.view(KEY, 100, 900) is None


@given(st.lists(st.tuples(SPANS, st.booleans()), max_size=12), st.lists(SPANS, max_size=8))
def test_many_ranges_are_found_as_each_alone(
    spans: list[tuple[tuple[int, int], bool]], wanted: list[tuple[int, int]]
) -> None:
    ranges = HeldRanges(recent_bytes=0)
    kept = [ranges.put(KEY, start, A[start:stop]) for (start, stop), is_kept in spans if is_kept]
    firsts = np.full(len(wanted), ranges.cells.first(KEY))
    starts, stops = np.array(wanted, np.int64).reshape(-1, 2).T
    found = ranges.cells.find(firsts, starts, stops)
    for view, (start, stop) in zip(found.views(), wanted, strict=True):
        assert view is None or view == A[start:stop]
        alone = ranges.view(KEY, start, stop) if start < stop else None
        assert view is None or alone is not None
        whole = any(
            block.start <= start - start % CELL_BYTES and block.stop >= -(-stop // CELL_BYTES) * CELL_BYTES
            for block in kept[-1:]
        )
        assert view is not None or not whole or start == stop
    assert [row for row, view in enumerate(found.views()) if view is None] == found.missing.tolist()
    assert ranges.cells.find(firsts - firsts - 1, starts, stops).missing.tolist() == list(range(len(wanted)))


def test_a_range_in_two_maps_of_files_is_joined() -> None:
    ranges = HeldRanges(recent_bytes=0)
    maps = [HeldBlock(start, memoryview(A[start : start + CELL_BYTES])) for start in (0, CELL_BYTES)]
    parts = [ranges.put_part(KEY, each, each.start, each.stop) for each in maps]
    joined = ranges.view(KEY, CELL_BYTES - 5, CELL_BYTES + 5)
    assert joined is not None
    assert bytes(joined) == A[CELL_BYTES - 5 : CELL_BYTES + 5]
    assert not ranges.cover(KEY, 0, 2 * CELL_BYTES)[1]
    del parts, maps
    gc.collect()
    assert ranges.view(KEY, 0, 5) is None
