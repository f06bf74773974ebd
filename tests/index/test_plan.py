from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seekable.index.build.file_parts import parts_of, plan_batches
from seekable.index.file_table import Entry, FileTable, OffsetSegment, encode_table, in_order
from seekable.index.opening import _RACY_NS, _file_status

NOW = 10**18
GOOD, LOST = OffsetSegment(1, 10), OffsetSegment(2, 10)


def entry(
    name: str, *, size: int = 5, mtime_ns: int = 0, indexed_ns: int = NOW, segment: OffsetSegment = GOOD
) -> Entry:
    return Entry(name, "text", size, mtime_ns, indexed_ns, 1, 0, 0, 0, segment=segment, start=0, generation=1)


def surveyed(
    entries: list[Entry], wanted: dict[str, tuple[int, int]], *, doubt: bool = True
) -> tuple[list[bool], list[bool]]:
    table = FileTable(encode_table(in_order(entries)))
    found = _file_status(
        table,
        list(wanted),
        format_name="text",
        sizes=np.array([size for size, _ in wanted.values()], np.int64),
        mtimes_ns=np.array([mtime_ns for _, mtime_ns in wanted.values()], np.int64),
        whole=np.array([segment is not LOST and segment.digest != 2 for segment in table.segments]),
        doubt=doubt,
    )
    return (found.rows >= 0).tolist(), found.to_scan.tolist()


def test_files_are_valid_while_size_and_time_are_the_same() -> None:
    entries = [entry("same"), entry("longer"), entry("later"), entry("lost", segment=LOST)]
    wanted = {"same": (5, 0), "longer": (6, 0), "later": (5, 1), "lost": (5, 0), "new": (5, 0)}
    valid, to_scan = surveyed(entries, wanted)
    assert valid == [True, False, False, False, False]
    assert to_scan == [False, True, True, True, True]


def test_files_indexed_right_after_a_change_are_doubted() -> None:
    times = {
        "before": NOW - _RACY_NS,
        "just": NOW - _RACY_NS + 1,
        "after": NOW + _RACY_NS - 1,
        "future": NOW + _RACY_NS,
    }
    entries = [entry(name, mtime_ns=mtime_ns) for name, mtime_ns in times.items()]
    wanted = {name: (5, mtime_ns) for name, mtime_ns in times.items()}
    assert surveyed(entries, wanted) == ([True] * 4, [False, True, True, False])
    assert surveyed(entries, wanted, doubt=False) == ([True] * 4, [False] * 4)


def test_without_a_table_everything_is_to_scan() -> None:
    nothing = np.zeros(2, np.int64)
    found = _file_status(
        None, ["a", "b"], format_name="text", sizes=nothing, mtimes_ns=nothing, whole=None, doubt=True
    )
    assert found.to_scan.all()


@given(st.lists(st.integers(0, 100), max_size=60), st.one_of(st.none(), st.integers(1, 40)))
def test_batches_hold_each_byte_once_and_the_parts_of_a_file_in_order(
    sizes: list[int], part_bytes: int | None
) -> None:
    parts = [part for batch in plan_batches(sizes, part_bytes=part_bytes) for part in batch]
    order = list(dict.fromkeys(part.file for part in parts))
    assert sorted(order) == list(range(len(sizes)))
    assert [sizes[file] for file in order] == sorted(sizes, reverse=True)
    assert [part.file for part in parts] == sorted((part.file for part in parts), key=order.index)
    for file, size in enumerate(sizes):
        mine = [part for part in parts if part.file == file]
        assert [part.number for part in mine] == list(range(parts_of(size, part_bytes=part_bytes)))
        assert [part.start for part in mine] == [0, *(part.stop for part in mine[:-1])]
        assert mine[-1].stop == size
        assert all(part.stop - part.start == part_bytes for part in mine[:-1])


@given(st.lists(st.integers(0, 100 << 20), max_size=60))
def test_batches_hold_no_more_than_is_good(sizes: list[int]) -> None:
    for part_bytes in (None, 64 << 20):
        for batch in plan_batches(sizes, part_bytes=part_bytes):
            assert len(batch) == 1 or sum(part.stop - part.start for part in batch) <= 64 << 20


def test_many_empty_files_do_not_make_one_endless_batch() -> None:
    assert [len(batch) for batch in plan_batches([0] * 2500, part_bytes=8)] == [1000, 1000, 500]
