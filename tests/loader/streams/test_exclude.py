"""Records are left out of a run over a stream where they are read, from a step on: what follows moves up."""

from __future__ import annotations

import functools
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

LANES, BATCH, COUNT, ROWS = 6, 12, 16, 90
GONE = {4: (3, 8, 20, 41), 9: (0, 60, *range(70, 88))}
"""By the step from which on: rows that are left out."""


@functools.cache
def data() -> sk.Dataset:
    return sk.from_sequence(range(ROWS), version=1)


def plain() -> sk.Stream:
    return data().stream(lanes=LANES)


def make(stream: sk.Stream | None = None, **options: Any) -> sk.Loader:
    options = {"global_batch_size": BATCH, "prefetch": 0, "rank": 0, "world_size": 1, **options}
    return sk.Loader(plain() if stream is None else stream, collate=list, **options)


def excluding(loader: sk.Loader) -> sk.Loader:
    for at, rows in GONE.items():
        loader.exclude([data().locate(row) for row in rows], at=at)
    return loader


def items_of(loader: sk.Loader, count: int) -> list[Any]:
    batches = iter(loader)
    return [next(batches) for _ in range(count)]


@functools.cache
def modelled() -> list[list[int]]:
    """Take the rows of each lane in turn, less those that are gone at the step, with lists alone."""
    lanes = []
    for lane in range(LANES):
        endless = itertools.cycle(range(lane, ROWS, LANES))
        items = []
        for slot in range(lane, COUNT * BATCH, LANES):
            gone = {row for at, rows in GONE.items() if at <= slot // BATCH for row in rows}
            items.append(next(row for row in endless if row not in gone))
        lanes.append(items)
    slots = [lanes[slot % LANES][slot // LANES] for slot in range(COUNT * BATCH)]
    return [slots[first : first + BATCH] for first in range(0, len(slots), BATCH)]


@pytest.mark.parametrize(
    "ahead", [{}, {"prefetch": 4}, {"prefetch": 3, "workers": sk.Workers(2, type="thread")}], ids=str
)
def test_batches_are_those_of_the_model(ahead: dict[str, Any]) -> None:
    with make(**ahead) as loader:
        batches = iter(loader)
        for step, batch in enumerate(modelled()):
            if step in GONE:
                loader.exclude([data().locate(row) for row in GONE[step]])
            assert next(batches) == batch
        assert [(each.at, each.position) for each in loader.journal] == [(4, 4 * BATCH), (9, 9 * BATCH)]
        assert loader.report()["holes"] == 0
        assert items_of(make(journal=loader.journal), COUNT) == modelled()


def test_processes_leave_them_out_too() -> None:
    with make(prefetch=4, workers=2) as loader:
        batches = iter(loader)
        delivered = [next(batches) for _ in range(4)]
        excluding(loader)
        assert delivered + [next(batches) for _ in range(COUNT - 4)] == modelled()


@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_states_resume_at_every_cut_on_any_ranks(world_size: int, tmp_path: Path) -> None:
    first = [excluding(make(rank=rank, world_size=world_size)) for rank in range(world_size)]
    runs = [iter(loader) for loader in first]
    for step in range(COUNT):
        if step in (0, 3, 4, 5, 9, 12):
            for loader in first:
                sk.save_state(tmp_path / str(step), loader)
            ranks = 6 // world_size
            others = [make(rank=rank, world_size=ranks) for rank in range(ranks)]
            for other in others:
                assert sk.load_state(tmp_path / str(step), other)
            shares = [next(iter(other)) for other in others]
            assert [item for row in zip(*shares, strict=True) for item in row] == modelled()[step]
        shares = [next(run) for run in runs]
        assert [item for row in zip(*shares, strict=True) for item in row] == modelled()[step]


def spelled(row: int) -> list[int]:
    return [row] * (1 + row % 4)


def is_full(sample: dict[str, Any]) -> bool:
    return bool(sample["segment_ids"].all())


PIPELINES = {
    "filled": lambda: (
        data()
        .without([data().locate(row) for row in range(30, 60)])
        .stream(lanes=LANES)
        .shuffle(buffer=9, seed=3)
    ),
    "masked": lambda: (
        data().map(spelled).pack(7, seed=1, key=None).stream(lanes=LANES).shuffle(buffer=9, seed=3)
    ),
    "chosen": lambda: (
        data()
        .map(spelled)
        .pack(7, seed=1, key=None)
        .stream(lanes=LANES)
        .filter(is_full)
        .shuffle(buffer=9, seed=3)
    ),
    "buffer": lambda: plain().filter(lambda row: row % 3).shuffle(buffer=20, seed=3),
    "packed": lambda: plain().map(lambda row: [row] * (1 + row % 4)).pack(7),
    "mixed": lambda: sk.mix(
        {"a": plain(), "b": data().shuffle(seed=1).stream(lanes=LANES)}, weights=[2, 1], seed=7
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_what_waits_still_comes_and_every_cut_resumes(name: str) -> None:
    whole = items_of(excluding(make(PIPELINES[name]())), COUNT)
    untouched = items_of(make(PIPELINES[name]()), COUNT)
    assert str(whole[:4]) == str(untouched[:4])
    assert str(whole) != str(untouched)
    loader = excluding(make(PIPELINES[name]()))
    batches = iter(loader)
    for cut in range(COUNT - 1):
        other = make(PIPELINES[name]())
        other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert str(next(iter(other))) == str(whole[cut])
        assert str(next(batches)) == str(whole[cut])


def test_a_file_that_no_dataset_has_is_named_and_nothing_new_is_no_entry() -> None:
    loader = excluding(make())
    with pytest.raises(sk.DataNotFound, match="no-such-file"):
        loader.exclude([("no-such-file", 3)])
    with pytest.raises(sk.errors.InvalidArgument, match="would leave out all 90 rows"):
        loader.exclude([data().locate(row) for row in range(ROWS)], at=12)
    before = loader.journal
    loader.exclude([data().locate(3)], at=12)
    assert loader.journal == before


def test_other_pipelines_go_on_without_them() -> None:
    loader = excluding(make())
    items_of(loader, 6)
    other = make(plain().filter(lambda row: row % 2))
    other.load_state_dict(loader.state_dict(), resume="rows")
    rest = itertools.chain.from_iterable(items_of(other, COUNT))
    assert not {*GONE[4]} & {*rest}


def test_rows_of_named_streams_count_as_their_datasets_have_them() -> None:
    low, high, far = (sk.from_sequence(range(first, first + 40), version=first) for first in (0, 100, 1000))
    mixed = sk.mix({"x": high.shuffle(seed=3), "y": far}, weights=[1, 1], seed=1, stop="never")
    parts = {"low": low.stream(lanes=LANES).filter(lambda row: row % 7), "mixed": mixed.stream(lanes=LANES)}
    loader = make(sk.mix(parts, weights=[1, 2], seed=5))
    loader.exclude({"low": [2, 3], "x": [0, -1], "y": [5]})
    gone = {2, 3, 100, 139, 1005}
    rows = {row for batch in items_of(loader, 40) for row in batch}
    kept = {*range(40), *range(100, 140), *range(1000, 1040)} - {row for row in range(40) if row % 7 == 0}
    assert rows == kept - gone
    names = re.escape("['low', 'mixed', 'x', 'y'] (got 'z'")
    for what, error, message in (
        ({"z": [1]}, sk.errors.InvalidArgument, names),
        ({"mixed": [1]}, sk.errors.InvalidArgument, "several datasets are put together"),
        ({"low": [40]}, sk.errors.OutOfRange, "row 40"),
    ):
        with pytest.raises(error, match=message):
            loader.exclude(what)


def same(record: dict[str, Any]) -> dict[str, Any]:
    return record


def test_a_mixture_of_files_leaves_out_what_each_of_its_sources_would(tmp_path: Path) -> None:
    """Its sources are read together; below a function each is read for itself, from the start or after it."""
    for name in "ab":
        lines = [json.dumps({"id": f"{name}{row}"}) + "\n" for row in range(30)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    parts = [sk.open(tmp_path / f"{name}.jsonl").shuffle(1) for name in "ab"]
    gone = [(str(tmp_path / "a.jsonl"), row) for row in range(0, 30, 2)]

    def mixed(parts: list[sk.Dataset], *, apart: bool) -> sk.Stream:
        streams = [part.stream(lanes=2) for part in parts]
        return sk.mix([each.map(same) for each in streams] if apart else streams, weights=[1, 1], seed=0)

    def run(*, apart: bool, state: dict[str, Any] | None = None) -> sk.Loader:
        stream = mixed(parts, apart=apart).shuffle(buffer=4, seed=3)
        loader = make(stream, global_batch_size=4, steps=40)
        if state is None:
            loader.exclude(gone, at=5)
        else:
            loader.load_state_dict(json.loads(json.dumps(state)))
        return loader

    wanted, found = list(run(apart=True)), run(apart=False)
    states = [found.state_dict()]
    assert [states.append(found.state_dict()) or batch for batch in found] == wanted  # type: ignore[func-returns-value]
    late = {record["id"] for batch in wanted[8:] for record in batch}
    assert not late & {f"a{row}" for _, row in gone}
    for cut in range(0, len(wanted), 7):
        assert list(run(apart=False, state=states[cut])) == wanted[cut:]
    left = [parts[0].without(gone, fill="hole"), parts[1]]
    together, apart = (list(itertools.islice(mixed(left, apart=apart), 200)) for apart in (False, True))
    assert together == apart
    assert sk.HOLE not in together
