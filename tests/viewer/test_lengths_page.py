"""The lengths of data in its pages, counted at once or by a job, are those of ``seekable plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient
from tests.cli.command import documents, output

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.opened import opened_of
from seekable.viewer.pages import dataset as room

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_chart_its_numbers_and_the_document_are_those_of_the_command(
    pages: TestClient, data: Path
) -> None:
    assert pages.get("/d/corpus/lengths.svg").text == output("plot", "lengths", "corpus", cwd=data).decode()
    numbers = pages.get("/d/corpus/lengths?as=csv").text
    assert numbers == output("plot", "lengths", "corpus", "--csv", cwd=data).decode()
    (fact,) = documents("plot", "lengths", "corpus", cwd=data)
    found = pages.get("/d/corpus/lengths?as=json").json()
    assert {**fact, "name": "corpus"} == found
    assert pages.get("/d/corpus/?as=json").json()["lengths"] == {
        key: fact[key] for key in fact if key != "schema"
    }
    assert pages.get("/d/corpus/files.svg").text == output("plot", "files", "corpus", cwd=data).decode()


def test_tables_have_no_lengths(pages: TestClient) -> None:
    answer = pages.get("/d/sounds/lengths?as=json")
    assert (answer.status_code, "has no lengths" in answer.json()["error"]) == (404, True)
    assert "lengths" not in pages.get("/d/sounds/?as=json").json()


def test_many_lengths_are_counted_by_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_COUNTED_AT_ONCE", 9)
    (tmp_path / "a.txt").write_text("line\n" * 10)
    (tmp_path / "none.txt").write_text("")
    opened = opened_of({"lines": sk.open(tmp_path / "a.txt"), "none": sk.open(tmp_path / "none.txt")})
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    assert "take some seconds" in pages.get("/d/lines/").text
    assert pages.get("/d/lines/lengths.svg").status_code == 404
    assert "Count</button>" in pages.get("/d/lines/lengths").text
    answer = pages.post("/d/lines/count-lengths")
    assert opened.jobs.all()[0].wait(60)
    found: Any = pages.get(str(answer.url) + "&as=json").json()
    assert (found["job"]["state"], found["job"]["result"]["histogram"]["counts"]) == ("done", [10])
    assert found["mean"] == 5
    assert "10 values" in pages.get("/d/lines/lengths.svg").text
    assert "has no records" in pages.get("/d/none/").text
    assert "has no records" in pages.get("/d/none/lengths").text
