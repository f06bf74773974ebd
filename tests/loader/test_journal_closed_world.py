"""Every node and stage there is, in a run that is steered, or from which records are left out.

The world is closed, as in tests/test_closed_world.py. Each case is compared with runs that were so from the
start, cut at every step, and shared out to ranks.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.induction import RUNS, check_cuts, uninterrupted
from tests.stream.matrix import BUILDERS as STAGES
from tests.test_closed_world import BUILDERS as NODES
from tests.thrift import sample

import seekable as sk
from seekable.nodes.without import LeavesOut, WithHoles
from seekable.nodes.zip import Zip
from seekable.packing.nodes.packed_node import PackedNode, WindowsNode
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.stream.from_dataset import FromDataset, stages_of
from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seekable.nodes.node import Node
    from seekable.state.journal import Journal

SIZE, BATCH = 29, 6
AT, LATER, SOME = 2, 4, 2
"""The steps from which records are left out, in the first run or the second, and how many there are."""

OPTIONS: list[dict[str, Any]] = [
    {},
    {"batch_size": None},
    {"end": "pad"},
    {"end": "drop", "prefetch": 3},
    {"epochs": 2},
    {"steps": 3},
    {"global_batch_size": [(0, 6), (3, 12)]},
    {"prefetch": 2, "workers": sk.Workers(2, type="thread")},
]

REFUSED = {Zip, WindowsNode, PlaceholderMap, PlaceholderSource}
"""What is refused: several orders at once, samples without a mask, and records that are not there."""

EACH = [
    pytest.param(kind, number, options, id=f"{kind.__name__}-{number}-{'-'.join(options)}")
    for kind, builders in NODES.items()
    for number in range(len(builders))
    for options in OPTIONS
    # A hole, or a sample of nothing but padding, is refused where it is the whole batch.
    if not (issubclass(kind, PackedNode | WithHoles) and "batch_size" in options)
]


def make(dataset: sk.Dataset | sk.Stream, journal: Journal = (), **options: Any) -> sk.Loader:
    sizes = {} if options.keys() & {"batch_size", "global_batch_size"} else {"global_batch_size": BATCH}
    collate = {} if "batch_size" in options else {"collate": list}
    options = {"prefetch": 0, "rank": 0, "world_size": 1, **sizes, **collate, **options}
    return sk.Loader(dataset, journal=journal, **options)


def flat(place: Any) -> Iterator[tuple[str, int]]:
    """Yield the files and rows of a place, which may be nested."""
    if isinstance(place, list | tuple):
        for each in place:
            yield from flat(each)
    else:
        yield place.path, place.row


def places(node: Node, epochs: int) -> list[list[tuple[str, int]]]:
    positions = np.arange(epochs * (node.size or 0), dtype=np.int64)
    return [list(flat(place)) for place in node.plan(positions).locate()]


def listed(dataset: sk.Dataset) -> tuple[list[Any], list[Any]]:
    """Return two lists of places that two batches of the dataset have; of each source some row is kept."""
    of_records = places(dataset._node, 1)
    lists: tuple[list[Any], list[Any]] = ([], [])
    for own, at in zip(lists, (AT * BATCH, LATER * BATCH), strict=True):
        first = at % len(of_records)
        for place, *_ in filter(None, of_records[first:] + of_records[:first]):
            with contextlib.suppress(sk.errors.InvalidArgument):
                if len(own) < SOME and place not in {*lists[0], *lists[1]}:
                    dataset.without([*lists[0], *lists[1], place])
                    own.append(place)
    return lists


def all_batches(loader: sk.Loader) -> list[Any]:
    with loader:
        return [batch for _ in range(RUNS) for batch in loader]


@pytest.mark.parametrize(("kind", "number", "options"), sample(EACH, of=61))
def test_what_is_left_out_of_a_run_over_any_node(
    kind: type[Node], number: int, options: dict[str, Any], tmp_path: Path
) -> None:
    dataset = NODES[kind][number](SIZE, tmp_path)
    if kind in REFUSED:
        is_there = kind not in {PlaceholderMap, PlaceholderSource}
        with pytest.raises(sk.errors.SeekableError):
            make(dataset).exclude([places(dataset._node, 1)[0][0] if is_there else ("a", 1)])
        return
    some, others = listed(dataset)
    # A hole that is the only record of a batch is refused.
    fill: Any = "replace" if "batch_size" in options else "hole"
    first = make(dataset, **options)
    first.exclude(some, at=AT)
    first.exclude(others, at=LATER, fill=fill)
    journal = first.journal
    assert [entry.at for entry in journal] == [AT, LATER]
    pieces = [dataset, dataset.without(some), dataset.without(some).without(others, fill=fill)]
    whole = [all_batches(make(piece, **{**options, "workers": 0})) for piece in pieces]
    expected = [whole[(step >= AT) + (step >= LATER)][step] for step in range(len(whole[0]))]
    run = uninterrupted(lambda: make(dataset, journal, **options))
    assert same(run.batches, expected)
    assert not same(run.batches, whole[0])
    # The state alone says what was changed.
    check_cuts(lambda: make(dataset, **options), run)
    skipping = make(dataset, journal, **options)
    skipping.skip_batches(min(LATER - 1, len(skipping) - 1))
    assert same(next(iter(skipping)), expected[skipping.step - 1])


@pytest.mark.parametrize(
    ("kind", "number"),
    sample([(kind, number) for kind, each in NODES.items() for number in range(len(each))], of=17),
)
def test_others_keep_their_places_over_any_node_on_any_ranks(
    kind: type[Node], number: int, tmp_path: Path
) -> None:
    if kind in REFUSED:
        pytest.skip("it is refused")
    dataset = NODES[kind][number](SIZE, tmp_path)
    some, others = listed(dataset)
    gone = {*some, *others}
    clean = dataset.without(some).without(others)
    for before, after in zip(places(dataset._node, 3), places(clean._node, 3), strict=True):
        assert gone.isdisjoint(after)
        # Where rows were left out before, their places are filled anew.
        if not isinstance(dataset._node, LeavesOut) and (
            gone.isdisjoint(before) or isinstance(clean._node, PackedNode)
        ):
            assert after == [place for place in before if place not in gone]
    if kind is WithHoles:
        return  # The slots of holes are not in batches.
    whole = make(dataset, end="pad")
    whole.exclude(some, at=AT)
    whole.exclude(others, at=LATER)
    expected = all_batches(whole)
    journal = whole.journal
    # On other ranks after each kill, from the states alone.
    state, found = make(dataset, journal, end="pad").state_dict(), []
    for world_size in itertools.cycle([1, 2, 3, 6]):
        ranks = [make(dataset, end="pad", rank=rank, world_size=world_size) for rank in range(world_size)]
        for rank in ranks:
            rank.load_state_dict(json.loads(json.dumps(state)))
        shares = [next(iter(rank), None) for rank in ranks]
        first = state["position"] % world_size
        state = ranks[0].state_dict()
        if shares[0] is not None:
            in_order = zip(*shares[first:], *shares[:first], strict=True)
            found.append([record for slots in in_order for record in slots])
        if len(found) == len(expected):
            break
    assert same(found, expected)
    # The steps go on, and the positions go back.
    again = make(dataset, journal, end="pad")
    assert same(list(again), expected[: len(again)])
    again.set_epoch(0)
    assert same(list(again), list(make(clean, end="pad")))


def tagged(record: Any) -> tuple[str, Any]:
    return "a", record


def others(record: Any) -> tuple[str, Any]:
    return "b", record


def lists(record: Any) -> Any:
    return record


ABOVE: dict[str, Callable[[sk.Dataset], sk.Dataset]] = {
    "mix": lambda mixture: mixture,
    "map": lambda mixture: mixture.map(lists),
    "mix in mix": lambda mixture: sk.mix(
        {"x": mixture, "y": sk.from_sequence(range(9), version="y").map(others)},
        weights=[1, 0],
        seed=2,
        stop="never",
    ),
}
"""What stands over a mixture that is steered."""

WAYS = [(above, options) for options in OPTIONS if not options.keys() & {"end", "epochs"} for above in ABOVE]
"""Each way to run a mixture without end; the nodes have them in turn."""

STEERED = [
    pytest.param(kind, number, *WAYS[turn % len(WAYS)], id=f"{kind.__name__}-{number}-{turn % len(WAYS)}")
    for turn, (kind, number) in enumerate(
        (kind, number) for kind, builders in NODES.items() for number in range(len(builders))
    )
]


@pytest.mark.parametrize(("kind", "number", "above", "options"), sample(STEERED, of=7))
def test_a_mixture_of_any_node_is_steered(
    kind: type[Node], number: int, above: str, options: dict[str, Any], tmp_path: Path
) -> None:
    if kind in {PlaceholderMap, PlaceholderSource}:
        pytest.skip("its records are not there")
    part = NODES[kind][number](SIZE, tmp_path)
    second = sk.from_sequence(range(17), version="second").shuffle(seed=1)
    mixture = sk.mix({"a": part.map(tagged), "b": second.map(others)}, weights=[3, 1], seed=4, stop="never")
    dataset = ABOVE[above](mixture)
    options = {"steps": 8, **options}
    steered = make(dataset, **options)
    for at, weights in ((AT, [0, 1]), (LATER, [2, 1]), (7, [1, 3])):
        steered.steer(weights, at=at, mixture="x" if above == "mix in mix" else 0)
    journal = steered.journal
    run = uninterrupted(lambda: make(dataset, journal, **options))
    plain = all_batches(make(dataset, **{**options, "workers": 0}))
    assert same(run.batches[:AT], plain[:AT])
    assert not same(run.batches, plain)
    records = list(_records(run.batches, single="batch_size" in options))
    # In each lane each source goes on in its order, none lost and none twice.
    lanes = mixture._node.lanes
    for (name, source), lane in itertools.product((("a", part), ("b", second)), range(lanes)):
        came = [record for tag, record in records[lane::lanes] if tag == name]
        positions = lane + lanes * np.arange(2 * len(came), dtype=np.int64)
        there = [record for record in source._node.fetch(positions) if record is not sk.HOLE]
        assert same(came, there[: len(came)])
    if above != "mix in mix" and "batch_size" not in options:
        assert {tag for batch in run.batches[AT:LATER] for tag, _ in batch} == {"b"}
    check_cuts(lambda: make(dataset, **options), run)


def _records(batches: Sequence[Any], *, single: bool) -> Iterator[tuple[str, Any]]:
    for batch in batches:
        if single:
            yield batch
        else:
            yield from batch


LANES = 6
STREAMS = [
    pytest.param(kind, number, options, id=f"{kind.__name__}-{number}-{'-'.join(options)}")
    for kind, builders in STAGES.items()
    for number in range(len(builders))
    for options in OPTIONS
    if "epochs" not in options
]


@pytest.mark.parametrize(("kind", "number", "options"), sample(STREAMS, of=37))
def test_what_is_left_out_of_a_run_over_any_stage(kind: type, number: int, options: dict[str, Any]) -> None:
    stream = STAGES[kind][number](36, LANES)
    if not stream.checkpointable:
        pytest.skip("it has no state")
    sources = [stage.dataset for stage in stages_of(stream.stage) if isinstance(stage, FromDataset)]
    first = make(stream, **options)
    if not sources:
        with pytest.raises(sk.errors.SeekableError):
            first.exclude([("a", 1)])
        return
    of_rows = places(sources[0], 1)
    for at, rows in ((AT, [8, 9, 10, 13]), (LATER, [1, 2, 14, 15])):
        first.exclude([of_rows[row][0] for row in rows], at=at)
    journal = first.journal
    run = uninterrupted(lambda: make(stream, journal, **options))
    plain = all_batches(make(stream, **{**options, "workers": 0}))
    assert same(run.batches[:AT], plain[:AT])
    # A run that begins after all changes is one that began with them.
    if "global_batch_size" not in options:
        assert run.ends[1] >= LATER
        from_start = tuple(replace(entry, at=0, position=None) for entry in journal)
        assert same(list(make(stream, from_start, **options)), run.batches[run.ends[1] :])
    check_cuts(lambda: make(stream, **options), run)
