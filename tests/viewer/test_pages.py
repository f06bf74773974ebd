"""Each page by its address: it answers, and its JSON twin has the same facts."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.cli.command import run
from tests.viewer.viewed import BATCH, pipeline, record

import seekable as sk
from seekable.viewer import app
from seekable.viewer.app import ROUTES
from seekable.viewer.opened import OpenPipeline, opened_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened

EXAMPLES = [route.example for route in ROUTES if not route.changes]


def twin(pages: TestClient, address: str) -> Any:
    """Return the JSON twin of a page."""
    return pages.get(f"/{address}{'&' if '?' in address else '?'}as=json").json()


@pytest.mark.parametrize("example", EXAMPLES, ids=[example or "home" for example in EXAMPLES])
def test_an_address_answers_and_has_its_twin(pages: TestClient, example: str) -> None:
    answer = pages.get(f"/{example}")
    assert answer.status_code in (200, 303), answer.text
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert "<h1>" in answer.text
        assert twin(pages, example)["schema"] == 1


def test_rows_are_those_of_the_files(pages: TestClient) -> None:
    found = twin(pages, "d/corpus/rows?at=98&n=4")
    assert [row["record"] for row in found["rows"]] == [record(number) for number in range(98, 102)]
    assert [row["location"]["row"] for row in found["rows"]] == [98, 99, 0, 1]


def test_a_record_is_that_of_the_command(pages: TestClient, data: Path) -> None:
    done = run("get", "--json", "corpus", "17", cwd=data)
    document = json.loads(done.stdout)
    found = twin(pages, "d/corpus/row/17")
    assert {key: found[key] for key in document} == document


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("corpus 17", "d/corpus/row/17"),
        ("corpus row 1,7", "d/corpus/row/17"),
        ("corpus -1", "d/corpus/row/-1"),
        ("corpus 50%", "d/corpus/rows?at=150"),
        ("train step 3 rank 1", "p/train/step/3?rank=1"),
        ("corpus key:k5", "d/corpus/key?key=k5"),
        ("corpus key:a/../b%&c", "d/corpus/key?key=a%2F..%2Fb%25%26c"),
        ("corpus/part-1.jsonl:5", "d/corpus/row/105"),
        ("code/part-1.jsonl:5", "d/code/row/105"),
        ("{data}/code/part-1.jsonl:5", "d/code/row/105"),
        ("{data}/code/part-1.jsonl: record 5 at byte 99 (7 bytes) cannot be\ndecoded", "d/code/row/105"),
        ("'part-2.jsonl':5", "d/corpus/row/205"),
        ("/nowhere/part-1.jsonl:5", "d/corpus/at?file=%2Fnowhere%2Fpart-1.jsonl&row=5"),
        ("train position 1,7", "p/train/position/17"),
        ("compare train other", "compare?a=train&b=other"),
        ("compare train other step 1,7", "compare?a=train&b=other&step=17"),
        ("packed 3", "p/packed/step/3"),
        ("train part-1.jsonl:5", "p/train/when?file=part-1.jsonl&row=5"),
        ("packed Sequence 1,7", "p/packed/sequence/17"),
        ("corpus", "d/corpus/"),
        ("code 17", "d/code/row/17"),
        ("code  part-1.jsonl:5", "d/code/row/105"),
        ("other step 3", "p/other/step/3"),
        ("train", "p/train/"),
        ("checkpoints", "s/checkpoints/"),
        ("checkpoints 5", "s/checkpoints/5"),
        ("checkpoints 5...15", "s/checkpoints/5...15"),
        ("{fingerprint}", "s/checkpoints/15"),
        ("{short}...", "s/checkpoints/15"),
    ],
)
def test_the_box_goes_anywhere(pages: TestClient, shown: Opened, data: Path, asked: str, to: str) -> None:
    pipeline = shown.pipeline("train").loader.dataset.fingerprint
    asked = asked.format(data=data, fingerprint=pipeline, short=pipeline[:13])
    answer = pages.get("/go", params={"to": asked})
    assert (answer.status_code, answer.headers["location"]) == (303, to)


@pytest.mark.parametrize(
    ("address", "to"),
    [
        ("d/corpus/row/-1", "../../../d/corpus/row/299"),
        ("d/corpus/key/k205", "../../../d/corpus/row/205"),
        ("d/corpus/key?key=k205", "../../d/corpus/row/205"),
        ("d/corpus/at/part-2.jsonl/7", "../../../../d/corpus/row/207"),
        ("d/corpus/at?file=part-2.jsonl&row=7", "../../d/corpus/row/207"),
        ("d/corpus/at?file={data}/corpus/part-2.jsonl&row=7", "../../d/corpus/row/207"),
    ],
)
def test_rows_have_other_names(pages: TestClient, data: Path, address: str, to: str) -> None:
    assert pages.get(f"/{address.format(data=data)}").headers["location"] == to


def test_what_the_box_takes_is_a_list(pages: TestClient) -> None:
    page = pages.get("/go?to=corpus+something").text
    assert "<li>a row (1,234,567 or -1)</li><li>a share of the rows (50%)</li>" in page.replace("> <", "><")


def test_a_row_at_random_is_any_row_and_another_one(pages: TestClient) -> None:
    found = {pages.get("/d/corpus/random").headers["location"] for _ in range(12)}
    assert len(found) > 1
    assert all(0 <= int(each.removeprefix("../../d/corpus/row/")) < 300 for each in found)


def test_links_without_a_query_end_in_their_path(pages: TestClient) -> None:
    for example in EXAMPLES:
        answer = pages.get(f"/{example.partition('?')[0]}")
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert '?"' not in answer.text, example


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("d/corpus/row/300", 404, "there is no row 300: corpus has 300 rows, 0 to 299"),
        ("d/corpus/row/-301", 404, "there is no row -301"),
        ("d/nothing/", 404, "there is no dataset 'nothing' (open are: corpus"),
        ("d/corpus/key/none", 404, "none"),
        ("d/corpus/at/other.jsonl/1", 404, "corpus has no such row: there is no file 'other.jsonl'"),
        ("d/corpus/at/part-0.jsonl/100", 404, "has 100 rows, 0 to 99"),
        ("d/corpus/at?file=%2Fetc%2Fpasswd", 404, "there is no file '/etc/passwd'"),
        ("d/corpus/key?key=", 404, "no record has the key ''"),
        ("d/corpus/rows?n=501", 400, "n= takes a number from 1 to 500 (got '501')"),
        ("d/corpus/rows?order=other", 400, "order= takes one of file, sample (got 'other')"),
        ("go?to=something", 400, "'something' cannot be read: write a row"),
        ("go?to=corpus+something", 400, "'corpus something' cannot be read: write a row"),
        ("go?to=step+997", 400, "in which of 5 open pipelines: write 'train step 997' or 'other step 997'"),
        ("go?to=row+5", 400, "in which of"),
        ("go?to=part-1.jsonl:5", 400, "in which of 2 datasets with this file: write 'corpus part-1.jsonl:5'"),
        ("go?to=corpus+step+3", 400, "no pipeline is open: corpus is data"),
        ("go?to=train+key:k5", 400, "there is no data to look in"),
        ("p/other/loss", 404, "no log of the losses of other is open"),
        ("go?to=xxh3:00000000", 400, "no state of a pipeline with the fingerprint xxh3:00000000"),
        ("go?to=,", 400, "',' cannot be read"),
        ("nowhere", 404, "there is no page"),
        (f"d/corpus/row/{'9' * 5000}", 404, "there is no page"),
        (f"p/train/step/{10**30}", 404, "there is no page"),
        (f"p/train/step/{10**15 - 1}?rank=2", 400, "rank= takes a number from 0 to 1"),
        (f"d/corpus/row/{10**15 - 1}", 404, "there is no row 999,999,999,999,999"),
        ("p/train/when?file=other.jsonl&row=1", 404, "the pipeline reads no file 'other.jsonl'"),
        (
            "p/train/when?file=corpus/part-0.jsonl&row=100",
            404,
            "'corpus/part-0.jsonl' has 100 rows, and no row",
        ),
    ],
)
def test_what_cannot_be_shown_says_why(pages: TestClient, address: str, status: int, says: str) -> None:
    answer = twin(pages, address)
    assert (answer["status"], says in answer["error"]) == (status, True), answer
    assert pages.get(f"/{address}").status_code == status


def test_a_redirect_keeps_the_form_that_is_asked_for(pages: TestClient) -> None:
    assert pages.get("/d/corpus/key/k3?as=json").headers["location"] == "../../../d/corpus/row/3?as=json"
    assert pages.get("/go?to=50%25&in=corpus&as=csv").headers["location"] == "d/corpus/rows?at=150&as=csv"


def test_a_page_without_the_form_that_is_asked_for_says_which_it_has(pages: TestClient) -> None:
    answer = pages.get("/d/corpus/row/3?as=csv")
    assert (answer.status_code, "this page is there as json (asked for: as=csv)" in answer.text) == (
        400,
        True,
    )
    answer = pages.get("/d/corpus/rows?as=xml")
    assert (answer.status_code, "json, csv and jsonl" in answer.text) == (400, True)


def test_when_a_row_comes_is_said_of_each_file_that_the_name_may_mean(pages: TestClient, data: Path) -> None:
    whole = twin(pages, f"p/train/when?file={data}/corpus/part-1.jsonl&row=7&epochs=9")["comes"]
    assert len(whole) > 1
    assert twin(pages, "p/train/when?file=corpus/part-1.jsonl&row=7&epochs=9")["comes"] == whole
    both = twin(pages, "p/train/when?file=part-1.jsonl&row=7&epochs=9")
    assert both["paths"] == [f"{data}/{source}/part-1.jsonl" for source in ("corpus", "code")]
    assert {each["path"] for each in both["comes"]} == {*both["paths"]}
    assert [each["position"] for each in both["comes"]] == sorted(each["position"] for each in both["comes"])


def test_a_row_says_nothing_of_pipelines_that_do_not_read_its_file(pages: TestClient) -> None:
    assert {each["pipeline"] for each in twin(pages, "d/corpus/row/3")["training"]} == {"train", "other"}
    assert twin(pages, "d/sounds/row/0")["training"] == []


def test_rows_are_tables_too(pages: TestClient) -> None:
    lines = pages.get("/d/corpus/rows?n=2&keys=text,meta.lang&as=csv").text.splitlines()
    assert lines[0] == "row,file,row in file,text,meta.lang"
    assert [line.rpartition(",")[2] for line in lines[1:]] == ["en", "de"]
    rows = [json.loads(line) for line in pages.get("/d/corpus/rows?n=2&keys=text&as=jsonl").text.splitlines()]
    assert [row["text"] for row in rows] == [record(0)["text"], record(1)["text"]]


def test_statistics_of_all_rows_are_counts_of_the_records(pages: TestClient) -> None:
    found = twin(pages, "d/corpus/stats")
    records = [record(number) for number in range(300)]
    assert found["made_of"] == "exact, from all 300 rows"
    present = {key["key"]: key["present"]["count"] for key in found["keys"]}
    assert {name: present[name] for name in records[0]} == {
        name: sum(name in each for each in records) for name in records[0]
    }
    assert pages.get("/d/corpus/stats?n=7&as=json").json()["made_of"] == "from 7 of 300 rows, seed 0"
    few = pages.get("/d/corpus/stats?n=7").text
    assert "From 1,000 rows" in few
    assert "From 10,000 rows" not in few
    assert "From " not in pages.get("/d/corpus/stats").text
    lines = pages.get("/d/corpus/stats?as=csv").text.splitlines()
    assert len(lines) == 1 + len(found["keys"])
    assert pages.get("/d/corpus/stats?n=10001").status_code == 400
    assert pages.post("/d/corpus/read-stats?n=100001").status_code == 400


def test_a_larger_sample_extends_a_smaller_one(pages: TestClient) -> None:
    few, many = (twin(pages, f"d/corpus/rows?order=sample&n={n}") for n in (5, 50))
    assert many["rows"][:5] == few["rows"]
    assert many["made_of"] == "from 50 of 300 rows, seed 0"


def test_a_step_says_its_loss_and_the_median_of_those_before_it(pages: TestClient, shown: Opened) -> None:
    assert "other" not in shown.logs
    before = sorted(shown.logs["train"].losses[11:61].tolist())
    median = (before[24] + before[25]) / 2
    found = twin(pages, "p/train/step/61")["loss"]
    assert (found["loss"], found["median"]) == (shown.logs["train"].loss_of(61), pytest.approx(median))
    page = pages.get("/p/train/step/61").text
    assert f"{found['loss']:.4g}</b> at 61</a> (median of 50 before: {median:.4g}" in page
    assert f"+{found['times']:.1f} \N{MULTIPLICATION SIGN} MAD from it)" in page
    assert "p/train/loss" in page
    assert twin(pages, "p/train/step/7")["loss"] == {
        "step": 7,
        "loss": shown.logs["train"].loss_of(7),
        "median": None,
        "mad": None,
        "times": None,
    }
    assert "median of" not in pages.get("/p/train/step/7").text
    assert twin(pages, "p/train/step/70")["loss"] is None
    assert pages.get("/p/train/step/61").text.count(">Loss</a>") == 1
    assert pages.get("/p/train/step/70").text.count(">Loss</a>") == 1
    assert twin(pages, "p/other/step/61")["loss"] is None
    assert ">Loss</a>" not in pages.get("/p/other/step/61").text


def test_what_comes_after_the_end_of_a_run_does_not_look_trained_on() -> None:
    rows = sk.from_sequence([{"text": letter} for letter in "abcdefghij"])
    pipelines = {
        "run": sk.Loader(rows, batch_size=4, prefetch=0),
        "cut": sk.Loader(rows, batch_size=2, steps=2, prefetch=0),
        "saved": OpenPipeline(sk.Loader(rows, batch_size=2, epochs=5, prefetch=0), saved=7),
    }
    client = TestClient(app.make_app(opened_of(pipelines)), base_url="http://127.0.0.1")
    for address in ("run/step/2", "run/position/9", "run/mixture?from=0&to=3", "saved/step/6"):
        page = client.get(f"/p/{address}").text
        assert "The run ends after" not in page, address
        assert "no state says" not in page, address
    for address, says in {
        "run/step/3": "The run ends after step 2: step 3 comes only if the loader is iterated again",
        "run/position/10": "The run ends after step 2: step 3 comes only",
        "run/mixture?from=0&to=9": "The run ends after step 2: step 8 comes only",
        "cut/step/2": "The run ends after step 1: step 2 comes only",
        "cut/position/5": "Position 5 is in no step of a run",
        "saved/step/7": "The newest state is of step 7: no state says that step 7 was trained on",
    }.items():
        assert says in client.get(f"/p/{address}").text, address


def test_links_keep_the_query_and_have_none_where_none_is_left(pages: TestClient) -> None:
    page = pages.get("/d/corpus/row/3?is=00000000-3").text
    assert 'rel="prev" href="2"' in page
    assert 'rel="next" href="4"' in page
    assert 'rel="next" href="4?view=bytes"' in pages.get("/d/corpus/row/3?view=bytes").text


@pytest.mark.parametrize(
    ("name", "tabs"), [("stream", ["Overview", "Loss"]), ("even", ["Overview", "Steps", "Loss"])]
)
def test_a_stream_has_tabs_for_what_is_known_of_it_and_its_loss(
    pages: TestClient, name: str, tabs: list[str]
) -> None:
    for address in (f"/p/{name}/", f"/p/{name}/loss"):
        answer = pages.get(address)
        assert answer.status_code == 200
        shown = answer.text.partition('<nav class="tabs"')[2].partition("</nav>")[0]
        assert re.findall(r">([A-Z][\w ]+)</a>", shown) == tabs


def test_an_error_of_a_template_is_a_page_too(shown: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any, **__: Any) -> str:
        raise ValueError("no such part")

    monkeypatch.setattr(app, "record_html", fails)
    broken = TestClient(app.make_app(shown), base_url="http://127.0.0.1")
    answer = broken.get("/d/corpus/row/3?text=raw")
    assert (answer.status_code, "ValueError: no such part" in answer.text) == (500, True)


def test_two_states_say_what_each_source_delivered_between_them(pages: TestClient, data: Path) -> None:
    found = twin(pages, "s/checkpoints/5...15")["delivered"]
    places = pipeline(data)._node.plan(np.arange(5 * BATCH, 15 * BATCH)).locate()
    came = Counter("web" if "/corpus/" in place.path else "code" for place in places)
    assert {each["source"]: each["rows"] for each in found} == came
    assert "By source" in pages.get("/s/checkpoints/5...15").text


def test_the_rows_of_a_step_are_those_of_its_plan_in_their_order(pages: TestClient) -> None:
    planned = [
        (each["position"], each["rank"], each["location"]["row"])
        for each in twin(pages, "p/train/step/3")["records"]
    ]
    shown = csv.DictReader(pages.get("/p/train/step/3?as=csv").text.splitlines())
    assert [tuple(int(row[name]) for name in ("position", "rank", "row")) for row in shown] == planned


@pytest.mark.parametrize(
    ("address", "key"), [("d/corpus/row/117", "id"), ("d/sounds/row/2", "audio_filepath")]
)
def test_the_commands_of_a_record_read_it(pages: TestClient, data: Path, address: str, key: str) -> None:
    found = re.findall('data-copy="(.*?)"', pages.get(f"/{address}").text)
    command, expression = map(html.unescape, found)
    seekable, *arguments = shlex.split(command)
    assert seekable == "seekable"
    printed = json.loads(run(arguments[0], "--json", *arguments[1:], cwd=data).stdout)
    value = twin(pages, address)["record"][key]
    assert printed["record"][key] == eval(expression, {"sk": sk})[key] == value
    # A store of tokens is more than one file, so that no path alone leads to a record.
    store = pages.get("/d/tokens/row/3")
    assert (store.status_code, "data-copy" in store.text) == (200, False)


def test_the_command_of_a_record_of_a_function_calls_it() -> None:
    opened = opened_of({"made": sk.from_sequence(["a", "b"])}, paths={"made": "runs:make"})
    page = TestClient(app.make_app(opened), base_url="http://127.0.0.1").get("/d/made/row/1").text
    assert re.findall('data-copy="(.*?)"', page) == ["from runs import make; make()[1]"]


def test_style_and_scripts_are_small() -> None:
    sizes = {name: len(text) for name, text, _ in app.STATIC}
    assert sizes["view.css"] <= 12_000
    assert sizes["view.js"] + sizes["plot.js"] <= 12_000
