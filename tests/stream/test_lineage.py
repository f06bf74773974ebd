"""What resume="rows" knows of a stream: which rows its tokens are of, and which of them wait."""

from __future__ import annotations

import itertools
import json

import pytest
from tests.stream import functions
from tests.stream.matrix import BUILDERS
from tests.thrift import sample

import seekable as sk
from seekable.formats.lines.line_stream import FromLines
from seekable.state.canonical import canonical_json
from seekable.stream.iterable import FromIterable
from seekable.stream.lane import LaneIterator
from seekable.stream.lineage import (
    PartlyDelivered,
    described_lineage,
    lineage_of,
    rows_held,
    splitting_lineage,
)
from seekable.stream.take import RepeatItems

WITHOUT_ROWS = {FromIterable, FromLines, RepeatItems}

EACH = [
    pytest.param(kind, number, id=f"{kind.__name__}-{number}")
    for kind, builders in BUILDERS.items()
    for number in range(len(builders))
]


@pytest.mark.parametrize(("kind", "number"), EACH)
def test_descriptions_tell_the_rows_of_tokens_as_the_stages_do(kind: type, number: int) -> None:
    stream = BUILDERS[kind][number](29, 2)
    described = json.loads(canonical_json(stream.describe()))
    if kind in WITHOUT_ROWS:
        with pytest.raises(sk.errors.InvalidArgument, match="resume='rows'"):
            lineage_of(stream.stage)
        with pytest.raises(sk.errors.InvalidArgument, match="resume='rows'"):
            described_lineage(described)
        return
    alive, told = lineage_of(stream.stage), described_lineage(described)
    assert [lineage.kind for lineage in alive.all()] == [lineage.kind for lineage in told.all()]
    assert [name for name, _ in alive.sources()] == [name for name, _ in told.sources()]
    lane = LaneIterator(stream.stage, 1)
    for token, _ in itertools.islice(lane, 40):
        rows = list(alive.rows(token))
        assert rows
        assert list(told.rows(token)) == rows
        assert rows_held(told, lane.states()) == rows_held(alive, lane.states())


@pytest.mark.parametrize(("kind", "number"), sample(EACH, of=2))
def test_what_was_drawn_waits_or_was_delivered_or_is_gone(kind: type, number: int) -> None:
    """Nothing that waits is unknown: at each cut, what comes later is what waits, and what is drawn later."""
    if kind in WITHOUT_ROWS:
        return
    stream = BUILDERS[kind][number](29, 2)
    lineage, lane = lineage_of(stream.stage), LaneIterator(stream.stage, 1)
    pairs = list(LaneIterator(stream.stage, 1))
    sources = [place for place, each in enumerate(lineage.all()) if not each.inputs]
    later = [set(lineage.rows(token)) for token, _ in pairs]
    for cut, _ in enumerate(lane):
        states = lane.states()
        drawn = {
            (source, position)
            for source, place in enumerate(sources)
            for position in _drawn(lane, place, states[place].values.get("at", 0))
        }
        coming = set().union(*later[cut + 1 :])
        assert coming & drawn <= set(rows_held(lineage, states))


def _drawn(lane: LaneIterator, place: int, count: int) -> list[int]:
    """Return the positions that a source gave first."""
    source = list(lane.walk())[place].stage
    return [token for token, _ in itertools.islice(LaneIterator(source, lane.number), count)]


def test_only_streams_that_split_items_note_what_they_delivered() -> None:
    whole = sk.from_sequence(["ab", "cd"] * 50).stream(lanes=2)
    assert splitting_lineage(whole.shuffle(buffer=5, seed=1).batch(2).stage) is None
    assert splitting_lineage(whole.flatten().repeat(2).stage) is None
    assert splitting_lineage(whole.flatten().map(str.upper).stage) is not None


def test_what_was_delivered_is_forgotten_when_nothing_of_it_waits() -> None:
    stream = sk.from_sequence(range(10_000)).stream(epochs=1).map(functions.document).flatten()
    stream = stream.shuffle(buffer=20, seed=1)
    run, lineage = iter(stream), lineage_of(stream.stage)
    for _ in itertools.islice(run, 8000):
        pass
    (noted,) = run._partly_delivered._rows.values()
    assert len(noted) < 3000
    state = run.state_dict()
    (given,) = state["given"].values()
    held = rows_held(lineage, run._iterators[0].states())
    assert 0 < len(given) <= len(held) <= 21
    assert {tuple(row) for row in given} <= set(held)


def test_a_state_with_what_was_delivered_is_restored_with_it() -> None:
    stream = sk.from_sequence(["abc", "de", "fgh"] * 9).stream(epochs=1).flatten().shuffle(buffer=5, seed=1)
    run, again = iter(stream), iter(stream)
    for _ in range(40):
        next(run)
        again.load_state_dict(json.loads(json.dumps(run.state_dict())))
        assert again.state_dict() == run.state_dict()


def test_without_a_graph_nothing_is_noted() -> None:
    assert PartlyDelivered(None).document({}) is None
