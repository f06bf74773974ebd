"""Graphs in which one node stands at many places, and long chains: each node is asked once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

DIGITS = sk.from_sequence(range(10), version="digits")


def doubled(times: int) -> sk.Dataset:
    ds = DIGITS
    for _ in range(times):
        ds = ds + ds
    return ds


def shuffled(times: int) -> sk.Dataset:
    ds = DIGITS
    for seed in range(times):
        ds = ds.shuffle(seed=seed)
    return ds


def test_a_dataset_at_many_places_is_described_once() -> None:
    tree = doubled(16)._node.describe(None)
    while "of" in tree:
        first, second = tree["of"]
        assert first is second
        tree = first


def test_a_description_of_too_many_nodes_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"more than 4,194,304 nodes: ds\.repeat"):
        _ = doubled(30).fingerprint


def test_two_hundred_shuffles_are_saved_and_loaded(tmp_path: Path) -> None:
    ds = shuffled(200)
    ds.save(tmp_path / "order.json")
    loaded = sk.load_pipeline(tmp_path / "order.json", sequences={"digits": range(10)})
    assert (loaded.fingerprint, list(loaded)) == (ds.fingerprint, list(ds))


def test_a_pipeline_file_of_endless_depth_is_refused(tmp_path: Path) -> None:
    shuffled(2).save(tmp_path / "order.json")
    document = json.loads((tmp_path / "order.json").read_text())
    source, _, last = document["nodes"]
    chain = [{**last, "node": number, "child": number - 1} for number in range(1, 3000)]
    (tmp_path / "deep.json").write_text(json.dumps({**document, "nodes": [source, *chain]}))
    with pytest.raises(InvalidArgument, match="211 steps deep, and 210 are the most"):
        sk.load_pipeline(tmp_path / "deep.json", sequences={"digits": range(10)})
