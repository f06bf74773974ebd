"""Data whose index is being built: its page is there at once, with progress and the heads of the files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

import seekable as sk
from seekable.cli.view_targets import opened_targets
from seekable.errors import DataNotFound
from seekable.parallel.progress import Progress
from seekable.viewer import opened as room
from seekable.viewer.app import make_app
from seekable.viewer.opened import heads_of, opened_of, opening_work

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.parallel.progress import ProgressHook
    from seekable.viewer.opened import Opened

OPTIONS: dict[str, Any] = {"index_dir": None, "format": None, "jobs": 1, "quiet": True, "key": None}


def opened_from(*targets: str) -> Opened:
    return opened_targets(list(targets), batches={}, state=None, roots=[], logs=[], opening=OPTIONS, shown={})


def asks(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Data without an index."""
    (tmp_path / "corpus").mkdir()
    for name in "ab":
        lines = "".join(f'{{"id": "{name}{row}"}}\n' for row in range(100))
        (tmp_path / "corpus" / f"{name}.jsonl").write_text(lines)
    return tmp_path / "corpus"


def test_an_index_that_is_built_has_a_page_that_ends_at_the_data(corpus: Path) -> None:
    going, reported = threading.Event(), threading.Event()
    opened = opened_of({}, paths={"corpus": str(corpus)})

    def call(hook: ProgressHook) -> sk.Dataset:
        hook(Progress(1, 2, 700, 1400, 64))
        reported.set()
        going.wait()
        return sk.open(corpus, progress=hook)

    work = opening_work(call, lambda dataset: opened.datasets.update({"corpus": dataset}))
    job = opened.opening["corpus"] = opened.jobs.start("index", "corpus", work)
    assert reported.wait(60)
    pages = asks(opened)
    while job.partial is None:
        pass
    for address in ("d/corpus/", "d/corpus/rows", "d/corpus/row/3"):
        assert pages.get(f"/{address}").headers["location"].endswith("opening/corpus"), address
    page = pages.get("/opening/corpus").text
    assert 'data-live="1"' in page
    assert "1 of 2" in page
    assert "{&#34;id&#34;: &#34;a0&#34;}" in page
    assert 'href="opening/corpus"' in pages.get("/").text
    found = pages.get("/opening/corpus?as=json").json()
    assert (found["open"], found["job"]["done"], found["job"]["of"]) == (False, 700, 1400)
    going.set()
    assert job.wait(60)
    assert pages.get("/opening/corpus").headers["location"] == "../d/corpus/"
    assert pages.get("/d/corpus/row/150?as=json").json()["record"] == {"id": "b50"}
    assert pages.get("/opening/corpus?as=json").json()["open"] is True


def test_data_is_there_at_once_where_its_index_is_built_soon(corpus: Path) -> None:
    opened = opened_from(str(corpus), f"again={corpus}")
    assert {name: len(dataset) for name, dataset in opened.datasets.items()} == {"corpus": 200, "again": 200}
    assert opened.opening == {}
    assert asks(opened).get("/?as=json").json()["jobs"] == []


def test_later_data_comes_by_itself(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_SOON_SECONDS", 0)
    opened = opened_from(str(corpus))
    assert opened.jobs.all()[0].wait(60)
    assert asks(opened).get("/d/corpus/row/0?as=json").json()["record"] == {"id": "a0"}


def test_what_cannot_be_opened_is_refused_before_the_viewer_listens(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="nothing"):
        opened_from(str(tmp_path / "nothing"))


def test_heads_are_the_first_lines_of_the_first_files(corpus: Path, tmp_path: Path) -> None:
    (corpus / "a.jsonl").write_bytes(b"\xff<b>\n" * 9)
    (corpus / "b.jsonl").write_bytes(b"\0\1\2")
    first, second = heads_of(str(corpus))
    assert first == {"file": "a.jsonl", "bytes": 45, "text": "\n".join(["\\xff<b>"] * 5)}
    assert second == {"file": "b.jsonl", "bytes": 3, "text": None}
    assert heads_of(str(tmp_path / "nothing")) == heads_of("s3://bucket/corpus") == []
