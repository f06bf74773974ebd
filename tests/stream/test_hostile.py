"""Functions, items and states that nobody would wish for."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.stream.common import check_cuts, delivered, following, through_json
from tests.stream.matrix import BUILDERS

import seekable as sk
from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def numbers(n: int = 20, lanes: int = 1) -> sk.Stream:
    return sk.from_sequence(range(n)).stream(lanes=lanes, epochs=2)


def fails_at_seven(number: int, *_: Any) -> Any:
    if number == 7:
        message = "seven"
        raise ZeroDivisionError(message)
    return number


def stops_at_seven(number: int, *_: Any) -> Any:
    if number == 7:
        raise StopIteration
    return number


def lazy(number: int) -> Iterator[int]:
    yield number
    yield fails_at_seven(number)


FAILING = {
    "map": lambda fn: numbers().map(fn),
    "map with rng": lambda fn: numbers().map(fn, rng=True, seed=1),
    "filter": lambda fn: numbers().filter(fn),
    "flatten": lambda fn: numbers().flatten(fn),
    "overlay": lambda fn: numbers().overlay(sk.from_sequence("ab"), fn, prob=1, seed=1),
    "bucket": lambda fn: numbers().bucket(fn, max_cost=9, boundaries=[5], buffer=4, seed=1),
    "bucket, estimated": lambda fn: numbers().bucket(fn, max_cost=9, seed=1),
    "under others": lambda fn: sk.mix(
        [numbers().map(fn).shuffle(buffer=3, seed=1)], weights=[1], seed=1
    ).batch(2),
}


def flat(fn: Any) -> Any:
    def flattened(number: int) -> list[int]:
        return [fn(number), number]

    return flattened


@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_a_function_says_where(name: str) -> None:
    stream = FAILING[name](flat(fails_at_seven) if name == "flatten" else fails_at_seven)
    iterator = iter(stream)
    with pytest.raises(ZeroDivisionError, match="seven") as caught:
        list(iterator)
    (note,) = caught.value.__notes__
    assert "token 7" in note
    assert "range" in note
    # It does not pass for an end, and there is no state in the middle of an item.
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    with pytest.raises(sk.errors.NotResumable, match=r"failed after \d+ items \(ZeroDivisionError"):
        iterator.state_dict()


def test_a_failure_in_the_middle_of_an_item_says_where() -> None:
    iterator = iter(numbers().flatten(lazy))
    assert len(following(iterator, 15)) == 15
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert "token 7" in caught.value.__notes__[0]


@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_raises_stop_iteration_ends_nothing(name: str) -> None:
    stream = FAILING[name](flat(stops_at_seven) if name == "flatten" else stops_at_seven)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(stream)


def test_a_state_from_before_a_failure_goes_on() -> None:
    stream = numbers().map(fails_at_seven).shuffle(buffer=3, seed=1)
    iterator = iter(stream)
    following(iterator, 3)
    state = through_json(iterator.state_dict())
    with pytest.raises(ZeroDivisionError):
        list(iterator)
    iterator.load_state_dict(state)
    assert iterator.state_dict() == state
    assert next(iterator) is not None


def test_an_error_of_the_source_is_not_blamed_on_a_stage() -> None:
    class Broken(list[int]):
        def __getitem__(self, row: Any) -> Any:
            message = "the disk is gone"
            raise OSError(message)

    for stream in (
        sk.from_sequence(Broken(range(9))).stream().map(str).filter(bool),
        sk.from_sequence(Broken(range(9))).stream().flatten(str).batch(2),
        sk.from_sequence(Broken(range(9))).stream().pack(4),
    ):
        with pytest.raises(OSError, match="the disk is gone") as caught:
            next(iter(stream))
        assert not any("token None" in note for note in getattr(caught.value, "__notes__", []))


def test_a_corrupt_record_is_named_through_all_stages(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 0}\n{"n": 1}\n{broken\n{"n": 3}\n', encoding="utf-8")
    stream = sk.open(path).stream(epochs=1).filter(bool).flatten().shuffle(buffer=2, seed=1).batch(2)
    with pytest.raises(sk.CorruptRecord) as caught:
        list(stream)
    assert (caught.value.path, caught.value.row, caught.value.offset) == (str(path), 2, 18)


def add_one_in_place(item: dict[str, Any]) -> dict[str, Any]:
    item["n"] += 1
    return item


def twice_the_same(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [item, item]


def n_of(item: dict[str, Any]) -> int:
    return int(item["n"])


def test_functions_may_change_items_in_place(tmp_path: Path) -> None:
    """What is rebuilt is made anew, for each token; what repeats is read anew."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(12)), encoding="utf-8")
    source = sk.open(path).stream(epochs=1)
    changed = source.map(add_one_in_place)
    for stream in (
        changed.shuffle(buffer=4, seed=1).map(add_one_in_place),
        changed.map(add_one_in_place).repeat(2).map(add_one_in_place),
        sk.zip([changed, source]).map(lambda pair: (add_one_in_place(pair[0]), pair[1])),
        changed.bucket(n_of, max_cost=20, boundaries=[6], buffer=5, seed=1).flatten().map(add_one_in_place),
    ):
        # What a consumer does to an item reaches no later one.
        wanted = [copy.deepcopy(pair) for pair in delivered(stream)]
        for (_, item), (_, other) in zip(delivered(stream), wanted, strict=True):
            assert item == other
            if isinstance(item, dict):
                item["n"] = -1
        check_cuts(stream)
        for token, item in wanted:
            assert stream[token] == item
    tokens = [(1, 0), (1, 0)]
    batch = source.flatten(lambda item: [item]).batch(2)
    first, second = batch[tuple(tokens)]
    assert first is not second


def test_none_and_other_odd_items_are_items() -> None:
    odd: list[Any] = [None, sk.HOLE, 0, False, "", [], float("nan"), ..., StopIteration, StopIteration()]
    source = sk.from_sequence(list(range(len(odd)))).stream(epochs=1).map(odd.__getitem__, version=1)
    for stream in (
        source,
        source.shuffle(buffer=3, seed=1),
        source.batch(3).flatten(),
        sk.zip([source, source]),
        sk.concat([source.take(3), source]),
        sk.mix([source, source], weights=[1, 1], seed=1, stop="all"),
    ):
        found = [item[0] if isinstance(item, tuple) else item for _, item in delivered(stream)]
        assert all(any(item is each for each in odd) for item in found)
        assert {id(item) for item in found} == {id(each) for each in odd}
    assert sum(item is sk.HOLE for item in source.batch(3).flatten()) == 1


def test_an_interrupt_is_no_end() -> None:
    def interrupted(number: int) -> int:
        if number == 3:
            raise KeyboardInterrupt
        return number

    iterator = iter(numbers().map(interrupted))
    with pytest.raises(KeyboardInterrupt):
        list(iterator)
    with pytest.raises(sk.errors.NotResumable):
        iterator.state_dict()


@pytest.mark.parametrize(
    "token",
    [
        None,
        1.5,
        True,
        [1, True],
        {},
        "x",
        (),
        [[]],
        -1,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        1 << 80,
        [0],
        [0, 0, 0],
    ],
)
def test_bad_tokens_are_seekable_errors_in_every_stage(token: Any) -> None:
    for builders in BUILDERS.values():
        for build in builders:
            stream = build(29, 4)
            for given in (token, [token], [0, token], [token, 0], [[token, 0, 3]], [[0, token, 1]]):
                for ask in (stream.__getitem__, stream.locate):
                    try:
                        ask(given)
                    except sk.SeekableError:
                        continue
                    as_token(given)


def test_tokens_of_the_far_end_of_an_endless_stream_are_tokens() -> None:
    ds = sk.from_sequence(range(10))
    mixed = sk.mix([ds, ds], weights=[1, 1], seed=0, stop="never")
    for stream in (ds.stream(), ds.shuffle(1).stream(), mixed.stream(), ds.stream().repeat().map(str)):
        for token in (1 << 40, (1 << 63) - 1, [1 << 40, 3], [(1 << 63) - 1, 3]):
            try:
                assert stream[token] is not None
            except sk.SeekableError:
                continue


def test_documents_of_several_types_lose_no_digit() -> None:
    documents = [np.array([1, 2], dtype=np.uint8), np.array([70_000], dtype=np.int64), [5]]
    stream = sk.from_sequence(documents, version=1).stream(epochs=1).pack(4)
    assert next(iter(stream))["tokens"].tolist() == [1, 2, 70_000, 5]


@pytest.mark.parametrize(
    ("documents", "given", "told"),
    [
        ([[1.5]], {}, "a flat array of integers"),
        ([[[1]]], {}, "a flat array of integers"),
        (["text"], {}, "a flat array of integers"),
        ([{"ids": [1]}], {"key": "tokens"}, "needs items with that key"),
        ([{"ids": [1, 2], "mask": [1]}], {"key": "ids", "align": ["mask"]}, "as long as the tokens"),
        ([np.array([1], dtype=np.uint8)], {"separator": 300}, "uint8"),
        ([np.array([1], dtype=np.uint8)], {"pad": -1}, "uint8"),
        (
            [{"ids": [1], "mask": np.array([1], dtype=np.int8)}],
            {"key": "ids", "align": {"mask": 300}, "separator": 0},
            r"align\['mask'\]=300 is no int8, which is the type of the arrays that it goes into",
        ),
        (
            [{"ids": [1], "mask": [True]}],
            {"key": "ids", "align": {"mask": 5}, "separator": 0},
            r"align\['mask'\]=5 is no bool",
        ),
    ],
)
def test_documents_that_cannot_be_packed_are_refused(documents: Any, given: Any, told: str) -> None:
    stream = sk.from_sequence(documents, version=1).stream(epochs=1).pack(4, **given)
    with pytest.raises(sk.errors.InvalidArgument, match=told):
        list(stream)


def test_a_document_that_is_refused_is_named() -> None:
    stream = sk.from_sequence([[1], [2], [0.5]], version=1).stream(epochs=1).pack(9)
    with pytest.raises(sk.errors.InvalidArgument) as caught:
        list(stream)
    assert "token 2" in caught.value.__notes__[0]


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), None, "heavy"])
def test_costs_that_are_none_are_refused(cost: Any) -> None:
    stream = numbers().bucket(lambda _: cost, max_cost=9, boundaries=[5], seed=1)
    with pytest.raises(sk.errors.InvalidArgument, match="cost must be a finite number"):
        list(stream)


def test_a_state_is_not_changed_by_being_loaded_and_loads_twice() -> None:
    for builders in BUILDERS.values():
        stream = builders[0](29, 2)
        iterator = iter(stream)
        following(iterator, 9)
        state = through_json(iterator.state_dict())
        before = copy.deepcopy(state)
        rest = []
        for _ in range(2):
            again = iter(stream)
            again.load_state_dict(state)
            rest.append(len(following(again)))
            assert state == before
        assert rest[0] == rest[1]


def test_what_has_ended_is_not_asked_again_after_a_resume() -> None:
    """The longer stream of a pair would go on by one with each restore, while items still wait above."""
    check_cuts(sk.zip([numbers(20), numbers(3)]).shuffle(buffer=10, seed=1))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"start": 2**63}, "start must be below"),
        ({"start": 10**30}, "start must be below"),
        ({"epochs": 2**62}, "before position 2"),
    ],
)
def test_a_stream_beyond_64_bits_is_refused(given: dict[str, int], rule: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=rule):
        sk.from_sequence(range(3)).stream(**given)
