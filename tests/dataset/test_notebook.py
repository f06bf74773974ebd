"""What a notebook shows of datasets, streams, loaders, places and steps: static, small, free of effects."""

from __future__ import annotations

import gzip
import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.concrete import node_classes

import seekable as sk
from seekable import _html
from seekable.index.location import Location
from seekable.nodes import traits
from seekable.nodes.contract import Leaf, OrderNode
from seekable.nodes.traits import calls_functions, reads_network

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = frozenset(
    {
        *("caption", "details", "p", "pre", "progress", "summary"),
        *("table", "tbody", "td", "th", "thead", "tr"),
    }
)
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(1)">\u202e\x00\ud800'

CALL_FUNCTIONS = {"cast", "computed", "flatten", "join", "map", "map_batches", "map_columns", "pack"}
CALL_FUNCTIONS |= {"siblings", "unify_columns", "windows"}
"""The kinds of record nodes that may call a function of the user, or are not known to call none."""


class Elements(HTMLParser):
    """The elements, attributes and text of HTML; it fails where one is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(thing: Any) -> Elements:
    html = thing._repr_html_()
    assert len(html.encode()) < _html.MOST_BYTES
    elements = Elements(html)
    assert elements.found <= ALLOWED
    assert elements.attributes <= {"aria-label", "colspan", "max", "scope", "value"}
    return elements


def refuses(record: Any) -> Any:
    raise AssertionError(record)


class Hostile:
    """An object whose every description raises."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    __str__ = __repr__


class HostileSequence(list[Any]):
    """A sequence of the user that must not be read."""

    def __getitem__(self, row: Any) -> Any:
        raise AssertionError(row)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps({'id': row, 'text': HOSTILE})}\n" for row in range(7)))
    return path


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_a_dataset_has_its_first_records(count: int) -> None:
    text = shown(sk.from_sequence([f"record {row}" for row in range(count)])).text
    assert [f"'record {row}'" in text for row in range(5)] == [row < min(3, count) for row in range(5)]
    assert f"records{count}" in text


def test_hostile_records_are_text(lines: Path) -> None:
    ds = sk.open(lines)
    for thing in (ds, ds.locate(2), sk.from_sequence([HOSTILE, {HOSTILE: HOSTILE}])):
        shown(thing)
    info = sk.from_sequence([{HOSTILE[:-1]: HOSTILE[:-1]}]).info()
    assert HOSTILE[:25] in shown(ds).text
    assert HOSTILE[:25] in shown(info).text
    assert "\u202e" not in shown(sk.from_sequence([HOSTILE])).text


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.map(refuses),
        lambda ds: ds.map(refuses).shuffle(seed=1).take(2),
        lambda ds: ds.map_batches(refuses, size=2),
        lambda ds: sk.mix([ds, ds.map(refuses)], seed=1),
        lambda ds: sk.concat([ds, ds.map(refuses)]),
        lambda ds: sk.zip([ds.map(refuses), ds]),
    ],
    ids=["map", "shuffled", "map_batches", "mix", "concat", "zip"],
)
def test_no_function_of_the_user_is_called(make: Any, lines: Path) -> None:
    ds = make(sk.open(lines))
    assert calls_functions(ds.node)
    assert "the first" not in shown(ds).text
    shown(sk.Loader(ds, batch_size=2))
    shown(ds.stream(lanes=1).map(refuses))


def test_decoders_and_sequences_of_the_user_are_not_called(lines: Path) -> None:
    for ds in (
        sk.open(lines, decode=refuses),
        sk.open(lines, errors=refuses),
        sk.from_sequence(HostileSequence([1, 2]), version=1),
    ):
        assert calls_functions(ds.node)
        shown(ds)
    assert not calls_functions(sk.open(lines).shuffle(seed=1).node)
    assert not reads_network(sk.open(lines).node)


def test_each_kind_of_record_node_has_its_place() -> None:
    kinds = {
        kind.kind
        for kind in node_classes()
        if kind.__module__.startswith("seekable.nodes") and not issubclass(kind, OrderNode | Leaf)
    }
    assert kinds - traits._OWN_RECORDS == CALL_FUNCTIONS
    assert kinds >= traits._OWN_RECORDS


def test_records_that_take_many_bytes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * (2 << 20))
    assert "the first" not in shown(sk.open(tmp_path / "a.txt")).text


def test_changed_and_missing_files_raise_nothing(lines: Path) -> None:
    ds = sk.open(lines)
    place, loader = ds.locate(3), sk.Loader(ds, batch_size=2)
    plan = loader.plan(step=1)
    lines.unlink()
    for thing in (ds, place, loader, plan):
        shown(thing)


def test_objects_that_cannot_be_described_raise_nothing() -> None:
    assert "<Hostile>" in shown(sk.from_sequence([Hostile(), [Hostile()]])).text
    assert _html.notebook_html(lambda: [str(Hostile())], Hostile()) == "<pre>&lt;Hostile&gt;</pre>"
    assert len(_html.notebook_html(lambda: ["<" * 30_000], "<" * 30_000).encode()) < _html.MOST_BYTES


def test_a_place_has_the_bytes_of_its_record_where_they_are_plain(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthr\xffee\n")
    assert shown(sk.open(tmp_path / "a.txt").locate(1)).text.endswith("two")
    assert shown(sk.open(tmp_path / "a.txt", decode="bytes").locate(2)).text.endswith(r"thr\xffee")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "c").write_bytes(gzip.compress(b"one\ntwo\n"))
    for path in ("b.gz", "c", "missing"):
        assert "pre" not in shown(Location(str(tmp_path / path), row=1, offset=4, length=3)).found
    for elsewhere in ("s3://bucket/a.txt", "<builtins.list>", str(tmp_path), "/dev/zero"):
        assert "pre" not in shown(Location(elsewhere, row=1, offset=4, length=3)).found


def test_a_loader_shows_how_far_it_is(lines: Path) -> None:
    loader = sk.Loader(sk.mix({"a": sk.open(lines), "b": sk.from_sequence([1] * 9)}, seed=1), batch_size=2)
    for _ in zip(range(2), loader, strict=False):
        pass
    found = shown(loader)
    assert f"batches of this run: {loader.step} of {len(loader)}" in found.text
    assert "a.jsonl" in found.text
    endless = sk.Loader(sk.mix([sk.open(lines)], seed=1, stop="never"), batch_size=2)
    assert "progress" not in shown(endless).found
    shown(sk.Loader(sk.from_sequence([]), batch_size=2))


def test_a_step_shows_ten_records_and_all_files_in_sum(lines: Path) -> None:
    loader = sk.Loader(sk.open(lines).repeat(4), global_batch_size=14, rank=0, world_size=2)
    text = shown(loader.plan(step=0)).text
    assert "14 records" in text
    assert "the first 10" in text
    assert "files: 1" in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    max_leaves=30,
)


@settings(max_examples=25)
@given(JSON)
def test_any_record_can_be_shown(record: Any) -> None:
    shown(sk.from_sequence([record]))


def test_a_preview_is_bounded() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for record in (deep, "x" * 10**6, 10**6000, {row: row for row in range(10**4)}, np.zeros((3, 4))):
        assert len(_html.previewed(record)) < 1000
    assert _html.previewed(np.zeros((3, 4))) == "<array of float64, (3, 4)>"
