"""A pipeline that was rebuilt from its description has the order of the one that was described."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.concrete import node_classes
from tests.dataset.graphs import Graph, graphs
from tests.index.corpus import fill
from tests.test_closed_world import BUILDERS, endless
from tests.thrift import ALL

import seekable as sk
from seekable.formats.table import NODE_HOMES
from seekable.nodes.bases import ElementwiseNode, UnaryNode, leaves_of
from seekable.nodes.kinds import KINDS, node_class
from seekable.nodes.node import LeafNode, Node
from seekable.order.blocks import default_blocks_within
from seekable.resume.continued import Continued
from seekable.resume.from_description import described_sources, rebuild, rebuild_loosely
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.resume.relocate import FileSpan, find_again
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.nodes.files.leaf import FilesLeaf


UNKNOWN = {kind for kind in KINDS if node_class(kind).order_unknown}
"""The kinds of nodes whose order a description lacks."""


def described(dataset: sk.Dataset) -> dict[str, Any]:
    """Return a description as it comes from a file."""
    description: dict[str, Any] = json.loads(canonical_json(dataset._node.describe(None)))
    return description


def kinds_in(description: dict[str, Any]) -> set[str]:
    """Return the kinds of nodes in a description whose rows do not stand in it."""
    below = (kinds_in(child) for child in description.get("of", ()))
    own = {description["kind"]} if "list" not in description else set()
    return own.union(*below)


def bare(place: Any) -> Any:
    """Return the row of each place, and its file, nested as they are."""
    if isinstance(place, list | tuple):
        return [bare(part) for part in place]
    return place.path, place.row


def again_of(description: dict[str, Any], **arguments: Any) -> sk.Dataset:
    return sk.Dataset(rebuild(description, **arguments))


def assert_same_order(dataset: sk.Dataset, again: sk.Dataset, positions: list[int]) -> None:
    at = np.array(positions, dtype=np.int64)
    assert bare(again._node.plan(at).locate()) == bare(dataset._node.plan(at).locate())
    assert bare([again._node.record(position) for position in positions]) == bare(
        dataset._node.plan(at).locate()
    )


def test_every_class_of_nodes_is_that_of_its_kind() -> None:
    ours = {Continued, PlaceholderMap, PlaceholderSource}
    assert {node_class(kind) for kind in KINDS} == node_classes() - ours
    assert all(node_class(kind).kind == kind for kind in KINDS)


def test_every_kind_of_node_is_rebuilt_or_says_why_not() -> None:
    for kind in {node_class(kind) for kind in KINDS}:
        is_rebuilt = kind.from_arguments.__func__ is not Node.from_arguments.__func__  # type: ignore[attr-defined]
        is_map = issubclass(kind, ElementwiseNode) and issubclass(kind, UnaryNode)
        assert is_rebuilt or is_map or kind.order_unknown or issubclass(kind, LeafNode), kind


def test_what_a_description_says_of_blocks_is_true_of_every_source(tmp_path: Path) -> None:
    # Blocks decide the order of windowed shuffles: they must not be made up for a source that has others.
    for kind in map(node_class, sorted(KINDS)):
        if not (issubclass(kind, LeafNode) and kind.in_runs):
            continue
        (folder := tmp_path / kind.kind).mkdir()
        (leaf,) = leaves_of(BUILDERS[kind][0](1100, folder)._node)
        (tree,) = described_sources(leaf.describe(None))
        records = [file["records"] for file in tree["files"]] if "files" in tree else [tree["length"]]
        assert leaf.blocks.tolist() == default_blocks_within(np.array(records, dtype=np.int64)).tolist()


@pytest.mark.parametrize("kind", sorted(NODE_HOMES))
def test_a_subject_that_is_hidden_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = NODE_HOMES[kind].partition(":")[0]
    monkeypatch.setitem(sys.modules, home, None)
    tree = {"kind": "shuffle", "seed": 1, "of": [{"kind": kind, "count": 3, "of": []}]}
    for way in (rebuild, rebuild_loosely):
        with pytest.raises(sk.MissingDependency, match=r"needs (\S+), which is not installed") as raised:
            way(tree)
        assert home.startswith(str(raised.value).split()[2].rstrip(","))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(kind, number, id=f"{kind.__name__}-{number}")
        for kind, builders in BUILDERS.items()
        for number in range(len(builders))
        if kind not in (PlaceholderMap, PlaceholderSource)
    ],
)
def test_each_kind_of_node_has_its_order_again(kind: type[Node], number: int, tmp_path: Path) -> None:
    dataset = BUILDERS[kind][number](999 if ALL else 99, tmp_path)
    description = described(dataset)
    standing = kinds_in(description) & UNKNOWN
    if standing:
        (one,) = standing
        with pytest.raises(sk.errors.InvalidArgument, match=rf"order of {one} .* digest .* module:function"):
            rebuild(description)
        return
    again = sk.Dataset(rebuild(description))
    assert (again.fingerprint, again._node.size, again._node.steady) == (
        dataset.fingerprint,
        dataset._node.size,
        dataset._node.steady,
    )
    rows = [0, 1, 500, len(dataset) - 1, len(dataset), 3 * len(dataset) + 7]
    if any(place[0].startswith("/") for place in flat(bare(dataset.locate([0])))):
        same = [
            [(path.rpartition("/")[2], row)]
            for path, row in bare(dataset._node.plan(np.array(rows)).locate())
        ]
        found = bare(again._node.plan(np.array(rows)).locate())
        assert [[(path.rpartition("/")[2], row)] for path, row in found] == same
    else:
        assert_same_order(dataset, again, rows)


def flat(places: Any) -> list[tuple[str, int]]:
    if isinstance(places, tuple):
        return [places]
    return [place for part in places for place in flat(part)]


@given(graph=graphs(), epoch=st.integers(0, 3))
def test_any_pipeline_has_its_order_again(graph: Graph, epoch: int) -> None:
    description = described(graph.dataset)
    if kinds_in(description) & UNKNOWN:
        with pytest.raises(sk.errors.InvalidArgument, match="cannot be told from a description"):
            rebuild(description)
        return
    again = sk.Dataset(rebuild(description))
    assert again.fingerprint == graph.dataset.fingerprint
    assert (again._node.size, again._node.steady, again.lanes) == (
        graph.dataset._node.size,
        graph.dataset._node.steady,
        graph.dataset.lanes,
    )
    assert again._node.blocks.tolist() == graph.dataset._node.blocks.tolist()
    size = graph.dataset._node.size or 0
    assert_same_order(graph.dataset, again, list(range(epoch * size, (epoch + 1) * size)))


def test_a_schedule_and_no_end() -> None:
    again = again_of(described(endless()))
    assert again._node.size is None
    assert_same_order(endless(), again, list(range(200)))


def test_windows_follow_the_files(tmp_path: Path) -> None:
    fill(tmp_path, files=4, rows=1500)
    dataset = sk.open(tmp_path).map(str).shuffle(seed=5, window=2, lanes=3)
    again = again_of(described(dataset))
    places = [(tmp_path.joinpath(path).as_posix(), row) for path, row in bare(again.locate(list(range(99))))]
    assert places == bare(dataset.locate(list(range(99))))
    other = sk.from_sequence(range(dataset._node.size or 0), version="of one file").shuffle(
        seed=5, window=2, lanes=3
    )
    assert [row for _, row in bare(again_of(described(other)).locate(list(range(99))))] != [
        row for _, row in places
    ]


def test_the_node_that_stands_in_the_way_is_named() -> None:
    dataset = sk.concat([sk.from_sequence("abc"), sk.from_sequence("def").select([2, 0]).shuffle(seed=1)])
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"the order of concat\[1\] > shuffle > select cannot be told"
    ):
        again_of(described(dataset))


def broken(**changes: Any) -> dict[str, Any]:
    return {**described(sk.from_sequence("abc").shuffle(seed=1)), **changes}


@pytest.mark.parametrize(
    ("description", "why"),
    [
        ({}, "KeyError"),
        ({"kind": "shuffle"}, "KeyError"),
        (broken(kind="sort"), "'sort' is not known to this version"),
        (broken(speed=3), "arguments that this version of seekable does not know"),
        (broken(of=[]), "IndexError"),
        (broken(seed="x"), "not the description of a pipeline"),
    ],
)
def test_what_is_no_description_of_this_version_is_refused(description: dict[str, Any], why: str) -> None:
    with pytest.raises(sk.errors.CorruptState, match=why):
        rebuild(description)


def test_sources_stand_in_the_order_of_the_description() -> None:
    parts = [sk.from_sequence(range(n)).shuffle(seed=n) for n in (3, 1, 2)]
    description = described(sk.zip([sk.concat(parts), sk.from_sequence(range(6))]))
    assert [source["length"] for source in described_sources(description)] == [3, 1, 2, 6]


def finder(root: Path, number: int) -> Any:
    return lambda description: unwrapped(
        find_again(description, [FileSpan((str(root),), None, number)], index_dir=None)
    )


def unwrapped(found: FilesLeaf | str) -> FilesLeaf | None:
    return None if isinstance(found, str) else found


def test_files_that_are_found_again_give_locations(tmp_path: Path) -> None:
    fill(tmp_path)
    dataset = sk.open(tmp_path).shuffle(seed=1)
    again = again_of(described(dataset), find=finder(tmp_path, 3))
    assert again.locate([0, 5, 17]) == dataset.locate([0, 5, 17])
    path, row = tmp_path / "part-1.jsonl", 4
    assert again.find(path, row) == dataset.find(path, row)
    assert again_of(described(dataset)).find(path, row) == dataset.find(path, row)
