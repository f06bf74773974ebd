"""Corrupt records: an error, another record, or a hole that keeps its position."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.dataset.common import flow, numbers

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

BAD = (3, 7)


def as_hole(error: sk.CorruptRecord) -> Any:  # noqa: ARG001 - what users write
    return sk.HOLE


def told(error: sk.CorruptRecord) -> Any:
    return {"row": error.row, "offset": error.offset, "cause": type(error.__cause__).__name__}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("".join("{broken\n" if i in BAD else f'{{"id": {i}}}\n' for i in range(10)))
    return path


def test_without_errors_a_corrupt_record_is_one(path: Path) -> None:
    with pytest.raises(sk.CorruptRecord):
        list(sk.open(path))


def test_a_hole_keeps_its_position(path: Path) -> None:
    ds = sk.open(path, errors=as_hole)
    wanted = [sk.HOLE if i in BAD else {"id": i} for i in range(10)]
    assert list(ds) == wanted
    assert [ds[i] for i in range(10)] == wanted
    assert ds[[7, 0, 3]] == [sk.HOLE, {"id": 0}, sk.HOLE]
    assert len(ds) == 10
    assert ds.locate(3).row == 3
    assert ds.find(path, 3) == [3]


def test_another_record_is_delivered_instead(path: Path) -> None:
    ds = sk.open(path, errors=told)
    assert ds[3] == {"row": 3, "offset": 30, "cause": "JSONDecodeError"}
    assert ds[[3]] == [ds[3]]


def test_an_error_of_the_function_comes_out(path: Path) -> None:
    def refused(error: sk.CorruptRecord) -> Any:
        raise error

    ds = sk.open(path, errors=refused)
    with pytest.raises(sk.CorruptRecord, match=r"a\.jsonl"):
        ds[3]
    with pytest.raises(sk.CorruptRecord, match=r"a\.jsonl"):
        ds[[0, 3]]
    assert ds[4] == {"id": 4}


def test_only_corrupt_records_are_asked_about(path: Path) -> None:
    ds = sk.open(path, errors=as_hole)
    assert ds[0] == {"id": 0}
    with path.open("a") as file:
        file.write('{"id": 10}\n')
    with pytest.raises(sk.IndexStale):
        ds[0]


def test_a_decoding_function_may_fail_too(path: Path) -> None:
    def strict(line: bytes) -> str:
        if b"broken" in line:
            message = "no"
            raise LookupError(message)
        return line.decode()

    assert sk.open(path, decode=strict, errors=told)[3]["cause"] == "LookupError"


def test_it_decides_neither_order_nor_fingerprint(path: Path) -> None:
    """A run that stopped at a corrupt record goes on from its state with errors=."""
    strict, loose = sk.open(path), sk.open(path, errors=as_hole)
    assert strict.fingerprint == loose.fingerprint
    assert "errors=as_hole" in repr(loose)
    with pytest.raises(sk.errors.WrongType, match="errors must be a function"):
        sk.open(path, errors=sk.HOLE)  # type: ignore[arg-type]


def with_holes(n: int = 20) -> sk.Dataset:
    return sk.from_sequence([sk.HOLE if i % 5 == 2 else i for i in range(n)])


def doubled(record: int) -> int:
    return 2 * record


def plus_noise(record: int, rng: np.random.Generator) -> float:
    return record + rng.random()


def test_holes_pass_through_map() -> None:
    wanted = [sk.HOLE if i % 5 == 2 else 2 * i for i in range(20)]
    ds = with_holes().map(doubled)
    assert list(ds) == wanted
    assert [ds[i] for i in range(20)] == wanted
    noisy = with_holes().map(plus_noise, rng=True, seed=1)
    assert [i for i, record in enumerate(noisy) if record is sk.HOLE] == [2, 7, 12, 17]
    assert list(noisy) == [noisy[i] for i in range(20)]
    whole = numbers(20).map(plus_noise, rng=True, seed=1)
    assert all(a is sk.HOLE or a == b for a, b in zip(noisy, whole, strict=True))


def test_a_function_may_make_holes() -> None:
    ds = numbers(6).map(lambda i: sk.HOLE if i % 2 else i).map(doubled)
    assert list(ds) == [0, sk.HOLE, 4, sk.HOLE, 8, sk.HOLE]


def test_functions_of_batches_are_given_none() -> None:
    seen: list[list[int]] = []

    def noted(records: list[int]) -> list[int]:
        seen.append(list(records))
        return [2 * record for record in records]

    ds = with_holes().map_batches(noted, size=4)
    assert ds._node.fetch(np.arange(20)) == [sk.HOLE if i % 5 == 2 else 2 * i for i in range(20)]
    assert [record for records in seen for record in records] == [i for i in range(20) if i % 5 != 2]
    assert ds[2] is sk.HOLE
    assert ds[3] == 6


def test_holes_are_shuffled_along() -> None:
    for ds in (with_holes().shuffle(1), with_holes().shuffle(1, window=1, lanes=2)):
        assert sum(record is sk.HOLE for record in ds) == 4


def test_a_zip_with_one_is_one() -> None:
    ds = sk.zip([with_holes(), sk.from_sequence(np.arange(40).reshape(20, 2))])
    assert [i for i, record in enumerate(ds) if record is sk.HOLE] == [2, 7, 12, 17]
    assert ds[2] is sk.HOLE
    assert ds[3][0] == 3


def test_lists_leave_them_out() -> None:
    ds = with_holes().batch(3)
    assert list(ds)[:3] == [[0, 1], [3, 4, 5], [6, 8]]
    assert [ds[i] for i in range(3)] == [[0, 1], [3, 4, 5], [6, 8]]
    assert len(ds.locate(0)) == 3
    with pytest.raises(sk.errors.NothingPassed, match="nothing but holes"):
        with_holes().batch(1)[2]


def test_filter_keeps_them() -> None:
    assert list(with_holes(8).filter(lambda i: i > 4)) == [sk.HOLE, 5, 6, sk.HOLE]


def test_there_is_one_hole() -> None:
    assert pickle.loads(pickle.dumps(sk.HOLE)) is sk.HOLE
    assert copy.deepcopy([sk.HOLE])[0] is sk.HOLE
    assert type(sk.HOLE)() is sk.HOLE
    assert repr(sk.HOLE) == "sk.HOLE"


def test_a_pickled_dataset_has_its_function(path: Path) -> None:
    ds = pickle.loads(pickle.dumps(sk.open(path, errors=told)))
    assert ds[3]["row"] == 3


def test_of_several_sources_each_has_its_own(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.jsonl"
    other.write_text("nothing\n")
    ds = sk.concat([sk.open(path, errors=as_hole), sk.open(other, errors=told)])
    assert flow(ds, 11)[3] is sk.HOLE
    assert flow(ds, 11)[10]["row"] == 0
