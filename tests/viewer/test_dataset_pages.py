"""Pages of a dataset: statistics of samples, values of one key, duplicates, lengths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from tests.cli.command import documents, output
from tests.viewer.viewed import record

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.facts import filtered_rows
from seekable.viewer.facts.key_statistics import field
from seekable.viewer.facts.padding import data_padding
from seekable.viewer.opened import opened_of
from seekable.viewer.pages import dataset_pages as room

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened


@pytest.fixture
def many(tmp_path: Path) -> Opened:
    """Records of which every third has no text, and some are equal."""
    lines = [json.dumps({"id": row % 900} | ({"text": "a cat"} if row % 3 else {})) for row in range(1200)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "none.jsonl").write_text("")
    return opened_of(
        {"many": sk.open(tmp_path / "a.jsonl"), "none": sk.open(tmp_path / "none.jsonl")}, sample=50
    )


@pytest.fixture
def of_many(many: Opened) -> TestClient:
    return TestClient(make_app(many), base_url="http://127.0.0.1")


def test_figures_are_of_all_rows_where_these_are_small(
    of_many: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = {
        "stats": "from all 1,200 rows",
        "field?key=text": "from all 1,200 rows",
        "": "from all 1,200 rows",
    }
    for page, words in every.items():
        assert words in of_many.get(f"/d/many/{page}").text
    monkeypatch.setattr(filtered_rows, "_SMALL_BYTES", -1)
    for page in every:
        found = of_many.get(f"/d/many/{page}{'&' if '?' in page else '?'}as=json").json()
        assert found.get("keys" if not page else "", found)["made_of"] == "from 50 of 1,200 rows, seed 0"
    assert of_many.get("/d/many/search?q=cat&as=json").json()["done"] == 50


def test_the_values_of_a_key_are_read_by_a_job_that_begins_by_itself(
    many: Opened, of_many: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtered_rows, "_SMALL_BYTES", -1)
    monkeypatch.setattr(room, "SOON_SECONDS", 0)
    page = of_many.get("/d/many/field?key=text").text
    job = many.jobs.all()[0]
    assert (job.kind, f'data-job="{job.name}"' in page or "without the field" in page) == ("field", True)
    assert job.wait(60)
    page = of_many.get("/d/many/field?key=text").text
    assert ("data-job" in page, "without the field" in page) == (False, True)


def test_a_larger_sample_is_read_by_a_job(many: Opened, of_many: TestClient) -> None:
    page = of_many.get("/d/many/stats?n=50").text
    assert 'action="read-stats?n=10000&amp;seed=0"' in page.replace("&seed", "&amp;seed")
    answer = of_many.post("/d/many/read-stats?n=10000")
    assert many.jobs.all()[0].wait(60)
    found = of_many.get(f"{answer.url}&as=json").json()
    assert (found["job"]["state"], found["made_of"]) == ("done", "exact, from all 1,200 rows")
    assert {key["key"]: key["present"]["count"] for key in found["keys"]}["text"] == 800
    assert "From 10,000 rows" not in of_many.get(str(answer.url)).text


def test_the_values_of_a_key(pages: TestClient, shown: Opened, of_many: TestClient) -> None:
    found = pages.get("/d/corpus/field?key=meta.lang&as=json").json()
    *_, expected = field(shown.dataset("corpus")._node, ("meta", "lang"), n=1000)
    assert {key: found[key] for key in expected.document()} == expected.document()
    langs = [record(number)["meta"]["lang"] for number in range(300)]
    assert {each["value"]: each["count"] for each in found["top"]} == {
        each: langs.count(each) for each in set(langs)
    }
    page = of_many.get("/d/many/field?key=text").text
    assert "without the field" in page
    rows = of_many.get("/d/many/field?key=text&as=json").json()["examples"]["missing"]
    assert rows
    assert all(row % 3 == 0 for row in rows)
    assert f'<a href="row/{rows[0]}">' in page
    assert "constant" in page
    assert 'href="field?key=meta.lang"' in pages.get("/d/corpus/stats").text


def test_charts_of_a_key(pages: TestClient) -> None:
    assert "300 values" in pages.get("/d/corpus/field.svg?key=text").text
    assert "300 values" in pages.get("/d/corpus/field.svg?key=meta.score&of=numbers").text
    assert pages.get("/d/corpus/field.svg?key=meta.lang&of=numbers").status_code == 404
    assert "&amp;of=values" in pages.get("/d/corpus/field?key=meta.lang").text
    bars = pages.get("/d/corpus/field.svg?key=meta.lang&of=values").text
    assert bars.count('class="bar"') == len(pages.get("/d/corpus/field?key=meta.lang&as=json").json()["top"])
    assert pages.get("/d/corpus/field.svg?key=id&of=values").status_code == 404


def test_keys_that_are_not_there(pages: TestClient, of_many: TestClient) -> None:
    assert "No row of the sample has this field" in pages.get("/d/corpus/field?key=absent").text
    assert "none has no records" in of_many.get("/d/none/field?key=id").text
    assert pages.get("/d/corpus/field?key=a[").status_code == 400


def test_duplicates_of_records_and_of_a_key(many: Opened, of_many: TestClient) -> None:
    assert "Find duplicates" in of_many.get("/d/many/duplicates").text
    answer = of_many.post("/d/many/find-duplicates")
    assert many.jobs.all()[0].wait(60)
    found = of_many.get(f"{answer.url}&as=json").json()
    assert (found["job"]["state"], found["duplicates"]["count"]) == ("done", 300)
    assert found["groups"][0]["rows"] == [0, 900]
    page = of_many.get(str(answer.url)).text
    assert '<a href="row/0">0</a> <a href="row/900">900</a>' in page
    answer = of_many.post("/d/many/find-duplicates?key=text")
    assert many.jobs.all()[0].wait(60)
    found = of_many.get(f"{answer.url}&as=json").json()
    assert (found["duplicates"]["count"], found["left_out"], found["key"]) == (799, 400, "text")
    page = of_many.get(str(answer.url)).text
    assert ("by the values of <b>text</b>" in page, '<th scope="col">text</th>' in page) == (True, True)
    assert of_many.get(f"{answer.url}&as=csv").text.splitlines()[1] == "0,800,1"
    assert "none has no records" in of_many.get("/d/none/duplicates").text
    assert of_many.post("/d/many/find-duplicates?key=a[").status_code == 400


def test_no_duplicates(pages: TestClient, shown: Opened) -> None:
    answer = pages.post("/d/corpus/find-duplicates?key=id")
    assert shown.jobs.all()[0].wait(60)
    assert "No two rows are equal" in pages.get(f"/{answer.headers['location'].removeprefix('../../')}").text


def test_statistics_say_how_many_tokens_there_are(data: Path) -> None:
    def found(tokenizer: str | None) -> tuple[dict[str, Any], str]:
        shown = opened_of({name: sk.open(data / name) for name in ("code", "tokens")}, tokenizer=tokenizer)
        pages = TestClient(make_app(shown), base_url="http://127.0.0.1")
        texts = [pages.get(f"/d/{name}/stats").text for name in ("code", "tokens")]
        both = [pages.get(f"/d/{name}/stats?as=json").json()["tokens"] for name in ("code", "tokens")]
        return dict(zip(("code", "tokens"), both, strict=True)), texts[0]

    words = sum(len(record["text"].split()) for record in sk.open(data / "code"))
    estimates, page = found(str(data / "tokenizer.json"))
    assert estimates["code"] == {
        "count": words,
        "low": words,
        "high": words,
        "made_of": "exact, from all 200 rows",
    }
    assert f"{words:,} tokens in all, " in page
    stored = int(sk.formats.token_lengths(sk.open(data / "tokens")).sum())
    assert (estimates["tokens"]["count"], estimates["tokens"]["made_of"]) == (stored, "exact, from the index")
    estimates, page = found(None)
    assert (estimates["code"], "--tokenizer" in page) == (None, True)
    estimates, page = found(str(data / "none.json"))
    assert estimates["code"]["count"] is None
    assert "The tokens cannot be counted: " in page


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


def test_the_padding_of_data(pages: TestClient, shown: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    found = pages.get("/d/corpus/padding?as=json").json()
    *_, expected = data_padding(shown.dataset("corpus")._node)
    assert {key: found[key] for key in expected.document()} == expected.document()
    page = pages.get("/d/corpus/padding").text
    assert f"{100 * expected.batches[0].share:.1f} %" in page
    assert len(pages.get("/d/corpus/padding?as=csv").text.splitlines()) == 1 + len(expected.batches)
    assert "from the characters of all records" in pages.get("/d/sounds/padding").text
    monkeypatch.setattr(filtered_rows, "_SMALL_BYTES", -1)
    shown.results.clear()
    assert "so they must be read" in pages.get("/d/sounds/padding").text
    assert pages.post("/d/sounds/padding/read").status_code == 303
    job = shown.jobs.all()[0]
    assert job.wait(60)
    found = pages.get(f"/d/sounds/padding?job={job.name}&as=json").json()
    assert (found["job"]["state"], found["unit"], found["done"]) == ("done", "characters", 3)


def test_the_padding_of_no_rows(of_many: TestClient) -> None:
    assert "none has no records" in of_many.get("/d/none/padding").text
