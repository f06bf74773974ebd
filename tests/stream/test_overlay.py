"""Overlay with several partners: how many, which, holes, and wrong arguments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

NOISE = sk.from_sequence([f"noise {number}" for number in range(20)])


def speech(n: int = 300) -> sk.Stream:
    return sk.from_sequence(range(n)).stream(epochs=1)


def listed(item: int, partners: list[str], rng: np.random.Generator) -> tuple[int, list[str], float]:
    return item, partners, rng.random()


def until_long(item: int, partners: Iterator[str], rng: np.random.Generator) -> tuple[int, list[str], float]:
    """Take partners until their names are long enough, as noise is laid over speech to its end."""
    names: list[str] = []
    while sum(map(len, names)) < item:
        names.append(next(partners))
    return item, names, rng.random()


def quiet(_: str) -> Any:
    return sk.HOLE


def quiet_unless_three(name: str) -> Any:
    return name if name.endswith("3") else sk.HOLE


@pytest.mark.parametrize(("partners", "counts"), [(1, {1}), (3, {3}), ((1, 4), {1, 2, 3, 4}), ([2, 2], {2})])
def test_the_number_of_partners_is_the_one_asked_for(partners: Any, counts: set[int]) -> None:
    items = list(speech().overlay(NOISE, listed, partners=partners, prob=1, seed=1))
    assert {len(names) for _, names, _ in items} == counts
    assert {name for _, names, _ in items for name in names} == set(NOISE)


def test_items_that_are_not_combined_are_those_without_partners_argument() -> None:
    one = list(speech().overlay(NOISE, listed, prob=0.5, seed=1))
    for partners in (2, (1, 3), "endless"):
        several = list(speech().overlay(NOISE, listed, partners=partners, prob=0.5, seed=1))
        assert [isinstance(item, int) for item in several] == [isinstance(item, int) for item in one]


def test_a_function_takes_as_many_partners_as_it_needs() -> None:
    items = list(speech(60).overlay(NOISE, until_long, partners="endless", prob=1, seed=1))
    assert all(sum(map(len, names)) >= item for item, names, _ in items)
    assert len({tuple(names) for _, names, _ in items[30:]}) == 30


def test_what_a_function_draws_does_not_depend_on_the_partners_that_it_takes() -> None:
    def drawn_first(_: int, partners: Iterator[str], rng: np.random.Generator) -> tuple[float, list[str]]:
        return rng.random(), list(itertools.islice(partners, 2))

    def drawn_last(_: int, partners: Iterator[str], rng: np.random.Generator) -> tuple[float, list[str]]:
        names = list(itertools.islice(partners, 2))
        return rng.random(), names

    first, last = (
        list(speech().overlay(NOISE, fn, partners="endless", prob=1, seed=1))
        for fn in (drawn_first, drawn_last)
    )
    assert first == last


def test_holes_are_no_partners() -> None:
    some, none = NOISE.map(quiet_unless_three), NOISE.map(quiet)
    items = list(speech().overlay(some, listed, partners=4, prob=1, seed=1))
    assert {name for item in items if not isinstance(item, int) for name in item[1]} == {
        "noise 3",
        "noise 13",
    }
    assert any(isinstance(item, int) for item in items)
    assert list(speech().overlay(none, listed, partners=(1, 2), prob=1, seed=1)) == list(range(300))
    endless = list(speech(60).overlay(some, until_long, partners="endless", prob=1, seed=1))
    assert {name for _, names, _ in endless for name in names} == {"noise 3", "noise 13"}


def test_partners_that_are_all_holes_end_the_search() -> None:
    stream = speech(2).overlay(NOISE.map(quiet), until_long, partners="endless", prob=1, seed=1)
    with pytest.raises(sk.errors.NothingPassed, match="drew 10,000 partners in a row"):
        list(stream)


@pytest.mark.parametrize(
    ("partners", "error", "message"),
    [
        (0, sk.errors.InvalidArgument, "partners must be at least 1"),
        ((0, 2), sk.errors.InvalidArgument, "partners must be at least 1"),
        ((3, 1), sk.errors.InvalidArgument, "the least and the most"),
        ((1, 2, 3), sk.errors.WrongType, "a number, a pair of numbers, or 'endless'"),
        ("all", sk.errors.WrongType, "a number, a pair of numbers, or 'endless'"),
        (1.5, sk.errors.WrongType, "partners must be an integer"),
        ((1, "2"), sk.errors.WrongType, "partners must be an integer"),
    ],
)
def test_a_wrong_number_of_partners_is_an_error(partners: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        speech().overlay(NOISE, listed, partners=partners, prob=1, seed=1)


def test_the_description_has_the_partners_only_where_there_are_several() -> None:
    one, several = (
        speech().overlay(NOISE, listed, prob=1, seed=1, partners=partners) for partners in (None, (1, 3))
    )
    assert "partners" not in repr(one)
    assert "partners=(1, 3)" in repr(several)
    assert one.fingerprint != several.fingerprint
