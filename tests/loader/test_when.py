"""The steps at which a row comes, against the plans of all steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.corpus import fill
from tests.loader.flat import shuffled

import seekable as sk
from seekable.loader.step_plan import places_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.loader.steps import End


def loader_of(dataset: sk.Dataset, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(dataset, **given)


def model(loader: sk.Loader, steps: range, path: str, row: int) -> list[tuple[int, int, int, int]]:
    """Return what ``when`` returns, by a look at the plan of each step."""
    return [
        (step, record.position, record.epoch, record.rank)
        for step in steps
        for record in loader.plan(step=step).records
        if any((place.path, place.row) == (path, row) for place in places_of(record.place))
    ]


def told(loader: sk.Loader, path: str, row: int, epochs: int | range | None) -> list[tuple[int, ...]]:
    comings = loader.when(path, row, epochs=epochs)
    return [(coming.step, coming.position, coming.epoch, coming.rank) for coming in comings]


@given(
    size=st.integers(1, 30),
    batch=st.integers(1, 12),
    world_size=st.sampled_from([1, 2, 3]),
    end=st.sampled_from(["short", "drop", "pad"]),
    epochs=st.integers(1, 3),
    limit=st.none() | st.integers(1, 9),
    skipped=st.integers(0, 9),
    data=st.data(),
)
def test_when_is_the_inverse_of_the_plan(  # noqa: PLR0913 - drawn by hypothesis
    *,
    size: int,
    batch: int,
    world_size: int,
    end: End,
    epochs: int,
    limit: int | None,
    skipped: int,
    data: st.DataObject,
) -> None:
    end = "pad" if end == "short" and world_size > 1 else end
    dataset = sk.from_sequence(range(size), version=1).shuffle(seed=3)
    arguments: dict[str, Any] = {"batch_size": None, "global_batch_size": batch * world_size, "rank": 0}
    loader = loader_of(
        dataset, **arguments, world_size=world_size, end=end, epochs=epochs, steps=limit, prefetch=0
    )
    if data.draw(st.booleans(), label="from a state of other batches"):
        other = loader_of(dataset, batch_size=data.draw(st.integers(1, 5)), epochs=epochs)
        other.skip_batches(skipped)
        loader.load_state_dict(other.state_dict())
    elif data.draw(st.booleans(), label="from an epoch"):
        loader.set_epoch(skipped)
    anchor = loader._progress.anchor
    runs = 3
    left, count = loader._progress.steps.left(anchor) or 0, len(loader)
    steps = range(anchor.step, anchor.step + left + (runs - 1) * count)
    path, row = "<builtins.range 1>", data.draw(st.integers(0, size), label="row")
    searched = range(anchor.epoch + runs * epochs)
    assert told(loader, path, row, searched) == model(loader, steps, path, row)
    assert told(loader, path, row, searched.stop) == told(loader, path, row, searched)
    # By default the epochs of the first known run.
    assert told(loader, path, row, None) == model(loader, steps[:left], path, row)


@pytest.mark.parametrize("stop", ["first", "all", "never"])
def test_rows_of_mixtures_in_batches_of_lists(stop: Any, tmp_path: Path) -> None:
    fill(tmp_path, files=2)
    a, b = (sk.open(tmp_path / name).shuffle(seed=2) for name in ("part-0.jsonl", "part-1.jsonl"))
    dataset = sk.mix({"a": a, "b": b}, weights={"a": 2, "b": 1}, seed=1, stop=stop).batch(3)
    loader = loader_of(dataset, batch_size=2)
    path = str(tmp_path / "part-1.jsonl")
    steps = range(40 if stop == "never" else 5 * len(loader))
    for row in range(7):
        comings = told(loader, path, row, range(5))
        wanted = model(loader, steps, path, row)
        # Of an endless mixture the epochs are those of the source, and the row comes once in each of them.
        assert comings == (wanted[:5] if stop == "never" else [c for c in wanted if c[2] < 5])
        assert stop != "never" or len(comings) == (5 if row < 6 else 0)


def test_a_row_that_is_chosen_twice_comes_twice_and_one_that_is_not_never() -> None:
    dataset = sk.from_sequence("abcdef", version=1).select([4, 1, 4])
    loader = loader_of(dataset, batch_size=2)
    assert [told(loader, "<builtins.str 1>", row, None) for row in (4, 1, 0, 99)] == [
        [(0, 0, 0, 0), (1, 2, 0, 0)],
        [(0, 1, 0, 0)],
        [],
        [],
    ]
    assert loader.when("/no/such/file", 1) == []


def test_empty_data_has_no_coming() -> None:
    assert loader_of(sk.from_sequence([], version=1)).when("<builtins.list 1>", 0, epochs=3) == []


def test_a_billion_rows_cost_nothing() -> None:
    loader = loader_of(sk.from_sequence(range(10**9), version=1).shuffle(seed=5), batch_size=1024)
    place = loader.locate(step=48_210)[17]
    (coming,) = loader.when(place.path, place.row)
    assert (coming.step, coming.position) == (48_210, 48_210 * 1024 + 17)


def test_wrong_arguments_are_refused() -> None:
    loader = loader_of(shuffled(9))
    with pytest.raises(sk.errors.InvalidArgument, match=r"row must be .*\(got -1\)"):
        loader.when("a", -1)
    for epochs in (-1, range(-2, 1), range(3, -1, -1)):
        if epochs == range(3, -1, -1):
            assert loader.when("a", 0, epochs=epochs) == []
            continue
        with pytest.raises(sk.errors.InvalidArgument, match="epochs must be"):
            loader.when("a", 0, epochs=epochs)
    for wrong in ("0", True, 1.0):
        with pytest.raises(sk.errors.WrongType, match="a range of epochs"):
            loader.when("a", 0, epochs=wrong)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(sk.errors.InvalidArgument, match=r"stream.locate\(token\)"):
        sk.Loader(shuffled(9).stream(lanes=1), batch_size=2).when("a", 0)


@pytest.mark.parametrize("epochs", [10**12, range(10**12)])
def test_more_epochs_than_can_be_searched_are_refused_at_once(epochs: int | range) -> None:
    loader = loader_of(sk.from_sequence(range(9), version=1).shuffle(seed=1))
    place = loader.locate(step=0)[0]
    with pytest.raises(sk.errors.InvalidArgument, match="more than 10,000,000 positions"):
        loader.when(place.path, place.row, epochs=epochs)
    with pytest.raises(sk.errors.InvalidArgument, match="64-bit"):
        loader.when(place.path, place.row, epochs=range(1 << 62, (1 << 62) + 2))
