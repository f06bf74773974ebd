"""Rows that are filtered and sorted: at once, as a job with partial results, by links in the table's head."""

from __future__ import annotations

import html
import json
import re
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.viewer.viewed import record

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.facts import filtered_rows as room
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.viewer.opened import Opened

RECORDS = [record(100 * file + row) for file in range(3) for row in range(100)]


def twin(pages: TestClient, address: str) -> Any:
    return pages.get(f"/{address}{'&' if '?' in address else '?'}as=json").json()


def rows_at(pages: TestClient, address: str) -> list[int]:
    return [each["row"] for each in twin(pages, address)["rows"]]


def asks(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1")


def test_rows_are_filtered_and_sorted_at_once(pages: TestClient) -> None:
    where = quote('meta.lang == "de" and meta.score >= 1.5')
    expected = [
        row
        for row, each in enumerate(RECORDS)
        if each["meta"]["lang"] == "de" and each["meta"]["score"] >= 1.5
    ]
    found = twin(pages, f"d/corpus/rows?where={where}&n=500")
    assert [each["row"] for each in found["rows"]] == expected
    assert (found["filter"]["found"], found["made_of"]) == (len(expected), "exact, from all 300 rows")
    expected.sort(key=lambda row: -len(RECORDS[row]["text"]))
    assert rows_at(pages, f"d/corpus/rows?where={where}&sort=-length(text)&n=500") == expected
    assert rows_at(pages, f"d/corpus/rows?where={where}&sort=-length(text)&n=10&at=10") == expected[10:20]
    drawn = rows_at(pages, f"d/corpus/rows?where={where}&order=sample&n=500")
    assert sorted(drawn) == sorted(expected)
    assert drawn != sorted(expected)
    page = pages.get(f"/d/corpus/rows?where={where}&sort=-meta.score").text
    assert f"{len(expected)} rows meet the filter" in page
    assert 'aria-sort="descending"' in page
    table = pages.get(f"/d/corpus/rows?where={where}&as=jsonl&n=500").text.splitlines()
    assert [json.loads(line)["row"] for line in table] == sorted(expected)


def test_what_a_filter_does_not_find(pages: TestClient) -> None:
    assert "No row of corpus meets the filter" in pages.get("/d/corpus/rows?where=id+is+missing").text
    page = pages.get("/d/corpus/rows?where=meta.score+%3D%3D+%22x%22").text
    assert "300 rows have a value of another type there" in page
    answer = pages.get("/d/corpus/rows?where=%3Cscript%3E")
    assert answer.status_code == 400
    assert "&lt;script&gt;" in answer.text
    assert "write conditions as" in answer.text
    assert 'id="where"' in answer.text
    for form in ("json", "csv", "jsonl"):
        assert pages.get(f"/d/corpus/rows?where=%3Cscript%3E&as={form}").status_code == 400
    assert pages.get("/d/corpus/rows?sort=(").status_code == 400
    assert pages.get("/d/corpus/rows?keys=a%5B").status_code == 400
    assert "There are 100 such rows" in pages.get("/d/corpus/rows?where=meta.lang=de&at=700").text


def test_each_bar_of_the_head_leads_to_as_many_rows_as_it_says(tmp_path: Path) -> None:
    values: list[Any] = [0, 1, 2.5, 2.5, -7, 10**20, None, float("nan")]
    lines = [
        {"n": value, "t": "x" * (at % 5) * 20, "l": ["a", 'q"<b>', "a"][at % 3], "one": 1, "b": at % 2 == 0}
        | {"mixed": ["text", [1, 2, 3], {"k": at}, None, {}, at][at % 6]}
        for at, value in enumerate(values * 9)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [*lines, {"id": 1}]))
    pages = asks(opened_of({"a": sk.open(tmp_path)}))
    page = pages.get("/d/a/rows").text
    bars = re.findall(r'<a href="(rows\?where=[^"]*)" title="([^"]*)"', page)
    assert len(bars) > 10
    for address, words in bars:
        count = int(re.findall(r": ([\d,]+)(?: of [\d,]+)?$", html.unescape(words))[0].replace(",", ""))
        found = twin(pages, "d/a/" + html.unescape(address))
        assert found["filter"]["found"] == count, (address, words)
    missing = re.findall(r'<a href="(rows\?where=[^"]*)">([\d,]+) without</a>', page)
    assert {html.unescape(address).partition("=")[2]: int(count) for address, count in missing} == {
        **{f"{key}+is+missing": 1 for key in ("t", "l", "one", "b")},
        "n+is+missing": 10,
        "id+is+missing": 72,
        "mixed+is+missing": 13,
        "mixed.k+is+missing": 61,
    }
    for address, count in missing:
        assert twin(pages, "d/a/" + html.unescape(address))["filter"]["found"] == int(count)


def test_the_values_of_a_field_lead_to_its_rows(pages: TestClient) -> None:
    page = pages.get("/d/corpus/field?key=meta.lang").text
    found = [
        html.unescape(each)
        for each in re.findall(r'<a href="(rows\?where=meta[^"]*)">(?:en|de|fr)</a>', page)
    ]
    assert [twin(pages, f"d/corpus/{each}")["filter"]["found"] for each in found] == [100, 100, 100]
    assert 'href="rows?sort=meta.score"' in pages.get("/d/corpus/field?key=meta.score").text


def test_columns_are_chosen_by_links_and_stay_in_the_address(tmp_path: Path) -> None:
    keys = ["a,b", "c.d", "<i>", "", "back\\", *(f"k{number}" for number in range(320))]
    (tmp_path / "a.jsonl").write_text(json.dumps({key: number for number, key in enumerate(keys)}) + "\n")
    pages = asks(opened_of({"a": sk.open(tmp_path)}))
    page = pages.get("/d/a/rows").text
    assert "Columns: 8 of 300 and 25 more" in page
    assert "<i>" not in page.partition("<main")[2].replace("&lt;i&gt;", "")
    hide = html.unescape(re.findall(r'href="(\?keys=[^"]*)" aria-label="Hide the column a,b"', page)[0])
    header = pages.get(f"/d/a/rows{hide}&as=csv").text.splitlines()[0]
    assert header == "row,file,row in file,c\\.d,<i>,\\0,back\\\\,k0,k1,k2"
    page = pages.get(f"/d/a/rows{hide}&where=k5=10").text
    show = html.unescape(re.findall(r'href="(\?[^"]*)" aria-label="Show the column a,b"', page)[0])
    assert pages.get(f"/d/a/rows{show}&as=csv").text.splitlines() == [
        'row,file,row in file,c\\.d,<i>,\\0,back\\\\,k0,k1,k2,"a,b"',
        f"0,{tmp_path}/a.jsonl,0,1,2,3,4,5,6,7,0",
    ]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Makes each filter a job that waits in the middle until it is let on."""
    let_on = threading.Event()

    def read_rows(node: Any, rows: Any) -> Any:
        if rows[0] >= 200:
            let_on.wait()
        return node.fetch(rows)

    monkeypatch.setattr(room, "_SMALL_BYTES", -1)
    monkeypatch.setattr("seekable.viewer.facts.reading.PIECE_ROWS", 50)
    monkeypatch.setattr(room, "read_rows", read_rows)
    monkeypatch.setattr("seekable.viewer.facts.reading.ResultPace.due", lambda _: True)
    yield let_on
    let_on.set()


def test_a_filter_of_larger_data_is_a_job_whose_rows_are_there_while_it_runs(
    data: Path, waiting: threading.Event
) -> None:
    opened = opened_of({"corpus": sk.open(data / "corpus")})
    pages = asks(opened)
    address = "/d/corpus/rows?where=meta.lang+%3D%3D+de&n=500"
    while "from the first 200 of 300 rows" not in (page := pages.get(address).text):
        assert "data-live" in page
    assert page.count('<tr class="item">') == 67
    assert "Stop</button>" in page
    (job,) = [job for job in opened.jobs.all() if job.kind == "filter"]
    job.stop()
    waiting.set()
    assert job.wait(60)
    page = pages.get(address).text
    assert "filter: stopped; what it found stays" in page
    again = html.unescape(re.findall(r'<form method="post" action="([^"]*filter-again[^"]*)"', page)[0])
    assert pages.post("/" + again.removeprefix("../../")).status_code == 200
    assert [job.kind for job in opened.jobs.all()].count("filter") == 2
    assert opened.jobs.all()[0].wait(60)
    page = pages.get(address).text
    assert "100 rows meet the filter" in page
    assert "data-live" not in page


def test_a_filter_begins_again_when_the_data_was_opened_again(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n' * 3)
    opened = opened_of({"a": sk.open(tmp_path)}, paths={"a": str(tmp_path)})
    pages = asks(opened)
    assert len(rows_at(pages, "d/a/rows?where=n=1")) == 3
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n' * 4)
    opened.openers["a"] = lambda hook: sk.open(tmp_path, progress=hook)
    pages.post("/d/a/reopen")
    assert len(rows_at(pages, "d/a/rows?where=n=1")) == 4


def test_cells_show_media_turns_and_the_text_of_tokens(pages: TestClient, data: Path) -> None:
    page = pages.get("/d/sounds/rows").text
    assert page.count('<img class="thumb" src="../../media/d/sounds/') == 3
    assert 'src="../../media/d/sounds/1?at=audio.bytes" aria-label="audio.bytes of row 1"' in page
    assert 'src="../../media/d/sounds/0?at=audio_filepath"' in page
    assert 'src="../../media/d/sounds/1?at=audio_filepath"' not in page
    assert pages.get("/media/d/sounds/1?at=image").headers["content-type"] == "image/png"
    assert "window.pwned" not in page
    page = pages.get("/d/corpus/rows").text
    assert '<b>assistant</b> &lt;b&gt;hello&lt;/b&gt; <span class="more">last of 2 turns</span>' in page
    tokens = asks(opened_of({"tokens": sk.open(data / "tokens")}))
    assert re.search(
        r'<span class="more">\d+ tokens</span> the ?committee', tokens.get("/d/tokens/rows").text
    )
    text = "".join(json.dumps({"input_ids": [1, 2, 99, -3], "box": [1, 2]}) + "\n")
    (data / "ids.jsonl").write_text(text)
    named = asks(opened_of({"ids": sk.open(data / "ids.jsonl")}, tokenizer=str(data / "tokenizer.json")))
    page = named.get("/d/ids/rows").text
    assert "the committee" in page
    assert "[1, 2]" in page


def test_a_row_has_its_neighbours_among_those_that_its_address_filters_and_sorts(pages: TestClient) -> None:
    asked = "where=meta.lang+%3D%3D+%22de%22&sort=-length%28text%29"
    rows = rows_at(pages, f"d/corpus/rows?{asked}&n=500")
    table = pages.get(f"/d/corpus/rows?{asked}").text
    assert f'href="../../d/corpus/row/{rows[0]}?{asked}"' in html.unescape(table)
    for place in (0, 1, 40, len(rows) - 1):
        found = twin(pages, f"d/corpus/row/{rows[place]}?{asked}")["within"]
        around = [rows[at] if 0 <= at < len(rows) else None for at in (place - 1, place + 1)]
        assert [found[key] for key in ("place", "previous", "next", "of")] == [place, *around, len(rows)]
    page = html.unescape(pages.get(f"/d/corpus/row/{rows[1]}?{asked}&view=file").text)
    assert f'rel="prev" href="{rows[0]}?{asked}&view=file"' in page
    assert f'rel="next" href="{rows[2]}?{asked}&view=file"' in page
    assert f'rel="up" href="../../../d/corpus/rows?{asked}&at=0"' in page
    assert f"2 of {len(rows)} rows that meet the filter" in page
    other = next(row for row in range(300) if row not in rows)
    assert twin(pages, f"d/corpus/row/{other}?{asked}")["within"]["place"] is None
    assert f'rel="next" href="{other + 1}?{asked}"' in html.unescape(
        pages.get(f"/d/corpus/row/{other}?{asked}").text
    )
    assert "within" not in twin(pages, "d/corpus/row/3")
    assert pages.get("/d/corpus/row/3?where=a+b").status_code == 400


def test_a_filter_by_a_regular_expression_is_a_job_that_may_fail(data: Path) -> None:
    opened = opened_of({"corpus": sk.open(data / "corpus")})
    pages = asks(opened)
    pages.get("/d/corpus/rows?where=id matches ^k1.$")
    assert opened.jobs.all()[-1].wait(60)
    assert rows_at(pages, "d/corpus/rows?where=id matches ^k1.$") == list(range(10, 20))
    pages.get("/d/corpus/rows?where=id matches (")
    assert opened.jobs.all()[0].wait(60)
    page = pages.get("/d/corpus/rows?where=id matches (").text
    assert "is no regular expression" in page
    assert "Start again" in page
