"""Records left out as holes are not in batches and streams, and are told apart from those that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.induction import check_every_cut

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

GONE = {1, 4, 5, 17}
BROKEN = {8, 20}


def lines(folder: Path) -> sk.Dataset:
    """Thirty records, two of which cannot be read and become holes."""
    texts = ["{no" if row in BROKEN else f'{{"id": {row}}}' for row in range(30)]
    (folder / "a.jsonl").write_text("".join(f"{text}\n" for text in texts))
    return sk.open(folder / "a.jsonl", errors=lambda _: sk.HOLE)


def clean(folder: Path) -> sk.Dataset:
    return lines(folder).without([("a.jsonl", row) for row in GONE], fill="hole")


def ids(loader: Any) -> list[int]:
    return [record["id"] for batch in loader for record in batch]


def test_what_is_left_out_does_not_count_as_a_hole(tmp_path: Path) -> None:
    expected = [row for row in range(30) if row not in GONE | BROKEN]
    for workers in (0, 2):
        with sk.Loader(clean(tmp_path), batch_size=5, collate=list, max_holes=2, workers=workers) as loader:
            assert ids(loader) == expected
            assert (loader.report()["holes"], loader.report()["records"]) == (2, len(expected))
    with pytest.raises(sk.errors.TooManyHoles):
        ids(sk.Loader(clean(tmp_path), batch_size=5, collate=list, max_holes=1))


def test_a_batch_of_nothing_else_is_an_error(tmp_path: Path) -> None:
    loader = sk.Loader(clean(tmp_path).select([4, 5, 17, 8]), batch_size=4, collate=list)
    with pytest.raises(
        sk.errors.NothingPassed, match=r"all 4 .* holes, 3 of them rows that without\(\) left"
    ):
        next(iter(loader))
    single = sk.Loader(clean(tmp_path).select([4]), batch_size=None)
    with pytest.raises(sk.errors.NothingPassed, match=r"a hole: it was left out.*fill='replace'"):
        next(iter(single))


@pytest.mark.parametrize("lanes", [1, 3])
def test_streams_leave_them_out_at_the_source(lanes: int, tmp_path: Path) -> None:
    stream = clean(tmp_path).stream(lanes=lanes, epochs=2)
    expected = [row for row in range(30) if row not in GONE | BROKEN]
    assert sorted(record["id"] for record in stream) == sorted(2 * expected)
    loader = sk.Loader(stream, batch_size=4, collate=list, max_holes=4)
    assert len(ids(loader)) == 2 * len(expected)
    assert loader.report()["holes"] == 4


def test_streams_with_holes_of_both_kinds_resume_exactly(tmp_path: Path) -> None:
    dataset = clean(tmp_path).map(_id).shuffle(seed=1)
    check_every_cut(lambda: sk.Loader(dataset.stream(lanes=2, epochs=1), batch_size=4, collate=list))
    mixed = dataset.stream(lanes=2, epochs=1).filter(_is_even).shuffle(buffer=3, seed=1)
    check_every_cut(lambda: sk.Loader(mixed, batch_size=2, collate=list, prefetch=0))


def _id(record: dict[str, int]) -> int:
    return record["id"]


def _is_even(number: int) -> bool:
    return number % 2 == 0


def test_the_state_of_a_lane_counts_records_that_failed(tmp_path: Path) -> None:
    """After each item: those that were read before it, whatever was read ahead."""
    iterator = iter(clean(tmp_path).stream(lanes=1, epochs=1))
    for record in iterator:
        (stage,) = iterator.state_dict()["lanes"]["0"]
        before = sum(row < record["id"] for row in BROKEN)
        assert stage.get("holes", 0) == before
        assert stage["at"] == record["id"] + 1


def test_zips_tell_them_apart(tmp_path: Path) -> None:
    dataset = lines(tmp_path)
    pairs = sk.zip([dataset.without([("a.jsonl", row) for row in GONE], fill="hole"), dataset])
    loader = sk.Loader(pairs, batch_size=30, collate=list)
    assert len(next(iter(loader))) == 24
    assert loader.report()["holes"] == 2
