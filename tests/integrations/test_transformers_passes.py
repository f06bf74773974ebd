"""A trainer's passes over a loader, without a trainer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.integrations.transformers import Passes

if TYPE_CHECKING:
    from collections.abc import Iterator


def passes_of(size: int, batch: int, end: Literal["short", "drop", "pad"], state: Any = None) -> Passes:
    dataset = sk.from_sequence(range(size)).shuffle(seed=5)
    loader = sk.Loader(dataset, batch_size=batch, end=end, collate=list, prefetch=0)
    loader.load_state_dict(state or {})
    return Passes(loader, batch=batch, resumed=state is not None)


def trained(passes: Passes, *, epoch: int, skipped: int, epochs: int) -> Iterator[list[int]]:
    """Do what the trainer does: announce each epoch, and leave out the first numbers of the first one."""
    for number in range(epoch, epochs):
        passes.numbers.set_epoch(number)
        for [index] in itertools.islice(passes.numbers, skipped if number == epoch else 0, None):
            yield passes[index]


@given(
    size=st.integers(1, 30),
    batch=st.integers(1, 12),
    end=st.sampled_from(["short", "drop", "pad"]),
    data=st.data(),
)
def test_a_pass_goes_on_where_the_numbers_say(
    size: int, batch: int, end: Literal["short", "drop", "pad"], data: st.DataObject
) -> None:
    passes = passes_of(size, batch, end)
    length = len(passes.numbers)
    whole = list(trained(passes_of(size, batch, end), epoch=0, skipped=0, epochs=3))
    cut = data.draw(st.integers(0, 3 * length))
    first = list(itertools.islice(trained(passes, epoch=0, skipped=0, epochs=3), cut))
    # The trainer counts a pass as over with its last batch.
    epoch, skipped = divmod(cut, length) if length else (3, 0)
    again = passes_of(size, batch, end, passes.loader.state_dict())
    assert first + list(trained(again, epoch=epoch, skipped=skipped, epochs=3)) == whole
    assert len(whole) == 3 * length


@pytest.mark.parametrize(("epoch", "skipped"), [(0, 2), (1, 0), (1, 1), (1, 3)])
def test_numbers_that_begin_elsewhere_are_refused(epoch: int, skipped: int) -> None:
    passes = passes_of(10, 3, "short")
    list(itertools.islice(trained(passes, epoch=0, skipped=0, epochs=1), 3))
    again = passes_of(10, 3, "short", passes.loader.state_dict())
    batches = trained(again, epoch=epoch, skipped=skipped, epochs=2)
    with pytest.raises(
        sk.errors.InvalidArgument, match=rf"epoch 0 after 3 batches .* epoch {epoch} after {skipped}:"
    ):
        next(batches)


def test_a_state_between_two_batches_is_refused() -> None:
    passes = passes_of(10, 3, "short")
    list(itertools.islice(trained(passes, epoch=0, skipped=0, epochs=1), 1))
    again = passes_of(10, 2, "short", passes.loader.state_dict())
    with pytest.raises(sk.errors.InvalidArgument, match=r"after 1\.5 batches of 2 records"):
        next(trained(again, epoch=0, skipped=1, epochs=1))


def test_passes_that_nobody_announces_follow_one_another() -> None:
    passes = passes_of(5, 2, "short")
    got = [passes[index] for _ in range(2) for [index] in passes.numbers]
    again = passes_of(5, 2, "short", passes.loader.state_dict())
    got += [again[index] for [index] in again.numbers]
    dataset = sk.from_sequence(range(5)).shuffle(seed=5)
    assert [number for batch in got for number in batch] == [
        *dataset[:],
        *dataset.epoch(1),
        *dataset.epoch(2),
    ]


def test_lengths_count_what_a_trainer_takes_them_for() -> None:
    passes = passes_of(10, 3, "drop")
    assert (len(passes), len(passes.numbers)) == (10, 3)
    endless = sk.mix([sk.from_sequence(range(5))], weights=[1], seed=1, stop="never")
    passes = Passes(sk.Loader(endless, batch_size=2, prefetch=0), batch=2, resumed=False)
    for unknown in (passes, passes.numbers):
        with pytest.raises(TypeError):
            len(unknown)
    bounded = Passes(sk.Loader(endless, batch_size=2, prefetch=0), batch=2, resumed=False, bound=3)
    assert list(bounded.numbers) == [[0], [1], [2]]
