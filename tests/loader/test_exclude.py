"""Records that are left out of a run from a step on: all others keep their places, in any way of reading."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.induction import check_every_cut

import seekable as sk
from seekable.state.excluded_rows import MOST_INLINE, ExcludedFile, ExcludedRows
from seekable.state.journal import Exclude, Steer

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDS = 60
BATCH = 6
NAME = "<builtins.list a>"
FIRST, SECOND = [3, 8, 9, 41], [5, 8, 59]


def rows_of(rows: Iterable[int]) -> ExcludedRows:
    return ExcludedRows.of([(ExcludedFile(NAME), np.array(list(rows), dtype=np.int64))])


@functools.cache
def data() -> sk.Dataset:
    return sk.from_sequence([f"a{row}" for row in range(RECORDS)], version="a")


def plain() -> sk.Dataset:
    return data().map(str.upper).shuffle(seed=3)


def without(*lists: list[int], fill: Any = "replace") -> sk.Dataset:
    """Return the data from whose start rows are left out."""
    dataset = plain()
    for rows in lists:
        dataset = dataset.without([(NAME, row) for row in rows], fill=fill)
    return dataset


def make(dataset: sk.Dataset | None = None, **options: Any) -> sk.Loader:
    options = {"global_batch_size": BATCH, "prefetch": 0, "rank": 0, "world_size": 1, "epochs": 3, **options}
    return sk.Loader(plain() if dataset is None else dataset, collate=list, **options)


def places(rows: list[int]) -> list[tuple[str, int]]:
    return [(NAME, row) for row in rows]


CUTS = {4: FIRST, 13: SECOND}
COUNT = 30


@functools.cache
def expected() -> list[list[str]]:
    """Return the batches of each piece, from the datasets that leave rows out from the start."""
    whole = [list(make(dataset)) for dataset in (plain(), without(FIRST), without(FIRST, SECOND))]
    return [whole[sum(step >= cut for cut in CUTS)][step] for step in range(COUNT)]


@pytest.mark.parametrize(
    "ahead", [{}, {"prefetch": 4}, {"prefetch": 3, "workers": sk.Workers(2, type="thread")}], ids=str
)
def test_batches_are_those_of_the_pieces(ahead: dict[str, Any]) -> None:
    with make(**ahead) as loader:
        batches = iter(loader)
        for step in range(COUNT):
            if step in CUTS:
                loader.exclude(places(CUTS[step]))
            assert next(batches) == expected()[step]
        assert loader.journal == (Exclude(4, rows_of(FIRST)), Exclude(13, rows_of(SECOND)))
        assert list(make(journal=loader.journal)) == expected()
    later = {record for batch in expected()[13:] for record in batch}
    assert later == {f"A{row}" for row in range(RECORDS)} - {f"A{row}" for row in FIRST + SECOND}
    kept = [
        (new, old)
        for news, olds in zip(expected(), make(), strict=True)
        for new, old in zip(news, olds, strict=True)
    ]
    assert all(new == old for new, old in kept if int(old[1:]) not in FIRST + SECOND)


@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_states_resume_at_every_cut_on_any_ranks(world_size: int) -> None:
    first = make()
    for cut, rows in CUTS.items():
        first.exclude(places(rows), at=cut)
    batches = iter(first)
    for step in range(COUNT):
        if step % 3 == 1 or world_size == 1:
            state = json.loads(json.dumps(first.state_dict()))
            ranks = [make(rank=rank, world_size=world_size) for rank in range(world_size)]
            for rank in ranks:
                rank.load_state_dict(state)
            shares = [next(iter(rank)) for rank in ranks]
            assert [record for row in zip(*shares, strict=True) for record in row] == expected()[step]
        assert next(batches) == expected()[step]


@pytest.mark.parametrize(
    "options", [{"end": "pad"}, {"end": "drop"}, {"steps": 3}, {"batch_size": None}], ids=str
)
def test_every_way_of_cutting_runs_resumes_at_every_cut(options: dict[str, Any]) -> None:
    options = {"global_batch_size": 7} | options
    second = Exclude(9, rows_of(SECOND), "hole")
    if "batch_size" in options:
        # A hole is no record to deliver.
        options |= {"global_batch_size": None, "epochs": 1}
        second = Exclude(9, rows_of(SECOND))
    journal = [Exclude(4, rows_of(FIRST)), second]
    size = 20 if options["global_batch_size"] else 13
    check_every_cut(lambda: make(plain().take(size), journal=journal, **options))


def test_a_run_is_steered_and_leaves_rows_out() -> None:
    mixed = sk.mix({"a": plain(), "b": sk.from_sequence(range(90))}, weights=[1, 1], seed=2, stop="never")
    steered = [Steer(3, (3, 1)), Steer(9, (1, 0))]
    loader = sk.Loader(mixed, batch_size=BATCH, collate=list, prefetch=0)
    batches = iter(loader)
    delivered = []
    for step in range(COUNT):
        for entry in steered:
            if entry.at == step:
                loader.steer(entry.weights)
        if step == 5:
            loader.exclude({"a": FIRST})
        delivered.append(next(batches))
    left_out = mixed.without({"a": FIRST})
    for dataset, steps in ((mixed, range(5)), (left_out, range(5, COUNT))):
        pieces = iter(sk.Loader(dataset, batch_size=BATCH, collate=list, prefetch=0, journal=steered))
        assert [next(pieces) for _ in range(COUNT)][steps.start : steps.stop] == delivered[
            steps.start : steps.stop
        ]


def test_plan_and_when_know_what_was_left_out() -> None:
    loader = make()
    loader.exclude(places(FIRST), at=4)
    for step in (3, 4, 17):
        assert [data()[record.place.row].upper() for record in loader.plan(step=step).records] == [
            *(expected() if step < 13 else list(make(without(FIRST))))[step]
        ]
    steps = [coming.step for coming in loader.when(NAME, 8)]
    assert steps == [step for step, batch in enumerate(make()) if "A8" in batch and step < 4]


def test_holes_leave_their_places_empty() -> None:
    loader = make()
    loader.exclude(places(FIRST), at=4, fill="hole")
    assert list(loader) == [
        [record for record in batch if step < 4 or int(record[1:]) not in FIRST]
        for step, batch in enumerate(make())
    ]


def test_what_cannot_be_left_out_is_refused_at_once_and_nothing_is_no_entry() -> None:
    loader = make()
    loader.skip_batches(5)
    with pytest.raises(
        sk.errors.InvalidArgument, match="at must be a step that was not delivered, from 5 on"
    ):
        loader.exclude(places(FIRST), at=4)
    with pytest.raises(sk.errors.InvalidArgument, match="with several ranks at= must be said"):
        make(rank=0, world_size=2).exclude(places(FIRST))
    with pytest.raises(sk.errors.InvalidArgument, match="would leave out all 60 rows"):
        loader.exclude(data())
    with pytest.raises(sk.errors.DataNotFound):
        loader.exclude([("nowhere.jsonl", 3)])
    with pytest.raises(sk.errors.InvalidArgument, match="fill must be"):
        loader.exclude(places(FIRST), fill="none")  # type: ignore[arg-type]
    loader.exclude([])
    assert list(loader.journal) == []
    loader.exclude(places(FIRST))
    loader.exclude(places(FIRST[:2]), at=8)
    assert loader.journal == (Exclude(5, rows_of(FIRST)),)
    loader.exclude(places(FIRST[:2]), at=5)
    assert loader.journal == (Exclude(5, rows_of(FIRST)),)


def test_by_rows_rows_stay_left_out_in_the_old_order_and_in_the_new_one() -> None:
    loader = make()
    batches = iter(loader)
    head = [record for _ in range(4) for record in next(batches)]
    loader.exclude(places(FIRST))
    head += next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    again = make(data().map(str.upper).shuffle(seed=8), global_batch_size=10)
    again.load_state_dict(state, resume="rows")
    assert again.journal == (Exclude(4, rows_of(FIRST)),)
    rest = [record for batch in again for record in batch]
    assert rest[:30] == [record for batch in expected()[5:10] for record in batch]
    second = [
        record
        for batch in make(data().map(str.upper).shuffle(seed=8).without(places(FIRST)))
        for record in batch
    ]
    assert rest[30:90] == second[60:120]


def test_a_long_list_lies_beside_the_states(tmp_path: Path) -> None:
    count = 4 * MOST_INLINE
    big = sk.from_sequence(range(count), version="a").shuffle(seed=1)
    listed = list(range(0, count, 3))
    loader = sk.Loader(big, batch_size=64, collate=list, prefetch=0)
    loader.exclude([("<builtins.range a>", row) for row in listed], at=1)
    loader.skip_batches(2)
    path = sk.save_state(tmp_path, loader)
    (beside,) = tmp_path.glob("excluded-*.json")
    assert Path(path).stat().st_size < 400
    again = sk.Loader(big, batch_size=64, collate=list, prefetch=0)
    assert sk.load_state(tmp_path, again)
    assert again.journal == loader.journal
    assert next(iter(again)) == next(iter(loader))
    changed = beside.read_text(encoding="utf-8").replace(f'"rows":{len(listed)}', f'"rows":{len(listed) - 1}')
    for text, message in ((changed, "holds other rows than the run leaves out"), (None, "is not there")):
        beside.unlink()
        if text is not None:
            beside.write_text(text, encoding="utf-8")
        with pytest.raises(sk.errors.CorruptState, match=message):
            sk.load_state(tmp_path, sk.Loader(big, batch_size=64))
    with pytest.raises(sk.errors.CorruptState, match="lie in a file beside the state"):
        again.load_state_dict(json.loads(Path(path).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "wrong",
    [[], [Exclude(5, rows_of(FIRST))], [Exclude(3, rows_of(FIRST))], [Exclude(4, rows_of(FIRST[1:]))]],
)
def test_a_wrong_journal_gives_other_batches(wrong: list[Exclude]) -> None:
    """Batch 3 has a row of the list, and batch 4 another one."""
    listed = [data()[int(record[1:])] for step in (3, 4) for record in list(make())[step][:1]]
    rows = [int(record[1:]) for record in listed]
    right = list(make(journal=[Exclude(4, rows_of(rows))]))
    moved = [
        Exclude(entry.at, rows_of(rows if len(entry.rows) == len(FIRST) else rows[:1])) for entry in wrong
    ]
    assert list(make(journal=moved)) != right


@pytest.mark.parametrize("collate", [{}, {"collate": list}], ids=["columns", "records"])
def test_a_batch_of_nothing_but_padding_is_refused_on_all_ranks(collate: dict[str, Any]) -> None:
    """Of each two samples the second is a document that is left out; at step 3 both are."""
    documents = sk.from_sequence([{"tokens": [row] * 4} for row in range(12)], version="a")
    data = documents.pack(4, seed=0, key="tokens", method="best_fit")
    order = [int(data[row]["tokens"][0]) for row in range(12)]
    gone = [("<builtins.list a>", order[row]) for row in (1, 3, 5, 6, 7, 9, 11)]

    def make(rank: int = 0, ranks: int = 1) -> sk.Loader:
        made = sk.Loader(data, global_batch_size=2, rank=rank, world_size=ranks, **collate, prefetch=0)
        made.exclude(gone, at=0)
        return made

    for rank, ranks in ((0, 1), (0, 2), (1, 2)):
        loader = make(rank, ranks)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        with pytest.raises(sk.errors.NothingPassed, match=r"at step 3 \(position 6\): all 2 samples are"):
            next(batches)
        loader.skip_batches(1)
        assert len(list(batches)) == 2
        assert loader.report()["holes"] == 0
