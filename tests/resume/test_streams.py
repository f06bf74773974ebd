"""resume="rows" of streams: what waits in stages comes first, and no row comes twice in an epoch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.resume.datasets import Batches, Delivered, pipeline, through_json
from tests.resume.streams import bare, dropped, last, resumed, stamped_each, stamps_in, stream
from tests.thrift import some

import seekable as sk
from seekable.state.canonical import fingerprint_of
from seekable.state.descriptions import PipelineDescription
from seekable.state.document import StreamState
from seekable.stream import Lane, SameItems, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("forked_programs")

UNSHRUNK = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def loader_of(made: sk.Stream | sk.Dataset, random: Random) -> sk.Loader:
    workers = random.choice([0, 0, 2])
    return sk.Loader(
        made,
        batch_size=random.randint(1, 5),
        collate=list,
        prefetch=0,
        workers=sk.Workers(workers, type="thread"),
    )


@settings(UNSHRUNK, max_examples=some(25, of=3))
@given(st.integers(0, 2**32))
def test_every_epoch_that_was_begun_is_finished_and_no_row_comes_twice(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(20, 60) for name in random.choice(["a", "ab", "abc"])}
    came, state = Delivered(ignored=dropped), None
    for _ in range(random.randint(1, 4)):
        # A run over a dataset goes on as one over a stream of it, and back.
        made: sk.Stream | sk.Dataset = stream(sizes, random)
        if random.random() < 0.3:
            made = pipeline(sizes, random).map(stamped_each)
        loader = loader_of(made, random)
        if state is not None:
            loader.load_state_dict(state, resume="rows")
        batches = Batches(loader)
        items = [batches.next(random.choice([0, random.randint(0, 30)]))]
        check_goes_on_exactly(made, loader, random)
        items.append(batches.next(random.choice([0, random.randint(0, 30)])))
        came.add(sizes, [row for row, _ in stamps_in(items)])
        state = through_json(loader.state_dict())
        loader.close()
        sizes = {name: size + random.choice([0, 0, 4]) for name, size in sizes.items()}
    end = sk.Loader(last(sizes), batch_size=500, collate=list, prefetch=0)
    end.load_state_dict(state or {}, resume="rows")
    came.add(sizes, [row for row, _ in stamps_in(Batches(end).next(12))])
    came.check()


def check_goes_on_exactly(made: sk.Stream | sk.Dataset, loader: sk.Loader, random: Random) -> None:
    """A state, also one that goes on by rows, is resumed exactly; passes have other numbers then."""
    state = loader.state_dict()
    batch, steps = loader.global_batch_size, random.randint(0, 8)

    def twin(state: dict[str, Any]) -> sk.Loader:
        made_again = sk.Loader(made, batch_size=batch, collate=list, prefetch=0)
        made_again.load_state_dict(through_json(state))
        return made_again

    first, second = twin(state), twin(state)
    whole = bare(Batches(first).next(steps))
    middle = random.randint(0, steps)
    begun = bare(Batches(second).next(middle))
    third = twin(second.state_dict())
    assert begun + bare(Batches(third).next(steps - middle)) == whole
    assert third.state_dict() == first.state_dict()


def long_enough(row: str) -> bool:
    return len(row) > 3


def test_a_run_over_a_dataset_goes_on_as_a_packed_stream_and_back() -> None:
    """Nothing of the begun epoch comes twice, and what waits in buffers and open packs comes first."""
    rows = texts(40)
    first = sk.Loader(rows.shuffle(seed=1), batch_size=5, collate=list, prefetch=0)
    before = flat(Batches(first).next(2))
    chosen = rows.shuffle(seed=1).stream(epochs=1, lanes=1).filter(long_enough)
    made = chosen.shuffle(buffer=6, seed=3).batch(3)
    packed = sk.Loader(made, batch_size=2, collate=list, prefetch=0)
    with pytest.raises(sk.StateMismatch, match=r"is of a dataset, and here a stream .* resume='rows'"):
        packed.load_state_dict(first.state_dict())
    with pytest.raises(sk.StateMismatch, match=r"is of a dataset, and here a stream"):
        iter(made).load_state_dict(first.state_dict())
    packed.load_state_dict(first.state_dict(), resume="rows")
    assert packed.step == 2
    between = flat(Batches(packed).next(2))
    second = sk.Loader(rows, batch_size=1, collate=list, prefetch=0)
    with pytest.raises(sk.StateMismatch, match=r"is of a stream, and here a dataset .* resume='rows'"):
        second.load_state_dict(packed.state_dict())
    second.load_state_dict(packed.state_dict(), resume="rows")
    waiting, rest = packed.sources()[0]["in_flight"], flat(list(second))
    assert waiting >= 6
    came = [*before, *between, *rest]
    assert len({*came}) == len(came)
    assert all(not long_enough(row) for row in {*rows} - {*came})
    drawn = [row for row in rows.shuffle(seed=1) if long_enough(row) and row not in before]
    assert {*rest[:waiting]} == {*drawn[: len(between) + waiting]} - {*between}


def texts(count: int) -> sk.Dataset:
    return sk.from_sequence([f"{row:02d}." * (1 + row % 3) for row in range(count)], version="texts")


def in_words(text: str) -> list[str]:
    return [f"{text[:2]}-{number}" for number in range(len(text) // 3)]


def words(seed: int, buffer: int) -> sk.Stream:
    return (
        texts(40)
        .shuffle(seed=seed)
        .stream(lanes=4, epochs=1)
        .flatten(in_words)
        .shuffle(buffer=buffer, seed=seed)
    )


@pytest.mark.parametrize("worker_type", [pytest.param("process", marks=pytest.mark.exhaustive), "thread"])
def test_workers_note_what_was_delivered(worker_type: Any) -> None:
    alone = sk.Loader(words(1, 6), batch_size=4, collate=list, prefetch=0)
    with sk.Loader(
        words(1, 6), batch_size=4, collate=list, workers=sk.Workers(2, type=worker_type)
    ) as together:
        first, second = Batches(alone), Batches(together)
        for _ in range(9):
            assert first.next(1) == second.next(1)
            assert alone.state_dict() == together.state_dict()
    assert alone.state_dict()["given"]
    state = alone.state_dict()
    rests = []
    for workers in (0, 2):
        with sk.Loader(
            words(2, 9), batch_size=3, collate=list, workers=sk.Workers(workers, type=worker_type)
        ) as loader:
            loader.load_state_dict(state, resume="rows")
            rests.append(list(loader))
    assert rests[0] == rests[1]


def for_ever(seed: int, buffer: int) -> sk.Stream:
    stream = texts(40).shuffle(seed=seed).stream(lanes=4).flatten(in_words)
    return stream.shuffle(buffer=buffer, seed=seed) if buffer else stream


def ranks_of(made: sk.Stream, world_size: int, folder: Path, **resume: Any) -> list[Batches]:
    loaders = [
        sk.Loader(made, global_batch_size=8, rank=rank, world_size=world_size, collate=list, prefetch=0)
        for rank in range(world_size)
    ]
    for loader in loaders:
        sk.load_state(folder, loader, **resume)
    return [Batches(loader) for loader in loaders]


def test_ranks_go_on_by_rows_and_other_ranks_exactly(tmp_path: Path) -> None:
    ranks = ranks_of(for_ever(1, 6), 2, tmp_path)
    before = flat([rank.next(3) for rank in ranks])
    with pytest.raises(
        sk.errors.CorruptState, match="needs all lanes of the state, and it lacks lane 1 of 4"
    ):
        ranks[0].loader.load_state_dict(changed(ranks[0].loader), resume="rows")
    for rank in ranks:
        sk.save_state(tmp_path, rank.loader)
    delivered = {word[:2] for word in before}
    came = []
    for resumed_on, then_on in ((1, 4), (4, 2)):
        folder = tmp_path / f"{resumed_on}-{then_on}"
        others = ranks_of(for_ever(2, 0), resumed_on, tmp_path, resume="rows")
        begun = flat([rank.next(3) for rank in others])
        assert not delivered & {word[:2] for word in begun}
        for rank in others:
            sk.save_state(folder, rank.loader)
        rest = flat([rank.next(9) for rank in ranks_of(for_ever(2, 0), then_on, folder)])
        assert {word[:2] for word in [*before, *begun, *rest]} == {f"{row:02d}" for row in range(40)}
        came.append((sorted(begun), sorted(rest)))
    assert came[0] == came[1]


def changed(loader: sk.Loader) -> dict[str, Any]:
    """Return what makes a rank's share that of another stream, with a description of it."""
    state = StreamState.parse(loader.state_dict(partial=True))
    described = for_ever(7, 6).describe()
    text = PipelineDescription(described).text()
    return structs.replace(state, fingerprint=fingerprint_of(described), pipeline=text).document()


def flat(items: Any) -> list[str]:
    return [items] if isinstance(items, str) else [word for each in items for word in flat(each)]


CHILD = """
import json, sys
from tests.resume.streams import resumed

print(json.dumps([resumed(seed, state) for seed, state in json.load(sys.stdin)]))
"""


def test_a_new_process_goes_on_by_rows_as_the_same_one() -> None:
    cases = []
    for seed in range(some(12, of=2)):
        loader = loader_of(stream({"a": 33, "b": 40}, Random(seed)), Random(seed))
        Batches(loader).next(seed)
        cases.append((seed + 100, loader.state_dict()))
        loader.close()
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout) == [resumed(seed, state) for seed, state in cases]


def test_what_the_last_run_was_is_over_with_the_run() -> None:
    loader = sk.Loader(words(1, 6), batch_size=4, collate=list, prefetch=0)
    Batches(loader).next(3)
    again = sk.Loader(words(2, 6), batch_size=4, collate=list, prefetch=0)
    again.load_state_dict(loader.state_dict(), resume="rows")
    assert len(flat(list(again))) < len(flat(list(sk.Loader(words(2, 6), batch_size=4, collate=list))))
    state = again.state_dict()
    assert "rows" not in state
    assert list(again) == list(sk.Loader(words(2, 6), batch_size=4, collate=list))


def test_an_iterator_refuses_what_went_on_by_rows() -> None:
    loader = sk.Loader(words(1, 6), batch_size=4, collate=list, prefetch=0)
    Batches(loader).next(3)
    again = sk.Loader(words(2, 6), batch_size=4, collate=list, prefetch=0)
    again.load_state_dict(loader.state_dict(), resume="rows")
    with pytest.raises(sk.errors.InvalidArgument, match=r"went on by rows: load it into a sk\.Loader"):
        iter(words(2, 6)).load_state_dict(again.state_dict())


def test_what_only_filled_a_batch_was_delivered_before() -> None:
    """Lanes of unequal length, of which the short ones begin anew to fill slots."""
    made = sk.from_sequence([f"{row:02d}" for row in range(22)], version="pad").stream(lanes=4, epochs=1)
    for steps in range(1, 7):
        loader = sk.Loader(made.shuffle(buffer=3, seed=1), batch_size=4, end="pad", collate=list, prefetch=0)
        before = flat(Batches(loader).next(steps))
        again = sk.Loader(made.shuffle(buffer=2, seed=2), batch_size=4, collate=list, prefetch=0)
        again.load_state_dict(loader.state_dict(), resume="rows")
        rest = flat(list(again))
        assert {*before, *rest} == {f"{row:02d}" for row in range(22)}
        assert not {*before} & {*rest}
        assert len(rest) == len({*rest})


@dataclass(frozen=True, eq=False, repr=False)
class EverySecond(SameItems):
    """A stage of a user."""

    kind: ClassVar[str] = "tests.every-second"

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then(EverySecond())"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        for token, item in lane.inputs[0]:
            lane.state["odd"] = odd = not lane.state.get("odd", False)
            if odd:
                yield token, item


def test_a_stage_of_a_user_goes_on_where_the_new_stream_has_it_too() -> None:
    def every_second(seed: int) -> sk.Stream:
        stream = texts(40).shuffle(seed=seed).stream(epochs=1)
        return stream.then(EverySecond()).shuffle(buffer=5, seed=seed)

    loader = sk.Loader(every_second(1), batch_size=4, collate=list, prefetch=0)
    before = flat(Batches(loader).next(3))
    state = through_json(loader.state_dict())
    again = sk.Loader(every_second(2), batch_size=4, collate=list, prefetch=0)
    again.load_state_dict(state, resume="rows")
    rest = flat(list(again))
    assert rest
    assert not set(before) & set(rest)
    without = sk.Loader(texts(40).stream(epochs=1), batch_size=4, collate=list, prefetch=0)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"stages that are known here, and 'tests\.every-second'"
    ):
        without.load_state_dict(state, resume="rows")
