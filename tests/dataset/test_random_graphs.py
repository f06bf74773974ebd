"""Whatever nodes are put together, the dataset is what its model is."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.dataset.graphs import Graph, graphs

from seekable.index.location import Location

EPOCHS = 3


def located(place: Any) -> Any:
    """Return a model's place as a Location, or a list or tuple of them."""
    if isinstance(place, list):
        return [located(part) for part in place]
    if isinstance(place[0], tuple | list):
        return tuple(located(part) for part in place)
    name, row = place
    return Location(f"<builtins.list {name}>", row, 0, 0)


def flat(places: Any) -> list[Location]:
    if isinstance(places, Location):
        return [places]
    return [place for part in places for place in flat(part)]


@given(graphs(), st.data())
def test_a_graph_is_its_model(graph: Graph, data: st.DataObject) -> None:
    dataset, n = graph.dataset, graph.size
    items = [item for epoch in range(EPOCHS) for item in graph.epoch(epoch)]
    records = [item.record for item in items]
    event(f"{type(dataset).__name__}")

    assert dataset._node.size == n
    assert bool(dataset) == bool(n)
    assert dataset._node.steady == graph.steady
    if graph.steady:
        assert records[:n] == records[n : 2 * n] == records[2 * n :]
    assert list(dataset) == records[:n]
    assert dataset._node.fetch(np.arange(EPOCHS * n)) == records
    if not n:
        return

    positions = data.draw(st.lists(st.integers(0, EPOCHS * n - 1), max_size=12))
    assert dataset._node.fetch(np.array(positions, dtype=np.int64)) == [records[p] for p in positions]
    assert [dataset._node.record(p) for p in positions] == [records[p] for p in positions]
    rows = data.draw(st.lists(st.integers(-n, n - 1), max_size=5))
    assert dataset[rows] == dataset.__getitems__(rows) == [dataset[row] for row in rows]
    assert [dataset[row] for row in rows] == [records[:n][row] for row in rows]

    plan = dataset._node.plan(np.arange(EPOCHS * n))
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, EPOCHS * n)] * 2)))
    assert len(plan) == EPOCHS * n
    assert len(plan.slice(start, stop)) == stop - start
    assert plan.slice(start, stop).read() == records[start:stop]
    middle = (stop - start) // 2
    assert plan.slice(start, stop).slice(middle, stop - start).read() == records[start + middle : stop]
    assert plan.read() == records


@given(graphs(), st.data())
def test_records_are_located_and_found_again(graph: Graph, data: st.DataObject) -> None:
    dataset, n = graph.dataset, graph.size
    assume(n)
    epoch = data.draw(st.integers(0, EPOCHS - 1))
    places = [[located(item.place) for item in graph.epoch(e)] for e in range(EPOCHS)]
    assert dataset._node.plan(np.arange(EPOCHS * n)).locate() == [place for part in places for place in part]
    assert dataset.locate(n - 1) == dataset.locate(-1) == places[0][-1]
    candidates = list({place: None for part in places[epoch] for place in flat(part)})
    if not candidates:
        return
    chosen = data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=3))
    # And rows of the same sources that the graph may have left out.
    for place in chosen + [replace(place, row=data.draw(st.integers(0, 99))) for place in chosen]:
        wanted = [epoch * n + row for row, part in enumerate(places[epoch]) if place in flat(part)]
        assert dataset.find(place.path, place.row, epoch=epoch) == wanted


@given(graphs())
def test_a_copy_is_the_same_pipeline(graph: Graph) -> None:
    dataset = graph.dataset
    list(dataset._node.plan(np.arange(graph.size)).read())
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.fingerprint == dataset.fingerprint
    assert repr(copy) == repr(dataset)
    assert copy.explain() == dataset.explain()
    assert copy._node.describe(None) == dataset._node.describe(None)
    assert list(copy) == list(dataset)
