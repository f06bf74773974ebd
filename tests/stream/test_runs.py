"""Stages without memory make their items many at a time: with the items, states and errors of single ones."""

from __future__ import annotations

import itertools
import json
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream import functions, model
from tests.stream.common import check_cuts, check_same, delivered, following, resumed, run_of
from tests.thrift import sample, some

import seekable as sk
from seekable.stream import SameItems
from seekable.stream.lane import LaneIterator
from seekable.stream.mixed_runs import MixedSources
from seekable.stream.runs import END, ConsumedCounts, Run, RunLength

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seekable.stream import Lane, Token


@dataclass(frozen=True, eq=False, repr=False)
class OneByOne(SameItems):
    """Passes single items on, so that the stages above make no runs."""

    kind: ClassVar[str] = "tests.one-by-one"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        yield from lane.inputs[0]

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Any) -> str:
        return f"{inputs[0]}.then(OneByOne())"


def files_of(folder: Path, sizes: list[int]) -> list[sk.Dataset]:
    """Return datasets of so many lines, one a file."""
    for number, size in enumerate(sizes):
        lines = [json.dumps({"id": 1000 * number + row}) + "\n" for row in range(size)]
        (folder / f"{number}.jsonl").write_text("".join(lines))
    return [sk.open(folder / f"{number}.jsonl") for number in range(len(sizes))]


def makes_runs(stream: sk.Stream) -> bool:
    return LaneIterator(stream.stage, 0).has_runs


def likes(item: Any) -> bool:
    return bool(item % 3)


def test_stages_above_a_source_make_runs_and_those_above_memory_do_not() -> None:
    source = sk.from_sequence(range(50)).stream(lanes=2, epochs=1)
    above = sk.mix([source.filter(likes), source.map(abs)], weights=[1, 1], seed=0).map(abs)
    assert makes_runs(above)
    assert not makes_runs(source.shuffle(buffer=3, seed=0).map(abs))
    assert not makes_runs(sk.mix([source, source.repeat(2)], weights=[1, 1], seed=0))
    assert not makes_runs(source.then(OneByOne()).filter(likes))


@pytest.mark.parametrize(
    ("n", "lanes", "stop"), sample(itertools.product([0, 1, 2, 29], [1, 3], ["first", "all"]), of=2)
)
def test_single_items_and_runs_have_the_same_items_and_states(n: int, lanes: int, stop: Any) -> None:
    def build(each: Callable[[sk.Stream], sk.Stream]) -> sk.Stream:
        sources = [
            sk.from_sequence(range(n + more)).shuffle(more).map(functions.full_of_holes) for more in range(3)
        ]
        a, b, c = (each(source.stream(lanes=lanes, epochs=2)) for source in sources)
        below = sk.mix([a.filter(likes), b, c.map(abs)], weights=[5, 2, 1], seed=4, stop=stop)
        return sk.mix([below.filter(likes).map(abs), c], weights=[3, 1], seed=1, stop=stop).filter(likes)

    quick, slow = build(lambda stream: stream), build(lambda stream: stream.then(OneByOne()))
    assert (makes_runs(quick), makes_runs(slow)) == (True, False)
    found, states = run_of(quick)
    wanted, slow_states = run_of(slow)
    check_same(found, wanted)
    kept = [
        number
        for number, each in enumerate(LaneIterator(slow.stage, 0).walk())
        if each.stage.kind != OneByOne.kind
    ]
    for state, slow_state in zip(states, slow_states, strict=True):
        for lane, stages in state["lanes"].items():
            assert stages == [slow_state["lanes"][lane][number] for number in kept]
    check_cuts(quick)


@pytest.mark.parametrize(
    ("lanes", "stop", "epochs"), sample(itertools.product([1, 3], ["first", "all"], [1, 2, None]), of=6)
)
def test_a_mixture_of_files_is_its_model(tmp_path: Path, lanes: int, stop: Any, epochs: int | None) -> None:
    parts = files_of(tmp_path, [7, 19, 3, 30])
    shuffled = [part.shuffle(seed).stream(lanes=lanes, epochs=epochs) for seed, part in enumerate(parts)]
    stream = sk.mix(shuffled, weights=[(0, [1, 2, 0, 5]), (25, [1, 0, 3, 9])], seed=3, stop=stop)
    assert isinstance(runs_of(stream), MixedSources)
    pairs, ended = model.slots(stream)
    assert ended is (epochs is not None)
    check_same(delivered(stream, None if ended else len(pairs)), pairs)
    check_cuts(stream, most=None if ended else 70)
    check_cuts(
        sk.mix([stream.filter(functions.likes), shuffled[0]], weights=[1, 1], seed=2, stop=stop), most=50
    )


def runs_of(stream: sk.Stream) -> Any:
    root = LaneIterator(stream.stage, 0)
    assert root.has_runs
    return root._runs


def test_many_files_are_drawn_as_one_by_one(tmp_path: Path) -> None:
    sizes = [5] * some(200, of=4)
    parts = [part.shuffle(seed).stream(lanes=2) for seed, part in enumerate(files_of(tmp_path, sizes))]
    weights = [1 + number % 3 for number in range(len(parts))]
    together = sk.mix(parts, weights=weights, seed=0)
    apart = sk.mix([part.then(OneByOne()) for part in parts], weights=weights, seed=0)
    check_same(delivered(together, 1200), delivered(apart, 1200))
    iterator = iter(together)
    for count in (1, 300, 900):
        pairs = following(iterator, count)
        state = iterator.state_dict(rows=False)
        check_same(following(resumed_without_rows(together, state), 300), following(iterator, 300))
        assert len(pairs) == count


def resumed_without_rows(stream: sk.Stream, state: dict[str, Any]) -> Any:
    iterator = iter(stream)
    iterator.load_state_dict(json.loads(json.dumps(state)))
    assert iterator.state_dict(rows=False) == state
    return iterator


def test_a_mixture_after_a_resume_by_rows_counts_from_its_first_position(tmp_path: Path) -> None:
    """The sources of such a run begin in the middle of an epoch."""
    web, code = files_of(tmp_path, [40, 25])

    def loader(weights: list[int]) -> sk.Loader:
        parts = [web.shuffle(1).stream(), code.shuffle(2).stream()]
        return sk.Loader(sk.mix(parts, weights=weights, seed=0), batch_size=4, steps=30, prefetch=0)

    first = loader([1, 1])
    seen = [record["id"] for batch in itertools.islice(first, 5) for record in records(batch)]
    again = loader([3, 1])
    again.load_state_dict(json.loads(json.dumps(first.state_dict())), resume="rows")
    seen += [record["id"] for batch in again for record in records(batch)]
    web_ids = [number for number in seen if number < 1000]
    assert sorted(web_ids[:40]) == list(range(40))


def records(batch: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": int(number)} for number in batch["id"]]


def test_a_drought_keeps_no_trace_of_what_did_not_pass() -> None:
    """States are those before the drought, and what is kept for them does not grow with it."""
    stream = sk.from_sequence(range(15_000)).stream(epochs=1).filter(bool).filter(rare).map(abs)
    root = LaneIterator(stream.stage, 0)
    iterator = iter(root)
    assert next(iterator)[1] == 5
    before = [state.document() for state in root.states()]
    assert before[-1] == {"at": 6}
    assert next(iterator)[1] == 12_005
    inner: Any = root.inputs[0].inputs[0]._runs
    assert len(inner._consumed._ends) < 3000
    pairs, states = run_of(stream)
    assert [item for _, item in pairs] == [5, 12_005]
    assert [state["lanes"]["0"][-1].get("at") for state in states] == [None, 6, 12_006]
    check_cuts(stream)


def rare(number: int) -> bool:
    return number % 12_000 == 5


def test_a_drought_inside_a_mixture_resumes_exactly() -> None:
    few = sk.from_sequence(range(3000)).stream(epochs=2).filter(bool).filter(rare)
    many = sk.from_sequence(range(300)).stream(epochs=1)
    stream = sk.mix([few, many], weights=[1, 3], seed=0, stop="all")
    assert makes_runs(stream)
    check_cuts(stream, cuts=[0, 1, 2, 3, 4, 5, 6, 7, 150, 301, 302])


@pytest.mark.parametrize("at", [0, 1, 17, 200])
def test_an_error_comes_when_the_items_before_it_were_delivered(at: int) -> None:
    def fails(number: int) -> bool:
        if number == at:
            message = "seven"
            raise ValueError(message)
        return True

    source = sk.from_sequence(range(300)).stream(epochs=1)
    other = sk.from_sequence(range(1000, 1300)).stream(epochs=1)
    for stream in (source.filter(fails), source.map(fails), source.map(abs).filter(fails).map(abs)):
        iterator = iter(stream)
        assert len(following(iterator, at)) == at
        for _ in range(2):
            with pytest.raises(ValueError, match="seven") as caught:
                next(iterator)
            assert f"at the item of token {at}" in "".join(caught.value.__notes__)
    mixed = sk.mix([source.filter(fails), other], weights=[1, 1], seed=0)
    wanted = following(iter(sk.mix([source, other], weights=[1, 1], seed=0)), 600)
    drawn = next(number for number, (token, _) in enumerate(wanted) if token == (0, at))
    iterator = iter(mixed)
    check_same(following(iterator, drawn), [(token, item) for token, item in wanted[:drawn]])
    with pytest.raises(ValueError, match="seven"):
        next(iterator)


def test_a_function_that_raises_stop_iteration_does_not_end_the_stream() -> None:
    def ends(number: int) -> int:
        if number == 40:
            raise StopIteration
        return number

    for stream in (
        sk.from_sequence(range(99)).stream().map(ends),
        sk.from_sequence(range(99)).stream().filter(ends),
    ):
        iterator = iter(stream)
        assert len(following(iterator, 39)) == 39
        with pytest.raises(RuntimeError, match="StopIteration"):
            following(iterator, 2)


def test_a_slow_function_is_not_called_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    clock = [0.0]

    def slow(number: int) -> int:
        called.append(number)
        clock[0] += 0.002
        return number

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    iterator = iter(sk.from_sequence(range(300)).stream().map(slow))
    for count in range(1, 20):
        next(iterator)
        assert len(called) == count


def test_runs_of_quick_functions_grow_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    length, counts = RunLength(), list[int]()

    def take(count: int, behind: int) -> Run:
        counts.append(count)
        return Run([behind], lambda: [0])

    for _ in range(10):
        length.take(take, 0)
    assert counts == [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]


@given(st.lists(st.tuples(st.lists(st.integers(1, 3), max_size=5), st.integers(0, 4), st.integers(0, 9))))
def test_a_trail_is_its_model(steps: list[tuple[list[int], int, int]]) -> None:
    consumed, taken, ends, start = ConsumedCounts(0), 0, list[int](), 0
    for gaps, trailing, behind in steps:
        kept = min(behind, len(ends))
        consumed.keep(kept)
        if len(ends) > kept:
            start = ends[len(ends) - kept - 1]
        ends = ends[len(ends) - kept :]
        for gap in gaps:
            taken += gap
            ends.append(taken)
        added = ends[len(ends) - len(gaps) :]
        taken += trailing
        consumed.add(added, taken=taken)
        assert [consumed.at(count) for count in range(len(ends), -1, -1)] == [start, *ends]
        assert (consumed.at(END), consumed.needed) == (taken, start)


@dataclass(frozen=True, eq=False, repr=False)
class WithHoles(OneByOne):
    """Has a value of its own that is named as the count of a source."""

    kind: ClassVar[str] = "tests.with-holes"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        for pair in lane.inputs[0]:
            lane.state["holes"] = lane.state.get("holes", 0) + 1
            yield pair


class Kept:
    """An item that can be seen to be kept."""

    alive: ClassVar[weakref.WeakSet[Kept]] = weakref.WeakSet()

    def __init__(self, number: int) -> None:
        self.number = number
        self.alive.add(self)


def test_a_run_is_free_before_the_next_one_is_read() -> None:
    """Also its tokens are there after its end, and after an error."""
    most = [0]

    def fails(kept: Kept) -> bool:
        most[0] = max(most[0], len(kept.alive))
        if kept.number == 900:
            message = "nine hundred"
            raise ValueError(message)
        return True

    source = sk.from_sequence(range(1000)).stream(epochs=1)
    iterator = iter(source.map(Kept).filter(fails))
    count = sum(1 for _ in itertools.islice(iterator, 900))
    assert (count, iterator.token) == (900, 899)
    with pytest.raises(ValueError, match="nine hundred"):
        next(iterator)
    assert iterator.token == 899
    assert most[0] <= 129
    iterator = iter(source.filter(likes))
    assert (len(list(iterator)), iterator.token) == (666, 998)


def test_holes_are_those_of_sources_alone() -> None:
    source = sk.from_sequence([1, sk.HOLE, 2, sk.HOLE, sk.HOLE, 3]).stream(epochs=1)
    root = LaneIterator(source.then(WithHoles()).stage, 0)
    assert [item for _, item in root] == [1, 2, 3]
    root.settle()
    assert root.holes == 3
    root.restart()
    assert len(list(root)) == 3
    root.settle()
    assert root.holes == 6


def test_a_paused_part_goes_on_with_the_same_item() -> None:
    stream = sk.from_sequence(range(100)).stream(epochs=1).filter(likes).map(abs)
    root = LaneIterator(stream.stage, 0)
    wanted = [item for _, item in delivered(stream)]
    found = []
    for number in range(len(wanted)):
        found.append(next(iter(root))[1])
        if number % 5 == 0:
            root.pause()
    assert found == wanted


def test_a_resumed_run_is_read_to_the_end(tmp_path: Path) -> None:
    (part,) = files_of(tmp_path, [1000])
    stream = sk.mix(
        [part.stream(epochs=1), part.shuffle(1).stream(epochs=3)], weights=[1, 1], seed=0, stop="all"
    )
    pairs, states = run_of(stream, 700)
    wanted = delivered(stream)
    check_same(pairs + following(resumed(stream, states[700])), wanted)
