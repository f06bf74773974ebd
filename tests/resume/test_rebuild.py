"""A pipeline that was rebuilt from its description has the order of the one that was described."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.concrete import node_classes
from tests.dataset.graphs import Graph, graphs
from tests.index.corpus import fill
from tests.test_closed_world import BUILDERS, endless

import seekable as sk
from seekable.formats.registry import FORMATS, has_runs
from seekable.formats.shar.shar_source import SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.index.table_indexer import is_table_indexer
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.sources.sequence_source import SequenceSource
from seekable.resume.from_description import (
    REBUILT,
    UNKNOWN_ROWS,
    described_sources,
    rebuild,
)
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.resume.relocate import FileSpan, find_again
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.nodes.contract import Node
    from seekable.nodes.files.leaf import FilesLeaf

LEAVES = {
    FileSource.kind,
    SampleSource.kind,
    SequenceSource.kind,
    SharSource.kind,
    TableSource.kind,
    TokenSource.kind,
}


def described(dataset: sk.Dataset) -> dict[str, Any]:
    """Return a description as it comes from a file."""
    description: dict[str, Any] = json.loads(canonical_json(dataset.node.describe(None)))
    return description


def kinds_in(description: dict[str, Any]) -> set[str]:
    below = (kinds_in(child) for child in description.get("of", ()))
    return {description["kind"]}.union(*below)


def bare(place: Any) -> Any:
    """Return the row of each place, and its file, nested as they are."""
    if isinstance(place, list | tuple):
        return [bare(part) for part in place]
    return place.path, place.row


def again_of(description: dict[str, Any], **arguments: Any) -> sk.Dataset:
    return sk.Dataset(rebuild(description, **arguments))


def assert_same_order(dataset: sk.Dataset, again: sk.Dataset, positions: list[int]) -> None:
    at = np.array(positions, dtype=np.int64)
    assert bare(again.plan(at).locate()) == bare(dataset.plan(at).locate())
    assert bare([again.node.record(position) for position in positions]) == bare(dataset.plan(at).locate())


def test_every_kind_of_node_is_rebuilt_or_is_listed_with_a_reason() -> None:
    kinds = {kind.kind for kind in node_classes()}
    ours = {PlaceholderMap.kind, PlaceholderSource.kind}
    assert REBUILT.keys() | UNKNOWN_ROWS.keys() | LEAVES | ours == kinds
    assert not REBUILT.keys() & UNKNOWN_ROWS.keys()


def test_every_format_has_blocks_that_a_description_tells_or_is_refused() -> None:
    # Blocks decide the order of windowed shuffles: a format with others must not be taken for one of these.
    assert {name for name, form in FORMATS.items() if not is_table_indexer(form.scanner)} == set(
        filter(has_runs, FORMATS)
    )


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
    dataset = BUILDERS[kind][number](999, tmp_path)
    description = described(dataset)
    standing = kinds_in(description) & UNKNOWN_ROWS.keys()
    if standing:
        (one,) = standing
        with pytest.raises(sk.InvalidArgument, match=rf"order of {one} .* digest .* module:function"):
            rebuild(description)
        return
    again = sk.Dataset(rebuild(description))
    assert (again.fingerprint, again.size, again.steady) == (
        dataset.fingerprint,
        dataset.size,
        dataset.steady,
    )
    rows = [0, 1, 500, len(dataset) - 1, len(dataset), 3 * len(dataset) + 7]
    if any(place[0].startswith("/") for place in flat(bare(dataset.locate([0])))):
        same = [[(path.rpartition("/")[2], row)] for path, row in bare(dataset.plan(np.array(rows)).locate())]
        found = bare(again.plan(np.array(rows)).locate())
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
    if kinds_in(description) & UNKNOWN_ROWS.keys():
        with pytest.raises(sk.InvalidArgument, match="cannot be told from a description"):
            rebuild(description)
        return
    again = sk.Dataset(rebuild(description))
    assert again.fingerprint == graph.dataset.fingerprint
    assert (again.size, again.steady, again.lanes) == (
        graph.dataset.size,
        graph.dataset.steady,
        graph.dataset.lanes,
    )
    assert again.node.blocks.tolist() == graph.dataset.node.blocks.tolist()
    size = graph.dataset.size or 0
    assert_same_order(graph.dataset, again, list(range(epoch * size, (epoch + 1) * size)))


def test_a_schedule_and_no_end() -> None:
    again = again_of(described(endless()))
    assert again.size is None
    assert_same_order(endless(), again, list(range(200)))


def test_windows_follow_the_files(tmp_path: Path) -> None:
    fill(tmp_path, files=4, rows=1500)
    dataset = sk.open(tmp_path).map(str).shuffle(seed=5, window=2, lanes=3)
    again = again_of(described(dataset))
    places = [(tmp_path.joinpath(path).as_posix(), row) for path, row in bare(again.locate(list(range(99))))]
    assert places == bare(dataset.locate(list(range(99))))
    other = sk.from_sequence(range(dataset.size or 0), version="of one file").shuffle(
        seed=5, window=2, lanes=3
    )
    assert [row for _, row in bare(again_of(described(other)).locate(list(range(99))))] != [
        row for _, row in places
    ]


def test_the_node_that_stands_in_the_way_is_named() -> None:
    dataset = sk.concat([sk.from_sequence("abc"), sk.from_sequence("def").select([2, 0]).shuffle(seed=1)])
    with pytest.raises(
        sk.InvalidArgument, match=r"the order of concat\[1\] > shuffle > select cannot be told"
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
    with pytest.raises(sk.CorruptState, match=why):
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
