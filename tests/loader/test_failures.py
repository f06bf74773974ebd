"""An error in the making of a batch is raised at that batch, and is never taken for the end of a run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loader.flat import batches_of, shuffled

import seekable as sk

BAD = 17


def picky(record: int) -> int:
    if record == BAD:
        message = f"cannot take {record}"
        raise LookupError(message)
    return record


def stops(record: int) -> int:
    if record == BAD:
        raise StopIteration
    return record


def interrupts(record: int) -> int:
    if record == BAD:
        raise KeyboardInterrupt
    return record


def picky_collate(records: list[int]) -> list[int]:
    return [picky(record) for record in records]


def stopping_collate(records: list[int]) -> list[int]:
    return [stops(record) for record in records]


WANTED = batches_of(shuffled(37), 4)
BEFORE = next(i for i, batch in enumerate(WANTED) if BAD in batch)


@pytest.mark.parametrize("prefetch", [0, 1, 4])
@pytest.mark.parametrize(
    ("dataset", "arguments", "error"),
    [
        (shuffled(37).map(picky), {}, LookupError),
        (shuffled(37), {"collate": picky_collate}, LookupError),
        # In the generator that makes batches a StopIteration would look like its end.
        (shuffled(37).map(stops), {}, RuntimeError),
        (shuffled(37), {"collate": stopping_collate}, RuntimeError),
        (shuffled(37).map(interrupts), {}, KeyboardInterrupt),
    ],
    ids=["map", "collate", "stop in map", "stop in collate", "interrupt in map"],
)
def test_an_error_is_raised_at_its_batch_and_does_not_end_the_run(
    dataset: sk.Dataset, arguments: dict[str, Any], error: type[BaseException], prefetch: int
) -> None:
    given: dict[str, Any] = {"collate": list, **arguments}
    loader = sk.Loader(dataset, batch_size=4, prefetch=prefetch, **given)
    run = iter(loader)
    assert [next(run) for _ in range(BEFORE)] == WANTED[:BEFORE]
    for _ in range(3):
        with pytest.raises(error):
            next(run)
        assert (loader.step, loader.epoch) == (BEFORE, 0)
    state = loader.state_dict()
    # Another pipeline of the same name goes on with the very batch that failed.
    whole = sk.Loader(shuffled(37), batch_size=4, collate=list, prefetch=prefetch)
    del state["check"]
    whole.load_state_dict({**state, "fingerprint": shuffled(37).fingerprint})
    assert list(whole) == WANTED[BEFORE:]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_that_fails_can_be_skipped(prefetch: int) -> None:
    loader = sk.Loader(shuffled(37).map(picky), batch_size=4, collate=list, prefetch=prefetch)
    run = iter(loader)
    got = []
    while True:
        try:
            got.append(next(run))
        except LookupError:
            loader.skip_batches(1)
        except StopIteration:
            break
    assert got == WANTED[:BEFORE] + WANTED[BEFORE + 1 :]
    assert loader.epoch == 1
    assert loader.report()["skipped"] == 1


def test_the_error_says_which_record_it_was() -> None:
    with pytest.raises(LookupError) as raised:
        list(sk.Loader(shuffled(37).map(picky), batch_size=4, prefetch=2))
    position = list(shuffled(37)).index(BAD)
    assert any(f"position {position}" in note for note in raised.value.__notes__)
    assert any("picky" in note for note in raised.value.__notes__)


def test_dicts_that_do_not_agree_are_an_error_at_their_batch() -> None:
    records: list[dict[str, int]] = [{"a": 1}, {"a": 2}, {"a": 3}, {"b": 4}]
    loader = sk.Loader(sk.from_sequence(records), batch_size=2)
    run = iter(loader)
    next(run)
    with pytest.raises(sk.errors.InvalidArgument, match="same keys"):
        next(run)
    assert loader.step == 1
