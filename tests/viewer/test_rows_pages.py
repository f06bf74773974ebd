"""The rows with a text: of a sample at once, of all by a job; with their places, and when they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.testclient import TestClient

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.facts import matching
from seekable.viewer.facts.search import Searched, search_all
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from seekable.viewer.opened import Opened


def test_all_rows_are_searched_at_once_where_they_are_small(pages: TestClient, shown: Opened) -> None:
    found = pages.get("/d/corpus/search?q=committee&as=json").json()
    *_, expected = search_all(shown.dataset("corpus")._node, Searched("committee"))
    assert [hit["row"] for hit in found["hits"]] == [hit.row for hit in expected.hits]
    assert (found["text"], found["found"]) == ("committee", expected.found)
    assert found["made_of"].startswith("from all, at ")
    page = pages.get("/d/corpus/search?q=committee").text
    hit = expected.hits[0]
    assert f'<a href="row/{hit.row}?q=committee">' in page
    assert "<mark>committee</mark>" in page
    comes = shown.pipeline("train").loader.when(shown.dataset("corpus").locate([hit.row])[0].path, hit.row)
    assert f"train: step {comes[0].step}, rank {comes[0].rank}" in page
    table = pages.get("/d/corpus/search?q=committee&as=jsonl").text.splitlines()
    assert len(table) == expected.found
    assert 'rel="next" href="?q=committee&amp;at=50"' in page


def test_all_rows_by_a_job(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a <b>cat</b> & dog"}\n' * 7 + '{"text": "bird"}\n' * 93)
    opened = opened_of({"animals": sk.open(tmp_path / "a.jsonl")})
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    page = pages.get("/d/animals/search?q=%3Cb%3Ecat&n=10").text
    assert 'action="search-all?q=%3Cb%3Ecat"' in page
    assert "of 10 rows" in page
    answer = pages.post("/d/animals/search-all?q=%3Cb%3Ecat")
    assert opened.jobs.all()[0].wait(60)
    found = pages.get(f"{answer.url}&as=json").json()
    assert (found["job"]["state"], found["found"], [hit["row"] for hit in found["hits"]]) == (
        "done",
        7,
        list(range(7)),
    )
    assert found["made_of"].startswith("from all, at ")
    page = pages.get(str(answer.url)).text
    assert "<mark>&lt;b&gt;cat</mark>" in page
    assert "7 rows," in page


def test_what_was_not_found(tmp_path: Path, pages: TestClient) -> None:
    (tmp_path / "none.jsonl").write_text("")
    none = TestClient(
        make_app(opened_of({"none": sk.open(tmp_path / "none.jsonl")})), base_url="http://127.0.0.1"
    )
    assert "none has no records" in none.get("/d/none/search?q=x").text
    assert "No row of corpus has this text" in pages.get("/d/corpus/search?q=absent").text
    assert "<mark>" not in pages.get("/d/corpus/search").text
    assert pages.get("/d/corpus/search?q=" + "x" * 1025).status_code == 400
    assert pages.post("/d/corpus/search-all").status_code == 400
    assert pages.get("/d/corpus/search?job=999").status_code == 404


def test_a_text_of_half_a_surrogate_pair(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a \\ud800 cat"}\n')
    pages = TestClient(
        make_app(opened_of({"odd": sk.open(tmp_path / "a.jsonl")})), base_url="http://127.0.0.1"
    )
    assert pages.get("/d/odd/search?q=cat").status_code == 200
    assert pages.get("/d/odd/search?q=cat&as=json").json()["found"] == 1


def test_all_places_are_marked_on_the_row_too(tmp_path: Path) -> None:
    long = 3000 * "." + "a cat" + 3000 * "." + "CAT"
    lines = [
        {"t": "Cat <cat>", "u": {"v": "cat"}},
        {"t": long},
        {"messages": [{"role": "user", "content": "cat"}]},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    opened = opened_of({"a": sk.open(tmp_path)})
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    pages.get("/d/a/search?q=c.t&regex=1")
    assert opened.jobs.all()[0].wait(60)
    assert 'href="row/0?q=c.t&amp;regex=1"' in pages.get("/d/a/search?q=c.t&regex=1").text
    page = pages.get("/d/a/row/0?q=c.t&regex=1").text
    assert "<mark>Cat</mark> &lt;<mark>cat</mark>&gt;" in page
    assert "3 places of <mark>c.t</mark>" in page
    assert "1 place of" in pages.get("/d/a/row/0?q=cat&key=u").text
    page = pages.get("/d/a/row/1?q=cat").text
    assert "..a <mark>cat</mark>.." in page
    assert "characters 2,002 to 4,002 of 6,008, 2 places in all" in page
    assert "<mark>cat</mark></span>" in pages.get("/d/a/row/2?q=cat").text
    assert "Nothing is marked: " in pages.get("/d/a/row/0?q=(&regex=1").text
    assert "<mark>" not in pages.get("/d/a/row/0").text


def test_a_hostile_expression_fails_and_the_viewer_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_SECONDS", 0.5)
    (tmp_path / "a.jsonl").write_text(json.dumps({"t": 50 * "a" + "b"}) + "\n")
    opened = opened_of({"a": sk.open(tmp_path)})
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    address = "/d/a/search?q=(a%2B)%2B%24&regex=1"
    while "was ended" not in (page := pages.get(address).text):
        assert "data-live" in page
    assert "was ended" in pages.get(address).text
    assert [job.kind for job in opened.jobs.all()] == ["search"]
    assert pages.post("/d/a/search-again?q=(a%2B)%2B%24&regex=1").status_code == 200
    assert len(opened.jobs.all()) == 2
    assert pages.get("/d/a/row/0").status_code == 200
    assert pages.post("/d/a/search-all?q=(a%2B)%2B%24&regex=1").status_code == 200
    assert opened.jobs.all()[0].wait(60)
    page = pages.get(f"/job/{opened.jobs.all()[0].name}").text
    assert "failed; what it found stays" in page
    assert 'action="../d/a/search-all?q=%28a%2B%29%2B%24&amp;regex=1"' in page
