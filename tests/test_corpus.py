"""What older code wrote is read as it was: indexes, descriptions, pipeline files, states, written folders.

tests/corpus has all of it, once for each format, each kind of node and each kind of stage. It is not written
anew where one of these tests fails, but only for a change of a format that a line of CHANGELOG.md names:
``python -m tests.corpus.write``.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.concrete import concrete_classes, node_classes
from tests.corpus import far, formats, nodes, saved, streams, written
from tests.corpus.held import as_text, moved, read_document, relative, unpack

import seekable as sk
import seekable.stream
from seekable.formats.table import NAMES
from seekable.resume.from_description import rebuild
from seekable.stream.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Seen = dict[str, tuple[int, int]]

ADD = "add a case to tests/corpus, and run: python -m tests.corpus.write"


def as_state_says(kind: str) -> str:
    """Return the kind that a description names: those that stand for others are described as these."""
    return {"described": "sequence", "described_map": "map"}.get(kind, kind)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The corpus, unpacked once: nothing of it is made again, nor written."""
    folder = tmp_path_factory.mktemp("corpus").resolve()
    unpack(folder)
    before = seen(folder)
    yield folder
    assert seen(folder) == before, "a file was indexed again, or rows were chosen again"


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
    assert formats.FORMATS.keys() >= {*NAMES}, ADD
    assert formats.FORMATS.keys() == read_document("formats").keys(), ADD


def test_every_kind_of_node_is_in_the_corpus() -> None:
    # Rows are read by formats of other packages alone: tests/testing/test_formats.py has their golden values.
    assert nodes.NODES.keys() == {kind.kind for kind in node_classes()} - {"rows"}, ADD
    assert nodes.CASES.keys() == read_document("nodes").keys(), ADD
    for name, known in read_document("nodes").items():
        kind, _ = nodes.CASES[name]
        assert f'"kind":"{as_state_says(kind)}"' in known["state"]["pipeline"], name


def test_every_kind_of_stage_is_in_the_corpus() -> None:
    stages: set[Any] = {*concrete_classes(Stage)}
    assert streams.STREAMS.keys() == {kind.kind for kind in stages}, ADD
    assert streams.CASES.keys() == read_document("streams").keys(), ADD


def test_every_form_of_writing_is_in_the_corpus() -> None:
    for face, prefix in ((sk.Dataset, ""), (sk.Stream, "stream-")):
        forms = {name.removeprefix("write_") for name in dir(face) if name.startswith("write_")}
        assert {f"{prefix}{form}" for form in forms} <= written.WRITES.keys(), ADD


@pytest.mark.parametrize("name", formats.FORMATS)
def test_an_index_is_used_as_it_is(name: str, root: Path) -> None:
    folder = root / formats.FOLDER / formats.slug(name)
    before = seen(folder)
    assert any(".seekable" in path for path in before)
    with formats.opened(name, root) as ds:
        check_known(formats.known(ds), read_document("formats")[name], root)
    assert seen(folder) == before, "a file was indexed again"


@pytest.mark.parametrize("name", far.NAMES)
def test_an_index_of_objects_is_used_as_it_is(name: str, root: Path) -> None:
    before = seen(root / far.FOLDER)
    with far.in_a_store(root), far.opened(name, root) as ds:
        check_known(formats.known(ds), read_document("far")[name], root)
    assert seen(root / far.FOLDER) == before, "an object was indexed again"


@pytest.mark.parametrize("name", nodes.CASES)
def test_a_pipeline_file_loads_and_its_runs_go_on(name: str, root: Path) -> None:
    recorded = read_document("nodes")[name]
    parts, earlier = nodes.Parts(root), nodes.EARLIER.get(name)
    ds = nodes.load(name, root)
    check_known(nodes.known(ds, earlier and earlier(parts)), recorded, root)
    check_without_rows(ds, recorded)


@pytest.mark.parametrize("name", nodes.CASES)
def test_a_pipeline_that_is_built_again_is_saved_as_it_was(name: str, root: Path, tmp_path: Path) -> None:
    ds = nodes.CASES[name][1](nodes.Parts(root))
    assert ds.fingerprint == read_document("nodes")[name]["fingerprint"]
    old, new = nodes.pipeline_file(name, root), tmp_path / f"{name}.json"
    ds.save(new)
    assert nodes.pipeline_text(new, root) == old.read_bytes()
    rows = old.with_suffix(".rows")
    if rows.exists():
        assert contents(new.with_suffix(".rows")) == contents(rows)


@pytest.mark.parametrize("name", ["described-0", "described_map-0"])
def test_an_order_is_rebuilt_from_its_description(name: str) -> None:
    recorded = read_document("nodes")[name]
    _, build = nodes.CASES[name]
    description = build(nodes.Parts(None))._node.describe(None)  # type: ignore[arg-type]  # no file is read
    assert rebuild(description).fingerprint == recorded["fingerprint"]
    assert as_text(rebuild(description).describe(None)) == as_text(description)


@pytest.mark.parametrize("name", streams.CASES)
def test_the_states_of_a_stream_load(name: str, root: Path) -> None:
    recorded = read_document("streams")[name]
    stream = streams.CASES[name](root)
    check_known(nodes.known(stream), recorded, root)
    check_without_rows(stream, recorded)


@pytest.mark.parametrize("name", saved.RUNS)
def test_a_folder_of_saved_states_loads(name: str, root: Path, tmp_path: Path) -> None:
    recorded = read_document("saved")[name]
    check_known(saved.known(name, root), recorded, root)
    for loader in saved.loaded(name, root):
        sk.save_state(tmp_path, loader)
    old, new = (
        {file: relative(data.decode(), root) for file, data in contents(folder).items()}
        for folder in (root / saved.FOLDER / name, tmp_path)
    )
    assert new.items() <= old.items()


def test_checkpoints_of_other_forms_load(root: Path) -> None:
    check_known(saved.checkpoint(root), read_document("saved")["checkpoints"], root)
    for name in ("sample_index", "resume_state"):
        document = moved(read_document("saved")["checkpoints"], root)[name]
        assert document == saved.checkpoint(root)[name]


@pytest.mark.parametrize("name", written.WRITES)
def test_a_folder_that_was_written_is_not_written_again(name: str, root: Path, tmp_path: Path) -> None:
    folder = tmp_path / written.FOLDER / name
    shutil.copytree(root / written.FOLDER / name, folder)
    before, old = seen(folder), contents(folder)
    written.write(name, tmp_path)
    assert seen(folder) == before
    if name in written.SAME_BYTES:
        (folder / written.SAME_BYTES[name]).unlink()
        written.write(name, tmp_path)
        assert contents(folder) == old


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_without_rows(pipeline: sk.Dataset | sk.Stream, recorded: dict[str, Any]) -> None:
    """Check that the state without a description loads too, and comes back as it was."""
    state = {key: value for key, value in recorded["state"].items() if key != "pipeline"}
    loader = nodes.loader_of(pipeline)
    loader.load_state_dict(state)
    assert as_text(loader.state_dict(rows=False)) == as_text(state)
