"""Failures that are known of other loaders, each with a test that it is none of this one.

docs/design/known-failures.md is this list for people; tests/docs holds the two together.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.loader.flat import batches_of, shuffled
from tests.thrift import ALL

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.loader.arguments import WorkerType

by_workers = pytest.mark.parametrize("workers", [0, 2])

WORKER_TYPE: WorkerType = "process" if ALL else "thread"
"""Threads pass the same messages, and start at once."""


@contextlib.contextmanager
def loading(dataset: sk.Dataset, **given: Any) -> Iterator[sk.Loader]:
    given["workers"] = sk.Workers(given.get("workers", 0), type=WORKER_TYPE)
    with sk.Loader(dataset, **{"batch_size": 4, "collate": list, **given}) as loader:
        yield loader


def state_after(dataset: sk.Dataset, batches: int, **given: Any) -> dict[str, Any]:
    """Return the state after some batches of a loader that is gone, as it comes back from a file."""
    with loading(dataset, **given) as loader:
        run = iter(loader)
        for _ in range(batches):
            next(run)
        state: dict[str, Any] = json.loads(json.dumps(loader.state_dict(rows=False)))
        return state


def resumed(dataset: sk.Dataset, state: dict[str, Any], **given: Any) -> list[Any]:
    """Return the batches of one run that begins at a state."""
    with loading(dataset, **given) as loader:
        loader.load_state_dict(state)
        return list(loader)


def flat(loader: sk.Loader) -> list[Any]:
    return [record for batch in loader for record in batch]


class Counted:
    """Numbers that know which of them were asked for."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, row: int) -> int:
        self.asked.append(row)
        return row


@by_workers
def test_torchdata_1437_a_loaded_state_is_the_state(workers: int) -> None:
    """In torchdata #1437 the state right after loading was another than the one that was loaded."""
    with loading(shuffled(10), workers=workers) as first, loading(shuffled(10), workers=workers) as second:
        states = [first.state_dict()]
        for _ in range(2):
            states += [first.state_dict() for _ in first]
            states.append(first.state_dict())
        assert len(states) == 1 + 2 * (3 + 1)
        for state in states:
            second.load_state_dict(state)
            assert second.state_dict() == state
            iter(second)
            assert second.state_dict() == state


@by_workers
def test_torchdata_1439_no_epoch_is_dropped(workers: int) -> None:
    """In torchdata #1439 the epoch after a state that was taken between epochs was empty or cut short."""
    with loading(shuffled(10), workers=workers) as whole, loading(shuffled(10), workers=workers) as first:
        wanted = [list(whole) for _ in range(4)]
        assert [list(first) for _ in range(2)] == wanted[:2]
        state = first.state_dict()
    with loading(shuffled(10), workers=workers) as second:
        second.load_state_dict(state)
        assert [list(second) for _ in range(2)] == wanted[2:]


def test_torchdata_1317_states_do_not_grow(tmp_path: Path) -> None:
    """In torchdata #1317 a step took seconds: the state that went with each of them was large."""
    sizes = set()
    for n in (1_000, 1_000_000_000):
        with loading(sk.from_sequence(range(n)).shuffle(seed=1)) as loader:
            for position in (400, 900):
                del (state := loader.state_dict())["check"]
                loader.load_state_dict({**state, "step": 100, "position": position})
                next(iter(loader))
                path = sk.save_state(tmp_path, loader)
                with open(path, "rb") as file:
                    sizes.add((len(json.dumps(loader.state_dict(rows=False))), len(file.read())))
    [(size, size_on_disk)] = sizes
    assert max(size, size_on_disk) < 200


def test_torchdata_1548_asking_for_a_state_does_not_begin_a_run() -> None:
    """In torchdata #1548 a state that was loaded after state_dict() had been called was not respected."""
    state = state_after(shuffled(37), 5)
    with loading(shuffled(37)) as loader:
        loader.state_dict()
        loader.load_state_dict(state)
        assert list(loader) == batches_of(shuffled(37), 4)[5:]


@by_workers
def test_datasets_7447_epochs_after_a_resume_are_whole(workers: int) -> None:
    """In datasets #7447 all epochs after a resume were as short as the first, with persistent workers."""
    wanted = batches_of(shuffled(37), 4, runs=3)
    state = state_after(shuffled(37), 7, workers=workers)
    with loading(shuffled(37), workers=workers) as loader:
        loader.load_state_dict(state)
        assert [list(loader) for _ in range(3)] == [wanted[7:10], wanted[10:20], wanted[20:]]


@by_workers
def test_datasets_5454_skipped_ranges_are_remembered(workers: int) -> None:
    """In datasets #5454 people ask to leave out batches after a loss spike, and for states that know it."""
    wanted = batches_of(shuffled(60), 4)
    with loading(shuffled(60), workers=workers) as loader:
        run = iter(loader)
        got = [next(run)]
        loader.skip_batches(2)
        got.append(next(run))
        loader.skip_batches(3)
        state = loader.state_dict()
    assert state["step"] == 7
    assert [*got, *resumed(shuffled(60), state, workers=workers)] == [wanted[0], wanted[3], *wanted[7:]]


@by_workers
def test_accelerate_2823_the_epoch_in_hand_goes_on(workers: int) -> None:
    """In accelerate #2823 a run that was interrupted in epoch n went on in the order of epoch n + 1."""
    with loading(shuffled(37), workers=workers) as first:
        list(first)
        run = iter(first)
        begun = [record for _ in range(3) for record in next(run)]
        state = first.state_dict()
    with loading(shuffled(37), workers=workers) as second:
        second.load_state_dict(state)
        # What training loops call, and what had no effect there.
        second.set_epoch(1)
        assert begun + flat(second) == list(shuffled(37).epoch(1))
        second.set_epoch(5)
        assert flat(second) == list(shuffled(37).epoch(5))


@by_workers
def test_accelerate_3996_epochs_after_a_resume_have_their_own_order(workers: int) -> None:
    """In accelerate #3996 the epoch was not saved: a resumed run had the order of epoch 0 again."""
    wanted = batches_of(shuffled(37), 4, runs=4)
    with loading(shuffled(37), workers=workers) as first:
        assert [*first, *first] == wanted[:20]
        states = {20: first.state_dict()}
        run = iter(first)
        next(run)
        states[21] = first.state_dict()
    with loading(shuffled(37), workers=workers) as second:
        for at, state in states.items():
            second.load_state_dict(state)
            assert [*second, *second] == wanted[at:]


@pytest.mark.frameworks(name="torch")
def test_transformers_31441_a_loader_is_stateful() -> None:
    """In transformers #31441 people ask for loaders with a state, where the trainer replays what has come."""
    from torch.distributed.checkpoint.stateful import Stateful

    with loading(shuffled(37)) as loader:
        assert isinstance(loader, Stateful)
    for cut in range(11):
        rest = resumed(shuffled(37), state_after(shuffled(37), cut))
        assert rest == batches_of(shuffled(37), 4)[cut:]


def test_pytorch_36650_restoring_reads_nothing_again() -> None:
    """In pytorch #36650 people ask to go on within an epoch without reading again what came before."""
    n = 10**12
    items = Counted(n)
    dataset = sk.from_sequence(items).shuffle(seed=1)
    with loading(dataset, prefetch=0) as loader:
        del (state := loader.state_dict())["check"]
        far = {**state, "step": n // 5, "position": n // 5 * 4}
        loader.load_state_dict(far)
        run = iter(loader)
        assert items.asked == []
        batch = next(run)
        assert sorted(items.asked) == sorted(batch)
        assert len(batch) == 4


@pytest.mark.parametrize("n", [60, 8])
def test_nemo_rl_2519_a_state_of_other_data_is_refused(n: int) -> None:
    """In NeMo-RL #2519 a state of another dataset skipped as many records of this one, or ended the run."""
    state = state_after(shuffled(37), 5)
    with loading(shuffled(n)) as loader:
        with pytest.raises(sk.StateMismatch):
            loader.load_state_dict(state)
        assert list(loader) == batches_of(shuffled(n), 4)


@by_workers
def test_kempnerforge_57_a_second_resume_in_an_epoch_counts_from_its_start(workers: int) -> None:
    """In KempnerForge #57 a second state in one epoch counted from the first resume on."""
    got: list[Any] = []
    state: dict[str, Any] = {}
    for life in range(4):
        with loading(shuffled(100), workers=workers) as loader:
            loader.load_state_dict(state)
            run = iter(loader)
            got += [next(run) for _ in range(5)]
            state = json.loads(json.dumps(loader.state_dict()))
        assert state["step"] == 5 * (life + 1)
    assert got == batches_of(shuffled(100), 4)[:20]


@by_workers
def test_prime_rl_3299_a_state_loaded_after_iter_counts(workers: int) -> None:
    """In prime-rl #3299 iter() came before load_state_dict(), and workers began at the first record."""
    wanted = batches_of(shuffled(37), 4)
    state = state_after(shuffled(37), 5)
    with loading(shuffled(37), workers=workers) as loader:
        run = iter(loader)
        loader.load_state_dict(state)
        assert next(run) == wanted[5]
        # There, states after the resume stayed what had been loaded.
        assert loader.state_dict()["step"] == 6
        assert list(run) == wanted[6:]


@by_workers
def test_determined_6708_a_loader_may_be_made_before_the_state_is_known(workers: int) -> None:
    """In determined #6708 what to skip was asked when the loader was made, before the state was there."""
    with loading(shuffled(37), workers=workers) as loader:
        assert len(loader) == 10
        state = state_after(shuffled(37), 5)
        loader.load_state_dict(state)
        assert list(loader) == batches_of(shuffled(37), 4)[5:]


def test_streaming_593_states_have_room_and_may_be_loaded_again() -> None:
    """In streaming #593 states must fit a page of memory; before it, all had to have the same length."""
    sources = {f"source-{i}": shuffled(20, seed=i) for i in range(300)}
    dataset = sk.mix(sources, weights=[(0, [1] * 300), (500, [2, *[1] * 299])], seed=1)
    states = [state_after(dataset, batches, steps=10**6) for batches in (0, 3, 200)]
    with loading(dataset) as loader:
        wanted = [record for batch, _ in zip(loader, range(201), strict=False) for record in batch]
        for state in [*states, *reversed(states)]:
            assert len(json.dumps(state)) < 200
            loader.load_state_dict(state)
            assert next(iter(loader)) == wanted[state["position"] :][:4]


def test_lhotse_ranks_share_one_permutation() -> None:
    """In Lhotse ranks without a seed drew permutations of their own, and 23 of 80 records never came."""
    with pytest.raises(TypeError, match="seed"):
        sk.from_sequence(range(80)).shuffle()  # type: ignore[call-arg]
    came: list[int] = []
    for rank in range(4):
        with loading(shuffled(80), batch_size=1, global_batch_size=8, rank=rank, world_size=4) as loader:
            came += flat(loader)
    assert sorted(came) == list(range(80))


@by_workers
def test_lhotse_each_epoch_is_another_order(workers: int) -> None:
    """In Lhotse an indexed shuffle repeated the same order in every epoch."""
    with loading(shuffled(80), workers=workers) as loader:
        epochs = [flat(loader) for _ in range(5)]
    assert len(set(map(tuple, epochs))) == 5
    assert all(sorted(epoch) == list(range(80)) for epoch in epochs)


def test_lhotse_a_state_of_a_mixture_survives_json() -> None:
    """In Lhotse the state of a multiplexer could not be loaded from JSON, and was 7.6 kB of it."""
    dataset = sk.mix([shuffled(37), shuffled(50)], weights=[0.3, 0.7], seed=1)
    whole = resumed(dataset, {})
    for cut in range(len(whole) + 1):
        state = state_after(dataset, cut)
        assert len(json.dumps(state)) < 200
        assert resumed(dataset, state) == whole[cut:]


def test_lhotse_a_stale_index_is_noticed(tmp_path: Path) -> None:
    """In Lhotse a line appended after indexing was never seen, and offsets of another file were trusted."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n{"id": 2}\n')
    texts = [
        '{"id": 1}\n{"id": 2}\n{"id": 3}\n',
        '{"id": 7}\n{"id": 8}\n{"id": 9}\n',
        '{"id": 1234567890}\n{"id": 0}\n\n',
    ]
    for second, text in enumerate(texts, start=1):
        before = sk.open(str(path))
        assert list(before) == [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(text)
        # Clocks of file systems can be coarse.
        os.utime(path, (second, second))
        with pytest.raises(sk.IndexStale, match=r"a\.jsonl"):
            list(before)
    assert list(sk.open(str(path))) == [{"id": 1234567890}, {"id": 0}]


def test_lhotse_another_pipeline_is_noticed(tmp_path: Path) -> None:
    """In Lhotse a state of one file loaded into another, of two sources into three, of shuffled into not."""
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"{name}": {i}}}\n' for i in range(40)))
    one, other = (sk.open(str(tmp_path / f"{name}.jsonl")) for name in "ab")
    pairs = [
        (one, other),
        (one.shuffle(seed=1), one),
        (one.shuffle(seed=1), one.shuffle(seed=2)),
        (sk.mix([one, other], seed=1), sk.mix([one, other, other], weights=[1, 2, 3], seed=9)),
        (sk.mix([one, other], weights=[1, 1], seed=1), sk.mix([one, other], weights=[1, 2], seed=1)),
    ]
    for saved, loaded in pairs:
        with loading(loaded) as loader, pytest.raises(sk.StateMismatch):
            loader.load_state_dict(state_after(saved, 3))


def test_lhotse_one_source_may_be_in_two_branches() -> None:
    """In Lhotse one source in two branches had one cursor: a restored run gave 61 records instead of 50."""
    shared = shuffled(25)
    dataset = sk.concat([shared.map(str), shared.map(float)])
    whole = batches_of(dataset, 4)
    assert sum(map(len, whole)) == 50
    assert all(resumed(dataset, state_after(dataset, cut)) == whole[cut:] for cut in range(14))
    one, other = iter(shared), iter(shared)
    assert [next(one), next(one)] == [next(other), next(other)]


def test_lhotse_a_record_is_whatever_it_is() -> None:
    """In Lhotse records that hold no attributes (str, bytes, int, tuple, dict, array) were not restored."""

    class Shared:
        pass

    shared = Shared()
    records: list[Any] = ["text", b"bytes", 7, None, (1, 2), {"id": 3}, np.arange(3), [4], 0.5, shared]
    dataset = sk.mix([sk.from_sequence(records).shuffle(seed=1), shuffled(9)], weights=[1, 1], seed=2)
    whole = resumed(dataset, {})
    assert repr(list(itertools.chain(*whole))) == repr(list(dataset))
    for cut in range(len(whole)):
        assert repr(resumed(dataset, state_after(dataset, cut))) == repr(whole[cut:])
    # Nor is anything attached to one object that stands for several records.
    assert resumed(shuffled(8).map(lambda _: shared, version=1), {}) == [[shared] * 4] * 2
    assert vars(shared) == {}


def test_lhotse_seeds_have_64_bits() -> None:
    """In Lhotse seeds 1 and 2**32 + 1 gave the same order."""
    seeds = [1, 2**32 + 1, 2**33 + 1, 2**63 + 1, 2**64 - 1, 2**32 - 1]
    assert len({tuple(shuffled(50, seed=seed)) for seed in seeds}) == len(seeds)
    mixed = [sk.mix([shuffled(40), shuffled(40, seed=9)], weights=[1, 1], seed=seed) for seed in seeds]
    assert len({tuple(dataset) for dataset in mixed}) == len(seeds)


def test_lhotse_ranks_are_not_passed_over_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Lhotse with RANK and WORLD_SIZE set, and nobody told of it, each rank read everything."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(sk.errors.AmbiguousRank, match="RANK=1 of WORLD_SIZE=4"), loading(shuffled(8)):
        pass


def test_lhotse_a_state_may_be_loaded_twice_and_an_epoch_set_after_it() -> None:
    """In Lhotse loading changed the state that it was given, and set_epoch() had no effect after it."""
    state = state_after(shuffled(37), 5)
    given = dict(state)
    with loading(shuffled(37)) as loader:
        for _ in range(2):
            loader.load_state_dict(state)
            assert state == given
            assert list(loader) == batches_of(shuffled(37), 4)[5:]
        loader.load_state_dict(state)
        loader.set_epoch(3)
        assert flat(loader) == list(shuffled(37).epoch(3))
