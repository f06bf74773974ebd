"""A loop that nothing bounds is told so once, after ten times the records of its sources."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.errors import EndlessRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RECORDS = 40


def data(records: int = RECORDS) -> sk.Dataset:
    return sk.from_sequence(range(records), version=1).shuffle(seed=1)


def without_end() -> sk.Dataset:
    return sk.mix([data(), data(24)], seed=0, stop="never")


def twice(number: int) -> list[int]:
    return [number, number]


def is_odd(number: int) -> bool:
    return number % 2 == 1


def warned_at(endless: Iterable[Any], most: int) -> list[int]:
    """Return after how many deliveries of a ``for`` statement there were warnings."""
    found: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, _ in enumerate(endless):
            if len(caught) > len(found):
                found.append(number)
                assert caught[-1].category is EndlessRun
                assert caught[-1].filename == __file__
            if number == most:
                break
    return found


ENDLESS: dict[str, tuple[Callable[[], Any], int]] = {
    "stream": (lambda: data().stream(), 400),
    "lanes": (lambda: data().stream(lanes=3), 400),
    "filter": (lambda: data().stream().filter(is_odd), 200),
    "functions": (lambda: data().stream().map(abs).map(abs).filter(is_odd).map(abs), 200),
    "flatten": (lambda: data().stream().flatten(twice), 800),
    "buffer": (lambda: data().stream(lanes=2).shuffle(buffer=9, seed=1), 400),
    "mixed streams": (lambda: sk.mix([data().stream()] * 2, weights=[1, 1], seed=0), 800),
    "stream of a mixture": (lambda: without_end().stream(lanes=2), 640),
    "loader of a stream": (lambda: sk.Loader(data().stream(), batch_size=2), 200),
    "loader of batches": (lambda: sk.Loader(data().stream(lanes=2).batch(4), batch_size=None), 100),
    "loader of a mixture": (lambda: sk.Loader(without_end(), batch_size=2), 320),
    "not ahead": (lambda: sk.Loader(without_end(), batch_size=2, prefetch=0), 320),
    "threads": (lambda: sk.Loader(without_end(), batch_size=2, workers=sk.Workers(2, type="thread")), 320),
}
"""By name what makes data without an end, and the number of its deliveries in ten passes."""

BOUNDED: dict[str, Callable[[], Any]] = {
    "epochs": lambda: data().stream(epochs=30),
    "take": lambda: data().stream().take(1200),
    "steps of a stream": lambda: sk.Loader(data().stream(), batch_size=2, steps=600),
    "steps of a mixture": lambda: sk.Loader(without_end(), batch_size=2, steps=600),
    "epochs of a loader": lambda: sk.Loader(data(), batch_size=2, epochs=30),
    "iterable": lambda: sk.from_iterable(lambda: iter(range(1200))),
    "take of an iterable": lambda: sk.from_iterable(itertools.count).take(1200),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_the_warning_comes_once_near_the_tenth_pass(name: str) -> None:
    make, tenth = ENDLESS[name]
    (at,) = warned_at(make(), 3 * tenth)
    assert tenth * 0.95 <= at <= tenth * 1.2


@pytest.mark.parametrize("name", BOUNDED)
def test_a_run_with_an_end_is_not_looked_at(name: str) -> None:
    assert warned_at(BOUNDED[name](), 2000) == []


def test_who_asks_by_hand_has_a_bound() -> None:
    """Warnings are errors in the tests."""
    run = iter(data().stream())
    assert len([next(run) for _ in range(1000)]) == 1000
    assert len(list(itertools.islice(iter(sk.Loader(data().stream(), batch_size=2)), 1000))) == 1000


def test_nothing_is_lost_where_the_warning_is_an_error() -> None:
    loader = sk.Loader(data().stream(), batch_size=2, collate=list)
    got = []
    said = r"10 times: steps= of sk\.Loader, or ds\.stream\(epochs=\), gives it one"
    with pytest.raises(EndlessRun, match=said):  # noqa: PT012 - it comes in the loop
        for batch in loader:
            got.append(batch)  # noqa: PERF402
    assert loader.step == len(got)
    again = sk.Loader(data().stream(), batch_size=2, collate=list)
    again.load_state_dict(loader.state_dict())
    whole = iter(sk.Loader(data().stream(), batch_size=2, collate=list))
    assert [*got, next(iter(again))] == list(itertools.islice(whole, len(got) + 1))


def test_a_stream_of_unknown_size_is_not_judged() -> None:
    assert (
        warned_at(sk.mix([data().stream(), sk.from_iterable(itertools.count)], weights=[1, 1], seed=0), 2000)
        == []
    )
