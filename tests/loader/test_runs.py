"""Runs follow one another, and only the newest iterator goes on."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.loader.flat import batches_of, shuffled

import seekable as sk


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, **arguments}
    return sk.Loader(shuffled(37) if dataset is None else dataset, **given)


@pytest.fixture(params=[0, 2], ids=["no prefetch", "prefetch"])
def prefetch(request: pytest.FixtureRequest) -> int:
    depth: int = request.param
    return depth


def test_each_iter_is_the_next_run(prefetch: int) -> None:
    loader = loader_of(prefetch=prefetch)
    assert [*loader, *loader, *loader] == batches_of(shuffled(37), 4, runs=3)
    assert (loader.step, loader.epoch) == (30, 3)


def test_every_epoch_is_a_new_permutation() -> None:
    """Another library shuffles every epoch alike."""
    loader = loader_of(prefetch=0)
    epochs = [list(itertools.chain.from_iterable(loader)) for _ in range(4)]
    assert all(sorted(epoch) == list(range(37)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_the_run_after_a_break_is_the_next_one(prefetch: int) -> None:
    loader = loader_of(prefetch=prefetch)
    for _ in loader:
        break
    assert list(loader) == batches_of(shuffled(37), 4, runs=2)[10:]


def test_a_second_iter_ends_the_first_one(prefetch: int) -> None:
    """One object of another library is one cursor, which a second iterator overwrites in silence."""
    loader = loader_of(prefetch=prefetch)
    first = iter(loader)
    next(first)
    second = iter(loader)
    for _ in range(2):
        with pytest.raises(sk.errors.StoppedIterator, match="later iter"):
            next(first)
    assert list(second) == batches_of(shuffled(37), 4, runs=2)[10:]


def test_an_iterator_at_its_end_stays_there(prefetch: int) -> None:
    loader = loader_of(prefetch=prefetch)
    run = iter(loader)
    list(run)
    assert list(run) == []
    assert loader.epoch == 1
    state = loader.state_dict()
    second = iter(loader)
    assert list(run) == []
    assert loader.state_dict() == state
    assert next(second) == batches_of(shuffled(37), 4, runs=2)[10]
    loader.close()


def test_a_closed_loader_can_be_used_again(prefetch: int) -> None:
    with loader_of(prefetch=prefetch) as loader:
        run = iter(loader)
        next(run)
    with pytest.raises(sk.errors.StoppedIterator, match="close"):
        next(run)
    assert loader.step == 1
    assert next(iter(loader)) == batches_of(shuffled(37), 4, runs=2)[10]
    loader.close()


def test_two_loaders_over_one_dataset_do_not_touch_each_other(prefetch: int) -> None:
    """Two branches over one node of another library came to 61 items instead of 50."""
    dataset = shuffled(37)
    one, other = loader_of(dataset, prefetch=prefetch), loader_of(dataset, prefetch=prefetch)
    pairs = list(zip(one, other, strict=True))
    assert [a for a, _ in pairs] == [b for _, b in pairs] == batches_of(dataset, 4)


def test_skipped_batches_are_steps(prefetch: int) -> None:
    everything = batches_of(shuffled(37), 4, runs=2)
    loader = loader_of(prefetch=prefetch)
    run = iter(loader)
    next(run)
    loader.skip_batches(3)
    assert loader.step == 4
    assert next(run) == everything[4]
    assert loader.state_dict()["position"] == 20
    loader.skip_batches(1000)
    assert loader.step == 10
    assert list(run) == []
    assert list(loader) == everything[10:]
    assert loader.report()["skipped"] == 3 + 5
    assert loader.report()["batches"] == 2 + 10
    assert loader.report()["records"] == 8 + 37


def test_skipping_is_part_of_the_state() -> None:
    loader = loader_of(prefetch=0)
    loader.skip_batches(6)
    again = loader_of(prefetch=0)
    again.load_state_dict(loader.state_dict())
    assert list(again) == list(loader) == batches_of(shuffled(37), 4)[6:]


def test_steps_bound_a_run_over_endless_data(prefetch: int) -> None:
    endless = sk.mix([shuffled(10), shuffled(30)], weights=[1, 2], seed=1, stop="never")
    loader = loader_of(endless, steps=3, prefetch=prefetch)
    flat = list(endless.take(100))
    assert len(loader) == 3
    assert list(loader) == [flat[at : at + 4] for at in (0, 4, 8)]
    assert list(loader) == [flat[at : at + 4] for at in (12, 16, 20)]
    assert loader.epoch == 0


def test_endless_data_has_no_length_and_no_epochs() -> None:
    endless = sk.mix([shuffled(10)], weights=[1], seed=1, stop="never")
    with pytest.raises(TypeError, match="steps="):
        len(loader_of(endless))
    with pytest.raises(sk.errors.EndlessDataset, match="epochs=2"):
        loader_of(endless, epochs=2)
    with pytest.raises(sk.errors.EndlessDataset, match="epoch=1"):
        loader_of(endless).set_epoch(1)
    loader_of(endless).set_epoch(0)


def test_without_a_batch_size_records_come_as_they_are(prefetch: int) -> None:
    loader = sk.Loader(shuffled(5), batch_size=None, prefetch=prefetch)
    assert list(loader) == list(shuffled(5))
    assert len(loader) == 5


def test_an_empty_dataset_has_no_batches(prefetch: int) -> None:
    loader = loader_of(sk.from_sequence([]), prefetch=prefetch)
    assert list(loader) == list(loader) == []
    assert len(loader) == 0
    assert loader.step == 0


def test_records_of_none_are_no_end(prefetch: int) -> None:
    """Another library takes None for the end and gives [3, 1, 2] of these."""
    records = [1, None, 2, 3, None, 4]
    loader = loader_of(sk.from_sequence(records).shuffle(seed=2), batch_size=1, prefetch=prefetch)
    got = [batch[0] for batch in loader]
    assert sorted(map(str, got)) == sorted(map(str, records))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, r"batch_size must be at least 1 \(got 0\)"),
        ({"batch_size": 2.0}, TypeError, r"batch_size must be an integer \(got 2.0"),
        ({"batch_size": True}, TypeError, r"batch_size must be an integer \(got True"),
        ({"global_batch_size": 0}, ValueError, r"global_batch_size must be at least 1 \(got 0\)"),
        ({"end": "keep"}, ValueError, r"end must be 'short', 'drop' or 'pad' \(got 'keep'\)"),
        ({"epochs": 0}, ValueError, r"epochs must be at least 1 \(got 0\)"),
        ({"steps": 0}, ValueError, r"steps must be at least 1 \(got 0\)"),
        ({"prefetch": -1}, ValueError, r"prefetch must be at least 0 \(got -1\)"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        loader_of(**arguments)
    assert isinstance(raised.value, sk.SeekableError)


def test_bad_arguments_of_methods_are_named() -> None:
    with pytest.raises(TypeError, match=r"takes a Dataset or a Stream \(got list\)"):
        sk.Loader([1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"count must be at least 0 \(got -1\)"):
        loader_of().skip_batches(-1)
    with pytest.raises(ValueError, match=r"epoch must be at least 0 \(got -1\)"):
        loader_of().set_epoch(-1)


def test_a_loader_shows_what_it_is() -> None:
    loader = loader_of(prefetch=0)
    next(iter(loader))
    assert repr(loader).startswith("<Loader at step 1: batches of 4")
    assert repr(loader.dataset) in repr(loader)


def test_fewer_epochs_on_resume_repeat_nothing_and_lose_nothing(prefetch: int) -> None:
    loader = loader_of(epochs=3, prefetch=prefetch)
    run = iter(loader)
    delivered = [next(run) for _ in range(12)]  # 48 records: into epoch 1
    again = loader_of(epochs=1, prefetch=prefetch)
    again.load_state_dict(loader.state_dict())
    rest = [*again, *again]
    flat = [record for batch in [*delivered, *rest] for record in batch]
    dataset = shuffled(37)
    assert flat == [*dataset.epoch(0), *dataset.epoch(1), *dataset.epoch(2)]


def test_an_epoch_beyond_64_bits_is_refused() -> None:
    loader = loader_of()
    with pytest.raises(sk.errors.InvalidArgument, match=r"epoch must lie below 2\*\*63 / 37"):
        loader.set_epoch(2**60)
