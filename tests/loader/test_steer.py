"""A run that is steered: its batches, its states at every cut, its workers and ranks, and what is refused."""

from __future__ import annotations

import functools
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from tests.induction import check_every_cut
from tests.order import models

import seekable as sk
from seekable.order.keys import derive, kind_key
from seekable.state.journal import Steer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SIZES = {"a": 40, "b": 47}
BATCH = 12
STEERS: dict[int, dict[str, float]] = {0: {"a": 1, "b": 1}, 3: {"a": 0, "b": 1}, 9: {"a": 0.9, "b": 0.1}}
COUNT = 16


def part(name: str) -> sk.Dataset:
    return sk.from_sequence([f"{name}{row}" for row in range(SIZES[name])], version=name)


@functools.cache
def mixed(seed: int = 1) -> sk.Dataset:
    parts = {name: part(name).shuffle(seed) for name in SIZES}
    return sk.mix(parts, weights={"a": 3, "b": 1}, seed=seed, stop="never")


def nested() -> sk.Dataset:
    return sk.mix({"x": mixed(), "y": part("b")}, weights=[2, 1], seed=5, stop="never")


def make(dataset: sk.Dataset | None = None, **options: Any) -> sk.Loader:
    options = {"global_batch_size": BATCH, "prefetch": 0, "rank": 0, "world_size": 1, **options}
    return sk.Loader(mixed() if dataset is None else dataset, collate=list, **options)


def steered_run(loader: sk.Loader, steers: Mapping[int, Any], count: int = COUNT) -> list[Any]:
    """Deliver some batches, each after the steer that is due; return them, and the state before each."""
    batches = iter(loader)
    delivered = []
    for step in range(count):
        if step in steers:
            loader.steer(steers[step])
        delivered.append(next(batches))
    return delivered


@functools.cache
def in_order(name: str) -> list[str]:
    """Return the records of some epochs of a part, one epoch after the other."""
    return [record for epoch in range(9) for record in part(name).shuffle(1).epoch(epoch)]


def modelled(steers: Mapping[int, Mapping[str, float]], count: int = COUNT) -> list[list[str]]:
    """Return the batches as the draws of a list model."""
    whole = {name: in_order(name) for name in SIZES}
    cuts = [
        (step * BATCH, tuple(round(10 * weight) for weight in weights.values()))
        for step, weights in steers.items()
    ]
    key = derive(kind_key("mix"), 1)
    routed = models.steered(((0, (3, 1)),), cuts, key=key, length=count * BATCH)
    records = [whole[list(SIZES)[source]][row] for source, row in routed]
    return [records[first : first + BATCH] for first in range(0, len(records), BATCH)]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(state))
    return decoded


def test_batches_are_those_of_the_model_and_of_a_loader_with_the_journal() -> None:
    loader = make()
    delivered = steered_run(loader, STEERS)
    assert delivered == modelled(STEERS)
    assert loader.journal == (
        Steer(0, (1, 1), 0, position=0),
        Steer(3, (0, 1), 0, position=3 * BATCH),
        Steer(9, (9, 1), 0, position=9 * BATCH),
    )
    for journal in (
        loader.journal,
        loader.state_dict()["journal"],
        [Steer(each.at, each.weights) for each in loader.journal],
    ):
        again = iter(make(journal=journal))
        assert [next(again) for _ in range(COUNT)] == delivered


@pytest.mark.parametrize("ahead", [{"prefetch": 4}, {"prefetch": 3, "workers": sk.Workers(2, type="thread")}])
def test_batches_made_ahead_are_made_again(ahead: dict[str, Any]) -> None:
    for cut in range(9):
        with make(**ahead) as loader:
            assert steered_run(loader, {cut: {"a": 0, "b": 1}}, 10) == modelled({cut: {"a": 0, "b": 1}}, 10)


def test_batches_that_processes_made_ahead_are_made_again() -> None:
    with make(prefetch=4, workers=2) as loader:
        pids = None
        batches = iter(loader)
        for step in range(COUNT):
            if step in STEERS:
                loader.steer(STEERS[step])
            assert next(batches) == modelled(STEERS)[step]
            workers = [worker.pid for worker in loader._producer._execution.pool.workers]  # type: ignore[union-attr]
            pids = pids or workers
            # The processes live on.
            assert workers == pids


@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_states_resume_at_every_cut_on_any_ranks(world_size: int) -> None:
    expected = modelled(STEERS)
    first = make()
    batches = iter(first)
    for step in range(COUNT):
        if step in STEERS:
            first.steer(STEERS[step])
        state = through_json(first.state_dict())
        ranks = [make(rank=rank, world_size=world_size) for rank in range(world_size)]
        for rank in ranks:
            rank.load_state_dict(state)
            assert [each.at for each in rank.journal] == [at for at in STEERS if at <= step]
        runs = [iter(rank) for rank in ranks]
        # The rest of the journal is said ahead of its steps, on each rank.
        for later in [at for at in STEERS if at > step]:
            for rank in ranks:
                rank.steer(STEERS[later], at=later)
        for following in range(step, min(step + (3 if world_size < 3 else 1), COUNT)):
            shares = [next(run) for run in runs]
            assert [record for row in zip(*shares, strict=True) for record in row] == expected[following]
        assert next(batches) == expected[step]


def test_a_state_without_a_journal_has_the_schema_it_had_and_one_with_it_another() -> None:
    loader = make()
    plain = loader.state_dict(rows=False)
    assert (plain["seekable"], "journal" in plain) == (1, False)
    loader.steer({"a": 1, "b": 1}, at=5)
    state = loader.state_dict(rows=False)
    assert (state["seekable"], state["journal"]) == (2, [{"at": 5, "steer": [1, 1], "mixture": 0}])
    assert state["fingerprint"] == plain["fingerprint"]
    for changed in ({"seekable": 1}, {"journal": [{"at": 6, "steer": [1, 1], "mixture": 0}]}):
        with pytest.raises(sk.errors.CorruptState, match="was changed after it was taken"):
            make().load_state_dict({**state, **changed})


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([{"at": 5, "measure": []}], "an entry of a journal has 'at', and 'steer' or 'exclude'"),
        ([{"at": 5, "exclude": [], "fill": "replace"}], "not a list of excluded rows"),
        ([{"at": 5, "exclude": []}], "'replace' or 'hole' as its 'fill'"),
        ([{"at": -1, "steer": [1], "mixture": 0}], "a step as its 'at'"),
        ([{"at": 1, "steer": [0], "mixture": 0}], "integer weights as its 'steer'"),
        ([{"at": 1, "steer": [1], "mixture": None}], "counts as 'mixture' and 'position'"),
        ({"at": 1}, "a journal is a list of objects"),
    ],
)
def test_a_journal_that_is_none_is_refused(entries: Any, text: str) -> None:
    with pytest.raises(sk.errors.CorruptState, match=text):
        make().load_state_dict(
            {"seekable": 2, "fingerprint": mixed().fingerprint, "step": 0, "epoch": 0, "position": 0}
            | {"journal": entries}
        )


def test_plan_locate_and_when_know_each_piece() -> None:
    loader = make()
    loader.steer({"a": 1, "b": 1}, at=2)
    loader.skip_batches(4)
    loader.steer({"a": 0, "b": 1}, at=7)
    expected = modelled({2: {"a": 1, "b": 1}, 7: {"a": 0, "b": 1}})
    for step in range(COUNT):
        plan = loader.plan(step=step)
        assert [
            f"{place.path[-2]}{place.row}" for place in (record.place for record in plan.records)
        ] == expected[step]
        for place in (plan.records[0].place, plan.records[-1].place):
            steps = [coming.step for coming in loader.when(place.path, place.row, epochs=9)]
            name = f"{place.path[-2]}{place.row}"
            known = [at for at in steps if at < COUNT]
            assert known == [at for at in range(COUNT) for record in expected[at] if record == name]


def test_sources_count_what_the_pieces_delivered() -> None:
    loader = make()
    delivered = [record for batch in steered_run(loader, STEERS) for record in batch]
    counts = {source["name"]: source["consumed"] for source in loader.sources()}
    assert counts == {name: sum(record[0] == name for record in delivered) for name in SIZES}
    again = make()
    again.load_state_dict(loader.state_dict())
    assert again.sources() == loader.sources()


@pytest.mark.parametrize(
    "options", [{"end": "pad"}, {"end": "drop"}, {"epochs": 2}, {"steps": 3}, {"batch_size": None}], ids=str
)
def test_runs_with_epochs_change_at_the_step_and_resume_at_every_cut(options: dict[str, Any]) -> None:
    """Epochs of 40 records: a record that fills a last batch has an old position, and its step decides."""
    single = "batch_size" in options
    options = {"batch_size": None, "global_batch_size": None} if single else options
    cut, dataset = 5, mixed().take(13 if single else 40)
    old = _runs(make(dataset, **options), cut)
    journal = [Steer(cut, (0, 1)), Steer(cut + 3, (1, 1))]
    check_every_cut(lambda: make(dataset, journal=journal, **options))
    loader = make(dataset, **options)
    delivered: list[Any] = []
    while len(delivered) < cut + 4:
        for batch in loader:
            delivered.append(batch)
            for entry in journal:
                if entry.at == len(delivered):
                    loader.steer(entry.weights)
    assert delivered[:cut] == old[:cut]
    assert _runs(make(dataset, journal=journal, **options), cut + 4)[: cut + 4] == delivered[: cut + 4]
    assert options.get("end") == "pad" or {record[0] for record in _records(delivered[cut : cut + 3])} == {
        "b"
    }


def _runs(loader: sk.Loader, count: int) -> list[Any]:
    delivered: list[Any] = []
    while len(delivered) < count:
        delivered += loader
    return delivered


def _records(batches: list[Any]) -> list[str]:
    return [record for batch in batches for record in ([batch] if isinstance(batch, str) else batch)]


def test_single_records_and_skipped_batches_are_steps_too() -> None:
    loader = make(batch_size=None, global_batch_size=None)
    batches = iter(loader)
    head = [next(batches) for _ in range(30)]
    loader.skip_batches(7)
    loader.steer({"a": 0, "b": 1}, at=40)
    tail = [next(batches) for _ in range(23)]
    records = [record for batch in modelled({5: {"a": 3, "b": 1}}, 5) for record in batch]
    key = derive(kind_key("mix"), 1)
    routed = models.steered(((0, (3, 1)),), ((40, (0, 1)),), key=key, length=60)
    assert head == records[:30]
    assert [record[0] for record in tail] == ["ab"[source] for source, _ in routed[37:60]]
    assert loader.journal[0].position == 40


def test_set_epoch_goes_back_and_steps_go_on() -> None:
    loader = make(mixed().take(48))
    assert len(list(loader)) == 4
    loader.steer({"a": 0, "b": 1})
    loader.set_epoch(0)
    # The step is one of epoch 0 again, and has the new weights all the same.
    assert {record[0] for batch in loader for record in batch} == {"b"}
    second = make(mixed().take(48))
    first_epoch = list(second)
    second.steer({"a": 0, "b": 1}, at=6)
    assert [{record[0] for record in batch} for batch in second][2:] == [{"b"}, {"b"}]
    second.set_epoch(0)
    # Epoch 0 lies before the position of the steer.
    assert list(second) == first_epoch


def test_one_of_several_mixtures_is_named() -> None:
    loader = make(nested())
    with pytest.raises(sk.errors.InvalidArgument, match="there are 2 mixtures to steer: say mixture=0"):
        loader.steer([1, 1])
    loader.steer({"a": 0, "b": 1}, mixture="x")
    loader.steer([1, 0], mixture=0)
    assert [each.mixture for each in loader.journal] == [0, 1]
    assert {record[0] for record in next(iter(loader))} == {"b"}
    assert "journal: steer(at=0, weights=[0, 1], mixture=1)\n" in loader.explain()


def test_steers_that_change_nothing_are_no_entries() -> None:
    loader = make()
    loader.steer({"a": 6, "b": 2})
    assert list(loader.journal) == []
    loader.steer({"a": 1, "b": 1}, at=4)
    loader.steer({"a": 2, "b": 2}, at=6)
    assert [each.at for each in loader.journal] == [4]
    # The last word on a step counts.
    loader.steer({"a": 1, "b": 2}, at=4)
    assert [each.weights for each in loader.journal] == [(1, 2)]
    loader.steer({"a": 3, "b": 1}, at=4)
    assert list(loader.journal) == []


def test_what_cannot_be_steered_is_refused() -> None:
    loader = make()
    loader.skip_batches(5)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"at must be a step that was not delivered, from 5 on"
    ):
        loader.steer([1, 1], at=4)
    with pytest.raises(sk.errors.InvalidArgument, match="with several ranks at= must be said"):
        make(rank=0, world_size=2).steer([1, 1])
    with pytest.raises(sk.errors.InvalidArgument, match="mix with stop='never', and bound the run by steps="):
        make(sk.mix([part("a"), part("b")], seed=1)).steer([1, 1])
    with pytest.raises(sk.errors.InvalidArgument, match="mixture of streams"):
        make(part("a").stream()).steer([1, 1])  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match="weights must be as many as what is mixed"):
        make(journal=[Steer(5, (1, 1, 1))])
    with pytest.raises(sk.errors.WrongType, match=r"journal must have the entries of loader\.journal"):
        make(journal=[5])
    with pytest.raises(sk.errors.WrongType, match="journal must be that of another loader"):
        make(journal="now")
    with pytest.raises(sk.errors.InvalidArgument, match="a step as its 'at'"):
        make(journal=[Steer(-1, (1, 1))])


def test_journals_of_loader_and_state_are_joined_or_refused() -> None:
    first = make()
    first.steer([1, 1], at=2)
    first.steer([0, 1], at=9)
    first.skip_batches(5)
    state = through_json(first.state_dict())
    loader = make(journal=[Steer(7, (5, 1))])
    loader.load_state_dict(state)
    assert [(each.at, each.position) for each in loader.journal] == [(2, 24), (7, None), (9, None)]
    for journal, text in [
        (
            [Steer(3, (1, 1))],
            r"the loader has steer\(at=3, .*\), which the state has not; the state has steer\(at=2",
        ),
        ([Steer(9, (1, 1))], r"the loader has steer\(at=9, .* and the state has steer\(at=9"),
    ]:
        other = make(journal=journal)
        with pytest.raises(sk.StateMismatch, match=text):
            other.load_state_dict(state)
        assert other.step == 0
    # Back before the step of an entry: it is still to come.
    loader.skip_batches(4)
    loader.load_state_dict(make().state_dict())
    assert [(each.at, each.position) for each in loader.journal] == [(2, None), (7, None), (9, None)]


def test_ranks_that_were_steered_differently_are_found(tmp_path: Path) -> None:
    for rank in range(2):
        loader = make(rank=rank, world_size=2)
        loader.steer([1, 1], at=2)
        if rank:
            loader.steer([0, 1], at=3)
        loader.skip_batches(4)
        sk.save_state(tmp_path, loader)
    with pytest.raises(
        sk.errors.CorruptState, match=r"the ranks were steered differently: state.* has steer\(at=3"
    ):
        sk.load_state(tmp_path, make())


def test_saved_states_have_the_journal(tmp_path: Path) -> None:
    loader = make()
    steered_run(loader, STEERS, 12)
    sk.save_state(tmp_path, loader)
    again = make()
    assert sk.load_state(tmp_path, again)
    assert again.journal == loader.journal
    batches = iter(again)
    assert [next(batches) for _ in range(4)] == modelled(STEERS)[12:]


def test_by_rows_the_weights_are_those_of_the_new_pipeline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loader = make()
    delivered = [record for batch in steered_run(loader, STEERS, 3) for record in batch]
    sk.save_state(tmp_path, loader)
    for state in (tmp_path, None):
        parts = {name: part(name).shuffle(1) for name in SIZES}
        again = make(sk.mix(parts, weights=[1, 2], seed=8, stop="never"))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            if state is None:
                again.load_state_dict(through_json(loader.state_dict()), resume="rows")
            else:
                sk.load_state(tmp_path, again, resume="rows")
        assert "steer(at=0, weights=[1, 1], mixture=0) of the state's journal are left out" in caplog.text
        assert list(again.journal) == []
        batches = iter(again)
        rest = [record for _ in range(12) for record in next(batches)]
        for name in SIZES:
            own = [record for record in delivered + rest if record[0] == name][: SIZES[name]]
            assert own == list(part(name).shuffle(1))[: len(own)]
        # A run that goes on by rows is steered as any other, and resumes exactly.
        again.steer({"a": 0, "b": 1})
        state_there = through_json(again.state_dict())
        expected = [next(batches) for _ in range(3)]
        assert {record[0] for batch in expected for record in batch} == {"b"}
        third = make(sk.mix(parts, weights=[1, 2], seed=8, stop="never"))
        third.load_state_dict(state_there)
        batches = iter(third)
        assert [next(batches) for _ in range(3)] == expected


def test_a_declared_schedule_cannot_be_changed_any_more_once_a_run_was_steered() -> None:
    def scheduled(weights: list[int]) -> sk.Dataset:
        parts = [part("a"), part("b")]
        return sk.mix(parts, weights=[(0, [1, 1]), (960, weights)], seed=3)

    loader = make(scheduled([1, 2]))
    loader.skip_batches(2)
    make(scheduled([1, 3])).load_state_dict(loader.state_dict())
    loader.steer([5, 1])
    make(scheduled([1, 3])).load_state_dict(loader.state_dict())
    loader.skip_batches(1)
    make(scheduled([1, 2])).load_state_dict(loader.state_dict())
    with pytest.raises(sk.StateMismatch, match="schedule"):
        make(scheduled([1, 3])).load_state_dict(loader.state_dict())


@pytest.mark.parametrize("mutation", ["dropped", "later", "earlier", "other weights", "one rank alone"])
def test_a_wrong_journal_is_found(mutation: str) -> None:
    """Each of these gives other batches, so that the tests of this file see them."""
    entry = Steer(4, (0, 1))
    wrong = {
        "dropped": [],
        "later": [Steer(5, (0, 1))],
        "earlier": [Steer(3, (0, 1))],
        "other weights": [Steer(4, (1, 4))],
        "one rank alone": [],
    }[mutation]
    expected = modelled({4: {"a": 0, "b": 1}}, 8)
    runs = [
        iter(
            make(
                rank=rank,
                world_size=2,
                journal=[entry] if mutation == "one rank alone" and not rank else wrong,
            )
        )
        for rank in range(2)
    ]
    delivered = [
        [record for row in zip(*(next(run) for run in runs), strict=True) for record in row] for _ in range(8)
    ]
    assert delivered != expected
