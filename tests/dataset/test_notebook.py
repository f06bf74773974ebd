"""What a notebook shows of datasets, streams, steps and summaries: text, small, free of effects."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from tests.concrete import node_classes

import seekable as sk
from seekable.nodes import bases, display
from seekable.nodes.bases import calls_functions
from seekable.nodes.node import LeafNode, OrderNode

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(1)">\u202e\x00\ud800'

CALL_FUNCTIONS = {"cast", "computed", "flatten", "join", "map", "map_batches", "map_columns", "pack"}
CALL_FUNCTIONS |= {"siblings", "unify_columns", "windows"}
"""The kinds of record nodes that may call a function of the user, or are not known to call none."""


def shown(thing: Any) -> str:
    """Return the text between the tags of what a notebook shows, of which there is one pair."""
    found: str = thing._repr_html_()
    assert found.startswith("<pre>")
    assert found.endswith("</pre>")
    inner = found.removeprefix("<pre>").removesuffix("</pre>")
    assert not {"<", ">", '"', "\u202e", "\x00", "\ud800"} & {*inner}
    assert len(inner) < 6 * display.MOST_CHARACTERS
    return unescape(inner)


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


def test_a_dataset_and_a_stream_are_their_trees(lines: Path) -> None:
    ds = sk.open(lines).shuffle(seed=1)
    assert shown(ds).splitlines()[1:] == ds.explain().splitlines()
    assert shown(ds.stream(lanes=2)) == ds.stream(lanes=2).explain()


def test_hostile_names_and_records_are_text(tmp_path: Path) -> None:
    (tmp_path / "<b>\u202e.jsonl").write_text('{"<i>": 1}\n')
    ds = sk.open(tmp_path)
    assert "<b>[U+202E].jsonl" in shown(ds)
    assert "<i>" in shown(ds.info())
    assert "alert" in shown(sk.from_sequence([{HOSTILE[:-1]: HOSTILE[:-1]}]).info())


@pytest.mark.parametrize(
    "make",
    [
        lambda ds: ds.map(refuses),
        lambda ds: ds.map_batches(refuses, size=2),
        lambda ds: sk.mix([ds, ds.map(refuses)], seed=1),
        lambda ds: sk.zip([ds.map(refuses), ds]),
    ],
    ids=["map", "map_batches", "mix", "zip"],
)
def test_no_function_of_the_user_is_called(make: Any, lines: Path) -> None:
    ds = make(sk.open(lines))
    assert calls_functions(ds._node)
    shown(ds)
    shown(ds.stream(lanes=1).map(refuses))


def test_decoders_and_sequences_of_the_user_are_not_called(lines: Path) -> None:
    for ds in (
        sk.open(lines, decode=refuses),
        sk.open(lines, errors=refuses),
        sk.from_sequence(HostileSequence([1, 2]), version=1),
    ):
        assert calls_functions(ds._node)
        shown(ds)
    assert not calls_functions(sk.open(lines).shuffle(seed=1)._node)


def test_each_kind_of_record_node_has_its_place() -> None:
    kinds = {
        kind.kind
        for kind in node_classes()
        if kind.__module__.startswith("seekable.") and not issubclass(kind, OrderNode | LeafNode)
    }
    assert kinds - bases._OWN_RECORDS == CALL_FUNCTIONS
    assert kinds >= bases._OWN_RECORDS


def test_missing_files_raise_nothing(lines: Path) -> None:
    ds = sk.open(lines)
    plan = sk.Loader(ds, batch_size=2).plan(step=1)
    lines.unlink()
    assert shown(plan)
    assert shown(ds)


def test_what_cannot_be_described_or_is_long_raises_nothing() -> None:
    assert display.preformatted(lambda: str(Hostile()), Hostile()) == "<pre>&lt;Hostile&gt;</pre>"
    assert len(display.preformatted(lambda: "<" * 30_000, None)) < 5 * display.MOST_CHARACTERS
