"""Blocks map through nodes: what is in one block lies in one block of one source."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from tests.dataset.common import endless, numbers
from tests.dataset.graphs import graphs
from tests.thrift import sample

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dataset.graphs import Graph


@given(graphs())
def test_blocks_are_runs_of_all_rows(graph: Graph) -> None:
    edges = graph.dataset._node.blocks.tolist()
    assert edges[0] == 0
    assert edges[-1] == graph.size
    assert all(a < b for a, b in pairwise(edges))


def read(dataset: sk.Dataset, wide: int = 1024) -> list[set[Any]]:
    """Return for each block of a dataset of numbers the blocks of the source that it is of."""
    return [{record // wide for record in dataset[a:b]} for a, b in pairwise(dataset._node.blocks.tolist())]


def kept(dataset: sk.Dataset) -> None:
    """Check that each block is of one block of the source, and that neighbours are not of the same."""
    blocks = read(dataset)
    assert all(len(block) == 1 for block in blocks)
    assert all(a != b for a, b in pairwise(blocks))


def test_a_source_has_runs_of_1024_rows() -> None:
    assert numbers(2500)._node.blocks.tolist() == [0, 1024, 2048, 2500]
    assert numbers(0)._node.blocks.tolist() == [0]


def test_blocks_do_not_cross_files(tmp_path: Path) -> None:
    for name, count in (("a", 1500), ("b", 0), ("c", 3), ("d", 1024)):
        (tmp_path / f"{name}.jsonl").write_text("{}\n" * count)
    assert sk.open(tmp_path)._node.blocks.tolist() == [0, 1024, 1500, 1503, 2527]


def test_nodes_that_keep_rows_beside_each_other_keep_blocks() -> None:
    source = numbers(5000)
    kept(source.map(abs))
    kept(source.map_batches(list))
    kept(source.skip(1000))
    kept(source.take(1025))
    kept(source[::-1])
    kept(source[4500:700:-3])
    kept(source.shard(2, of=7))
    kept(source.repeat(1))
    kept(source.epoch(3))
    kept(source.split({"a": 0.3, "b": 0.7}, seed=1)["a"])
    kept(source.select(np.arange(0, 5000, 11)))
    assert source.repeat(2)._node.blocks.tolist() == [
        0,
        1024,
        2048,
        3072,
        4096,
        5000,
        6024,
        7048,
        8072,
        9096,
        10000,
    ]
    assert source.batch(100)._node.blocks.tolist() == [0, 11, 21, 31, 41, 50]
    assert sk.zip([source, source.map(abs)])._node.blocks.tolist() == source._node.blocks.tolist()
    assert sk.concat([numbers(1030), numbers(3)])._node.blocks.tolist() == [0, 1024, 1030, 1033]


def test_nodes_that_tear_rows_apart_have_runs_of_1024() -> None:
    source = sk.concat([numbers(700), numbers(700)])
    for dataset in (
        source.shuffle(1),
        source.shuffle(1, fixed=True),
        source.shuffle(1, window=2, lanes=2),
        source.interleave(lanes=2),
        source.select([*range(700, 1400), *range(700)]),
        sk.mix([source, source], weights=[1, 1], seed=0).take(1400),
    ):
        assert dataset._node.blocks.tolist() == [0, 1024, 1400]
    with pytest.raises(sk.errors.EndlessDataset):
        _ = endless()._node.blocks


def test_a_split_part_has_blocks_with_all_its_rows() -> None:
    whole = numbers(5000)
    parts = whole.split({"a": 0.1, "b": 0.9}, seed=4)
    assert sum(len(block) for block in read(parts["b"])) == 5


@pytest.mark.parametrize(
    ("dataset", "lanes"),
    [
        (numbers(100), 1),
        (numbers(100).shuffle(1), 1),
        (numbers(100).shuffle(1, window=2), 1),
        (numbers(100).shuffle(1, window=2, lanes=8), 8),
        (numbers(100).interleave(lanes=6), 6),
        (numbers(100).interleave(lanes=6).map(abs).take(50).epoch(1).repeat(2), 6),
        (numbers(100).interleave(lanes=6).skip(1), 1),
        (numbers(100).interleave(lanes=6).shuffle(1), 1),
        (numbers(100).interleave(lanes=6).batch(6), 1),
        (sk.concat([numbers(100).interleave(lanes=6)] * 2), 1),
        (sk.mix([numbers(100).interleave(lanes=6), numbers(100).interleave(lanes=4)], seed=0), 12),
        (
            sk.mix(
                [numbers(100).interleave(lanes=6), numbers(100).interleave(lanes=4)], weights=[1, 0], seed=0
            ),
            6,
        ),
        (sk.zip([numbers(100).interleave(lanes=6), numbers(100)]), 6),
    ],
)
def test_lanes(dataset: sk.Dataset, lanes: int) -> None:
    assert dataset.lanes == lanes


def test_a_mixture_drawn_by_lanes_leaves_each_source_its_lanes() -> None:
    """Within an epoch, what a lane of the mixture draws of a source comes from one lane of the source."""
    sources = [
        sk.from_sequence(range(80_000), version="a").shuffle(1, window=2, lanes=8),
        sk.from_sequence(range(100_000, 140_000), version="b").shuffle(2, window=2, lanes=4),
    ]
    mixed = sk.mix(sources, weights=[2, 1], seed=0)
    places = [{record: row for row, record in enumerate(source)} for source in sources]
    records = list(mixed)
    for lane in range(8):
        drawn = [[places[i][r] for r in records[lane::8] if r in places[i]] for i in range(2)]
        assert {place % 8 for place in drawn[0]} == {lane}
        assert {place % 4 for place in drawn[1]} == {lane % 4}
        # And in the order of the source.
        assert all(places == sorted(places) for places in drawn)


@pytest.mark.parametrize("mixed", [False, True])
def test_more_ranks_read_fewer_blocks_each(tmp_path: Path, *, mixed: bool) -> None:
    """Counted where bytes are read: ranges of files, for 1, 2, 4 and 8 ranks of 8 lanes."""
    parts = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"id": i}) + "\n" for i in range(32 * 1024)))
        parts.append(sk.open(path))
    if mixed:
        ds = sk.mix([part.shuffle(1, window=4, lanes=8) for part in parts], weights=[1, 1], seed=0)
    else:
        ds = sk.concat(parts).shuffle(1, window=4, lanes=8)
    read = {}
    for world in sample((1, 2, 4, 8), of=2):
        counts = []
        for rank in range(world):
            found = ds._node.plan(np.arange(rank, len(ds), world)).origins()
            counts.append(len(np.unique(found.files << 32 | found.rows // 1024)))
        read[world] = max(counts)
    assert read[1] == 64
    lanes = 16 if mixed else 8
    assert all(read[world] <= (64 + lanes) // world for world in read), read


def test_a_window_is_open_at_a_time() -> None:
    ds = numbers(64 * 1024).shuffle(1, window=4, lanes=2)
    for lane in range(2):
        rows = list(ds)[lane::2]
        blocks = [row // 1024 for row in rows]
        for block in set(blocks):
            first, last = blocks.index(block), len(blocks) - blocks[::-1].index(block)
            assert len(set(blocks[first:last])) <= 4
