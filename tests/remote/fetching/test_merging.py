from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.remote.fetching.wants import MergedRanges, ObjectRef, Wants, covered, gap_within, merged
from seekable.remote.stores.object_store import Pin

SIZES = [0, 1, 50, 64, 200]
OBJECTS = tuple(ObjectRef(f"s3://bucket/{number}", Pin(size, 1)) for number, size in enumerate(SIZES))


@st.composite
def ranges(draw: st.DrawFn) -> Wants:
    rows = []
    for number in draw(st.lists(st.sampled_from(range(len(SIZES))), max_size=12)):
        start = draw(st.integers(0, SIZES[number]))
        rows.append((number, start, draw(st.integers(start, SIZES[number]))))
    return Wants(OBJECTS, *np.array(rows, np.int64).reshape(-1, 3).T.copy())


def rows_of(requests: MergedRanges) -> list[tuple[int, int, int]]:
    columns = (requests.which.tolist(), requests.starts.tolist(), requests.stops.tolist())
    return list(zip(*columns, strict=True))


def bytes_of(rows: list[tuple[int, int, int]]) -> set[tuple[int, int]]:
    return {(number, at) for number, start, stop in rows for at in range(start, stop)}


@given(ranges(), st.integers(0, 40), st.integers(1, 16), st.sampled_from([1, 2, 8]))
def test_requests_bring_all_that_is_wanted_and_no_more_than_gaps_and_alignment_cost(
    wants: Wants, gap: int, most: int, align: int
) -> None:
    most *= align
    requests = merged(wants, gap_bytes=gap, most_bytes=most, align_bytes=align)
    sent = rows_of(requests)
    wanted = [
        (number, start // align * align, min(-(-stop // align) * align, SIZES[number]))
        for number, start, stop in zip(
            wants.which.tolist(), wants.starts.tolist(), wants.stops.tolist(), strict=True
        )
        if start < stop
    ]
    needed = bytes_of(wanted)
    assert bytes_of(sent) >= needed
    assert len(bytes_of(sent)) == sum(stop - start for _, start, stop in sent), "a byte is fetched twice"
    assert all(0 < stop - start <= most for _, start, stop in sent)
    for number, start, stop in sent:
        assert {(number, start), (number, stop - 1)} <= needed, "a request begins or ends in a gap"
        gaps = "".join("x" if (number, at) in needed else " " for at in range(start, stop)).split("x")
        assert max(map(len, gaps)) <= gap
        assert align == 1 or start // most == (stop - 1) // most
    firsts = [
        min(row for row, (number, start, stop) in enumerate(wanted) if number == n and start < b and stop > a)
        for n, a, b in sent
    ]
    kept = np.flatnonzero(wants.stops > wants.starts)
    assert requests.first.tolist() == [kept[row] for row in firsts] == sorted(kept[row] for row in firsts)


@given(ranges(), st.integers(0, 40), st.integers(1, 16), st.sampled_from([1, 2, 8]))
def test_neighbours_that_could_be_one_request_are(wants: Wants, gap: int, most: int, align: int) -> None:
    most *= align
    sent = sorted(rows_of(merged(wants, gap_bytes=gap, most_bytes=most, align_bytes=align)))
    for (number, start, stop), (after, next_start, next_stop) in itertools.pairwise(sent):
        if number != after or next_start - stop > gap:
            continue
        if align > 1:
            assert start // most != (next_stop - 1) // most
        else:
            assert next_stop - start > most or stop - start == most or next_stop - next_start == most


@given(ranges())
def test_a_byte_that_several_ranges_cover_counts_once(wants: Wants) -> None:
    columns = (wants.which.tolist(), wants.starts.tolist(), wants.stops.tolist())
    bytes_wanted = bytes_of(list(zip(*columns, strict=True)))
    assert covered(wants).tolist() == [
        sum(number == of for of, _ in bytes_wanted) for number in range(len(SIZES))
    ]


@given(ranges(), st.integers(0, 40), st.integers(0, 200))
def test_the_gap_is_the_largest_whose_requests_fit(wants: Wants, gap: int, most: int) -> None:
    def total(of: int) -> int:
        found = merged(wants, gap_bytes=of, most_bytes=1 << 20, align_bytes=1)
        return int((found.stops - found.starts).sum())

    found = gap_within(wants, gap_bytes=gap, most_bytes=most)
    fitting = [each for each in range(gap + 1) if total(each) <= most]
    assert total(found) == total(max(fitting, default=0))


def test_nothing_wanted_is_no_request() -> None:
    none = Wants((), *np.zeros((3, 0), np.int64))
    assert len(merged(none, gap_bytes=9, most_bytes=8, align_bytes=1)) == 0
    assert len(merged(Wants.of(OBJECTS[4], 7, 7), gap_bytes=9, most_bytes=8, align_bytes=8)) == 0


def test_a_range_within_an_earlier_one_makes_no_request_shorter() -> None:
    wants = Wants(OBJECTS, *np.array([[2, 0, 30], [2, 5, 9], [4, 7, 20], [4, 7, 8]], np.int64).T.copy())
    for align in (1, 2):
        requests = merged(wants, gap_bytes=0, most_bytes=100, align_bytes=align)
        first = 7 // align * align
        assert sorted(rows_of(requests)) == [(2, 0, 30), (4, first, 20)]
