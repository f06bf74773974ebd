"""What a state is, when it is taken, and what it may meet when it is loaded."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.loader.flat import batches_of, shuffled

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def loader_of(dataset: sk.Dataset | None = None, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, "prefetch": 0, **arguments}
    return sk.Loader(shuffled(37) if dataset is None else dataset, **given)


def after(batches: int, **arguments: Any) -> dict[str, Any]:
    loader = loader_of(**arguments)
    run = iter(loader)
    for _ in range(batches):
        next(run)
    return loader.state_dict()


def edited(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a state that was changed on purpose, without the digest of what it was."""
    return {key: value for key, value in (state | changes).items() if key != "check"}


def test_a_state_is_small_and_plain() -> None:
    state = after(5)
    assert state == {
        "seekable": 1,
        "fingerprint": shuffled(37).fingerprint,
        "step": 5,
        "epoch": 0,
        "position": 20,
        "check": state["check"],
        "pipeline": '{"files":[],"nodes":[{"kind":"sequence","length":37,"type":"builtins.range"},'
        '{"kind":"shuffle","of":[0],"seed":3}]}',
    }
    assert json.loads(json.dumps(state)) == state


def test_a_state_of_a_very_long_run_has_less_than_200_bytes() -> None:
    dataset = shuffled(10**12)
    loader = loader_of(dataset, steps=10**9, epochs=10**5, batch_size=4096)
    loader.set_epoch(10**5)
    loader.skip_batches(10**9 - 1)
    assert len(json.dumps(loader.state_dict(rows=False))) < 200


def test_only_delivered_batches_count() -> None:
    loader = loader_of(prefetch=5)
    run = iter(loader)
    assert loader.state_dict()["step"] == 0
    next(run)
    assert loader.state_dict()["position"] == 4
    loader.close()


def test_each_state_is_a_new_one() -> None:
    loader = loader_of()
    loader.state_dict()["step"] = 99
    assert loader.state_dict()["step"] == 0


def test_loading_does_not_change_the_state_and_may_be_repeated() -> None:
    """Another library changes its argument, so that it loads only once."""
    state = after(3)
    kept = json.dumps(state)
    for _ in range(3):
        loader = loader_of()
        loader.load_state_dict(state)
        loader.load_state_dict(state)
        assert list(loader) == batches_of(shuffled(37), 4)[3:]
        assert json.dumps(state) == kept


def test_an_empty_state_changes_nothing() -> None:
    loader = loader_of()
    run = iter(loader)
    next(run)
    before = loader.state_dict()
    loader.load_state_dict({})
    assert loader.state_dict() == before
    assert next(run) == batches_of(shuffled(37), 4)[1]


@pytest.mark.parametrize("document", [None, [], "", 0, {"seekable": 3}, {"step": 1}])
def test_what_is_no_state_is_refused_alike(document: Any) -> None:
    """By a loader over a dataset, by one over a stream, and by a stream's iterator."""
    stream = shuffled(37).stream()
    takers: list[Any] = [loader_of(), sk.Loader(stream), iter(stream)]
    for takes in takers:
        with pytest.raises(
            sk.errors.CorruptState, match=r"a state (is what state_dict|must have 'seekable': 1)"
        ):
            takes.load_state_dict(document)


def test_an_empty_state_changes_no_iterator_of_a_stream() -> None:
    iterator = iter(shuffled(37).stream())
    next(iterator)
    before = iterator.state_dict()
    iterator.load_state_dict({})
    assert iterator.state_dict() == before
    assert next(iterator) == shuffled(37)[1]


def test_a_state_loads_before_and_after_iter_and_into_a_live_iterator() -> None:
    state, rest = after(3), batches_of(shuffled(37), 4)[3:]
    before = loader_of()
    before.load_state_dict(state)
    assert list(iter(before)) == rest
    behind = loader_of(prefetch=2)
    run = iter(behind)
    behind.load_state_dict(state)
    assert list(run) == rest
    live = loader_of(prefetch=2)
    run = iter(live)
    for _ in range(7):
        next(run)
    live.load_state_dict(state)
    assert list(run) == rest


@pytest.mark.parametrize("batches", [9, 10])
def test_a_state_at_the_end_ends_at_once_until_the_end_was_seen(batches: int) -> None:
    """Ten batches are a run: after the tenth, the end was not seen yet."""
    loader = loader_of()
    loader.load_state_dict(after(batches))
    assert len(list(loader)) == 10 - batches
    assert loader.epoch == 1
    seen = loader_of()
    list(seen)
    following = loader_of()
    following.load_state_dict(seen.state_dict())
    assert list(following) == batches_of(shuffled(37), 4, runs=2)[10:]


def test_a_second_resume_is_as_exact_as_the_first() -> None:
    everything = batches_of(shuffled(37), 4, runs=3)
    got: list[Any] = []
    state: dict[str, Any] = {}
    while len(got) < 28:
        loader = loader_of(prefetch=1)
        loader.load_state_dict(json.loads(json.dumps(state)))
        for batch in loader:
            got.append(batch)
            if len(got) % 3 == 0:
                break
        state = loader.state_dict()
    assert got == everything[: len(got)]


def test_end_and_epochs_hold_as_given_on_resume() -> None:
    state = after(3)
    flat = [*shuffled(37), *shuffled(37).epoch(1)]
    drop = loader_of(end="drop")
    drop.load_state_dict(state)
    assert list(drop) == batches_of(shuffled(37), 4)[3:9]
    longer = loader_of(epochs=2)
    longer.load_state_dict(state)
    assert list(longer) == [flat[at : at + 4] for at in range(12, 74, 4)]
    pad = loader_of(end="pad")
    pad.load_state_dict(state)
    assert list(pad)[-1] == [flat[36], *flat[:3]]


@pytest.mark.parametrize("batch", [1, 3, 5, 24, 25, 100])
def test_the_batch_size_may_change_on_resume(batch: int) -> None:
    loader = loader_of(batch_size=batch)
    loader.load_state_dict(after(3))
    flat = list(shuffled(37))
    assert list(loader) == [flat[at : at + batch] for at in range(12, 37, batch)]
    assert list(loader) == batches_of(shuffled(37), batch, runs=2)[-len(loader) :]


def test_prefetch_and_collate_may_change_on_resume() -> None:
    loader = loader_of(prefetch=3, collate=tuple)
    loader.load_state_dict(after(3))
    assert list(loader) == [tuple(batch) for batch in batches_of(shuffled(37), 4)[3:]]


@pytest.mark.parametrize(
    "other",
    [
        shuffled(37, seed=4),
        shuffled(38),
        shuffled(37).take(36),
        shuffled(37).map(abs),
        sk.from_sequence(range(37)),
        sk.from_sequence(list(range(37))).shuffle(seed=3),
        sk.from_sequence(range(37), version=2).shuffle(seed=3),
    ],
    ids=["seed", "length", "take", "map", "no shuffle", "type", "version"],
)
def test_a_state_of_another_pipeline_is_refused(other: sk.Dataset) -> None:
    """Another library loads a state of file A into file B, and of two sources into three."""
    loader = loader_of(other)
    before = loader.state_dict()
    with pytest.raises(sk.StateMismatch, match="another pipeline"):
        loader.load_state_dict(after(3))
    assert loader.state_dict() == before


def test_a_failed_load_leaves_a_live_iterator_where_it_is() -> None:
    loader = loader_of(prefetch=2)
    run = iter(loader)
    next(run)
    with pytest.raises(sk.StateMismatch):
        loader.load_state_dict(edited(after(3), fingerprint="xxh3:0"))
    assert list(run) == batches_of(shuffled(37), 4)[1:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seekable": 3}, r"'seekable': 1 \(got 3\)"),
        ({"seekable": None}, r"\(got None\)"),
        ({"fingerprint": 3}, r"'fingerprint' must be a string \(got 3\)"),
        ({"position": 2**63}, r"'position' must be an integer of at least 0 and below 2\*\*63 \(got 9223"),
        ({"step": -1}, r"'step' must be an integer of at least 0 .*\(got -1\)"),
        ({"epoch": True}, r"'epoch' must be an integer of at least 0 .*\(got True\)"),
        ({"position": 1.5}, r"'position' must be an integer of at least 0 .*\(got 1.5\)"),
        ({"position": None}, r"'position' .*\(got None\)"),
        ({"began": "1"}, r"'began' .*\(got '1'\)"),
        ({"epoch": 5}, r"in its epoch.*position 12, epoch 5"),
    ],
)
def test_what_is_no_state_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(sk.errors.CorruptState, match=message):
        loader_of().load_state_dict(edited(after(3), **change))


@pytest.mark.parametrize("key", ["step", "epoch", "position"])
def test_a_digit_that_was_changed_is_found(key: str) -> None:
    state = after(3)
    with pytest.raises(sk.errors.CorruptState, match=r"was changed after it was taken.* leave 'check' out"):
        loader_of().load_state_dict({**state, key: state[key] ^ 4})


def test_there_are_two_ways_to_resume() -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"resume must be 'exact' or 'rows' \(got 'records'\)"
    ):
        loader_of().load_state_dict(after(3), resume="records")  # type: ignore[arg-type]


def test_a_schedule_may_change_later_than_the_state() -> None:
    def scheduled(start: int, weights: list[int]) -> sk.Dataset:
        return sk.mix([shuffled(10), shuffled(99)], weights=[(0, [1, 2]), (start, weights)], seed=1)

    state = after(12, dataset=scheduled(64, [2, 1]))
    other = scheduled(128, [5, 1])
    loader = loader_of(other)
    loader.load_state_dict(state)
    run = iter(loader)
    assert [next(run) for _ in range(3)] == [other[list(range(at, at + 4))] for at in (48, 52, 56)]
    assert other[list(range(48))] == scheduled(64, [2, 1])[list(range(48))]
    with pytest.raises(sk.StateMismatch, match="schedule was"):
        loader_of(other).load_state_dict(after(17, dataset=scheduled(64, [2, 1])))


@pytest.mark.parametrize(("start", "first"), [(100, 128), (101, 128), (120, 128)])
def test_a_block_of_draws_that_has_begun_keeps_its_weights(start: int, first: int) -> None:
    """Weights from the state's own position on would lose records of a source, and repeat some of another."""

    def scheduled(start: int) -> sk.Dataset:
        return sk.mix([shuffled(500), shuffled(700)], weights=[(0, [1, 1]), (start, [9, 1])], seed=3)

    state = after(25, dataset=scheduled(10**6))
    with pytest.raises(
        sk.StateMismatch, match=rf"position 100 of the mixture of 2 .* from position {first} on"
    ):
        loader_of(scheduled(start)).load_state_dict(state)
    loader = loader_of(scheduled(first))
    loader.load_state_dict(state)
    run = iter(loader)
    found = [record for _ in range(20) for record in next(run)]
    assert found == scheduled(first)[list(range(100, 180))]
    assert scheduled(first)[list(range(100))] == scheduled(10**6)[list(range(100))]


def test_set_epoch_of_the_restored_epoch_changes_nothing() -> None:
    """Another library silently ignores set_epoch after a restore; many training loops call it each epoch."""
    everything = batches_of(shuffled(37), 4, runs=3)
    loader = loader_of()
    loader.load_state_dict(after(3))
    got = []
    for epoch in range(3):
        loader.set_epoch(epoch)
        got += list(loader)
    assert got == everything[3:]
    loader.set_epoch(1)
    assert list(loader) == everything[10:20]
    assert loader.epoch == 2


def test_seeds_that_agree_in_their_last_32_bits_are_not_the_same() -> None:
    assert list(shuffled(37, seed=1)) != list(shuffled(37, seed=2**32 + 1))
    with pytest.raises(sk.StateMismatch):
        loader_of(shuffled(37, seed=2**32 + 1)).load_state_dict(after(3, dataset=shuffled(37, seed=1)))


def test_a_file_whose_name_is_no_utf8_has_states_too(tmp_path: Path) -> None:
    data = tmp_path / os.fsdecode(b"data \xff")
    data.mkdir()
    (data / os.fsdecode(b"caf\xe9.txt")).write_text(
        "".join(f"{row}\n" for row in range(20)), encoding="utf-8"
    )

    def made(seed: int = 1) -> sk.Loader:
        return sk.Loader(sk.open(data).shuffle(seed=seed), batch_size=3, collate=list, prefetch=0)

    loader = made()
    run = iter(loader)
    next(run)
    sk.save_state(tmp_path / "states", loader)
    state, rest = json.loads(json.dumps(loader.state_dict())), list(run)
    for resumed in (made(), made()):
        resumed.load_state_dict(state)
        assert list(resumed) == rest
    resumed = made()
    assert sk.load_state(tmp_path / "states", resumed)
    assert list(resumed) == rest
    by_rows = made(seed=2)
    assert sk.load_state(tmp_path / "states", by_rows, resume="rows")
    left = sorted(row for batch in rest for row in batch)
    assert sorted(row for batch in by_rows for row in batch) == left
    with pytest.raises(sk.StateMismatch, match="seed was 1, is 2"):
        made(seed=2).load_state_dict(state)


@pytest.mark.parametrize("name", ["batch_size", "collate", "world_size", "dataset"])
def test_arguments_cannot_be_changed_afterwards(name: str) -> None:
    loader = sk.Loader(sk.from_sequence(range(9)), batch_size=2)
    with pytest.raises(
        sk.errors.InvalidArgument, match=rf"loader\.{name} = 64\): make another one with {name}=64"
    ):
        setattr(loader, name, 64)
    loader.note = "mine"
    assert len(loader) == 5
