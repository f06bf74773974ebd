"""Values as HTML: short in a line of a table, whole in a record."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from starlette.testclient import TestClient

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.opened import opened_of
from seekable.viewer.render import Limits, one_line, record_html

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (1 / 3, "0.333333"),
        (0.5, "0.5"),
        (-2e-9 / 3, "-6.66667e-10"),
        (1700000000.5, "1700000000.5"),
        (-1e300, "-1e+300"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ({"score": 2 / 3}, "{score: 0.666667}"),
        ([0.1 + 0.2, 3], "[0.3, 3]"),
    ],
)
def test_a_line_has_six_digits_of_a_float(value: object, line: str) -> None:
    assert one_line(value) == line


@pytest.mark.parametrize("value", [1 / 3, 1e-300 / 3, 123456.789012345, 2.0**70, math.nan])
def test_a_record_has_all_digits_of_a_float(value: float) -> None:
    shown = re.sub("<[^>]*>", "", str(record_html({"score": value})))
    assert shown == "{1}score" + repr(value)


def test_the_first_values_of_an_array_are_short() -> None:
    assert "<code>0.1, 0.333333</code>" in record_html(np.array([0.1, 1 / 3], dtype=np.float32))


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u2003"])
def test_a_text_that_cannot_be_seen_is_in_quotes(blank: str) -> None:
    for shown in (one_line(blank), record_html({"text": blank})):
        assert re.search(r"&#34;.*&#34;", str(shown))


def test_a_chat_has_all_turns_with_all_their_fields() -> None:
    call = {"id": "c1", "function": {"name": "calc", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": "3 + 3?", "weight": 0},
        {"role": "assistant", "tool_calls": [call], "reasoning_content": "must calc"},
        *({"role": "user", "content": f"turn {number}"} for number in range(300)),
    ]
    page = str(record_html({"messages": turns}))
    assert page.count('<div class="turn">') == 302
    for shown in ("weight", "tool_calls", "calc", "must calc", "turn 299"):
        assert shown in page
    by_name = str(record_html([{"from": "human", "value": "hi", "lang": "en"}]))
    assert '<div class="turn"><b>human</b>' in by_name
    assert "lang" in by_name
    cut = str(record_html(turns, limits=Limits(nodes=100)))
    assert "more turns; the JSON has all" in cut


def test_cells_of_one_short_word_are_not_broken(tmp_path: Path) -> None:
    row = {"id": "0f8fad5b-d9cb-469f-a165-70867728950e", "text": "to be", "long": "x" * 41, "n": 3}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    pages = TestClient(make_app(opened_of({"a": sk.open(tmp_path)})), base_url="http://127.0.0.1")
    found = pages.get("/d/a/rows").text
    assert f'<td class="word">{row["id"]}</td>' in found
    assert "<td>to be</td>" in found
    assert f"<td>{row['long']}</td>" in found
    assert '<td class="num">3</td>' in found


def test_a_corrupt_row_of_a_table_has_its_error_across_all_keys(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 0, "text": "to be"}\n{"id":\n')
    pages = TestClient(make_app(opened_of({"a": sk.open(tmp_path)})), base_url="http://127.0.0.1")
    for address in ("/d/a/", "/d/a/rows", "/d/a/file/0"):
        found = pages.get(address).text
        assert found.count('<td class="wrong" colspan="2">') == 1, address
        assert re.search(r'<th scope="col" class="num">(<a [^>]*>)?id<', found), address


def test_a_page_of_many_datasets_names_its_own_and_those_that_fit(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 0}')
    named = {f"data{number}": sk.open(tmp_path) for number in range(9)}
    loader = sk.Loader(named["data0"], batch_size=1, prefetch=0)
    pages = TestClient(make_app(opened_of({**named, "train": loader})), base_url="http://127.0.0.1")
    head = pages.get("/d/data8/").text.partition("</nav>")[0]
    assert '<a href="../../#datasets">all 9</a>' in head
    assert '<a href="../../d/data8/" aria-current="page">data8</a>' in head
    assert re.findall(r">(data\d|train)<", head) == ["data0", "data1", "data2", "data3", "data8", "train"]
    assert (
        '<a href="../../p/train/" aria-current="page">' in pages.get("/p/train/").text.partition("</nav>")[0]
    )
    assert 'id="datasets"' in pages.get("/").text
