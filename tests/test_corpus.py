"""What older code wrote is read as it was: indexes, descriptions, pipeline files, states, half-written folders.

tests/corpus has all of it, once for each format, each kind of node and each kind of stage. It is not written
anew where one of these tests fails, but only for a change of a format that a line of CHANGELOG.md names:
``python -m tests.corpus.write``.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.concrete import concrete_classes, node_classes
from tests.corpus import formats, nodes, saved, streams, written
from tests.corpus.held import as_text, moved, read_document, relative, unpack

import seekable as sk
import seekable.stream
from seekable.formats.registry import FORMATS
from seekable.resume.from_description import rebuild
from seekable.stream.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    Seen = dict[str, tuple[int, int]]

ADD = "add a case to tests/corpus, and run: python -m tests.corpus.write"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, unpacked once; a test that writes does so elsewhere."""
    folder = tmp_path_factory.mktemp("corpus").resolve()
    unpack(folder)
    return folder


def seen(folder: Path) -> Seen:
    """Return all files below a folder, in a way that tells whether one of them is written again."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.stat(path := os.path.join(place, name))
            found[path] = (status.st_ino, status.st_mtime_ns)
    return found


def check_known(found: Any, recorded: Any, root: Path) -> None:
    """Check that what is found is what was recorded, byte for byte, fact by fact."""
    assert found.keys() == recorded.keys()
    for fact, value in found.items():
        assert relative(as_text(value), root) == as_text(recorded[fact]), fact


def test_every_format_is_in_the_corpus() -> None:
    assert FORMATS.keys() <= formats.FORMATS.keys(), ADD
    assert formats.FORMATS.keys() == read_document("formats").keys(), ADD


def test_every_kind_of_node_is_in_the_corpus() -> None:
    assert nodes.NODES.keys() == {kind.kind for kind in node_classes()}, ADD
    assert nodes.CASES.keys() == read_document("nodes").keys(), ADD
    for name, known in read_document("nodes").items():
        kind, _ = nodes.CASES[name]
        assert f'"kind":"{kind.replace("described_", "").replace("described", "sequence")}"' in known["state"]["pipeline"]


def test_every_kind_of_stage_is_in_the_corpus() -> None:
    assert streams.STREAMS.keys() == {kind.kind for kind in concrete_classes(seekable.stream, Stage)}, ADD
    assert streams.CASES.keys() == read_document("streams").keys(), ADD


@pytest.mark.parametrize("name", formats.FORMATS)
def test_an_index_is_used_as_it_is(name: str, root: Path) -> None:
    folder = root / formats.FOLDER / formats.slug(name)
    before = seen(folder)
    assert any(".seekable" in path for path in before)
    with formats.opened(name, root) as ds:
        check_known(formats.known(ds), read_document("formats")[name], root)
    assert seen(folder) == before, "a file was indexed again"


@pytest.mark.parametrize("name", nodes.CASES)
def test_a_pipeline_file_and_the_states_of_its_runs_load(name: str, root: Path, tmp_path: Path) -> None:
    before = seen(root)
    recorded = read_document("nodes")[name]
    parts, earlier = nodes.Parts(root), nodes.EARLIER.get(name)
    ds = nodes.load(name, root)
    check_known(nodes.known(ds, earlier and earlier(parts)), recorded, root)
    check_without_rows(ds, recorded)
    assert nodes.CASES[name][1](parts).fingerprint == recorded["fingerprint"]
    assert seen(root) == before, "a file was indexed again, or rows were computed again"


@pytest.mark.parametrize("name", nodes.CASES)
def test_a_pipeline_is_saved_as_it_was(name: str, root: Path, tmp_path: Path) -> None:
    old = nodes.pipeline_file(name, root)
    new = nodes.pipeline_file(name, tmp_path)


def check_without_rows(pipeline: sk.Dataset | sk.Stream, recorded: dict[str, Any]) -> None:
    """Check that the state without a description loads too, and comes back as it was."""
    state = {key: value for key, value in recorded["state"].items() if key != "pipeline"}
    loader = nodes.loader_of(pipeline)
    loader.load_state_dict(state)
    assert as_text(loader.state_dict(rows=False)) == as_text(state)
