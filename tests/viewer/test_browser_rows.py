"""Rows in a real browser: filters by clicks and keys, rows while a job runs, and a viewer that was ended."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import seekable as sk
from seekable.viewer.facts import filtered_rows as room
from seekable.viewer.facts import reading
from seekable.viewer.opened import opened_of
from seekable.viewer.server import Server

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_bar_and_a_name_of_a_column_filter_and_sort(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "d/corpus/rows")
    assert page.viewport_size["width"] == 1280
    assert page.locator("header").bounding_box()["height"] < 60, "the head is one line"
    page.click(".bars a:has-text('fr')")
    page.wait_for_selector("text=100 rows meet the filter")
    page.click("thead a:text-is('meta.score')")
    page.click("thead a:text-is('meta.score')")
    assert page.locator("tbody th").first.inner_text() == "299"
    assert page.locator("th[aria-sort=descending]").inner_text() == "meta.score ▼"
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "where"
    page.keyboard.press("End")
    page.keyboard.type(" and length(text) < 10")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No row of corpus meets the filter")
    page.click("[aria-label^='Remove the filter length']")
    page.wait_for_selector("text=100 rows meet the filter")
    page.click("summary:has-text('Columns')")
    page.click("[aria-label='Hide the column text']")
    page.wait_for_selector("text=Columns: 4 of 5")
    assert "where=" in page.url


def test_a_search_goes_on_over_all_rows_by_one_key(data: Path, browser: Any) -> None:
    server = Server(opened_of({"corpus": sk.open(data / "corpus")}, sample=10), port=0)
    server.start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(server.url + "d/corpus/search?q=COMMITTEE&n=10")
        page.keyboard.press("a")
        page.wait_for_selector("text=search: done")
        page.wait_for_selector("text=/^2?[0-9]+ rows,/")
        assert page.locator("mark").first.inner_text() == "committee"
    finally:
        context.close()
        server.close()


def test_rows_are_looked_at_while_a_filter_runs_and_a_viewer_that_was_ended_is_said(
    browser: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_on, read = threading.Event(), reading.read_rows

    def read_rows(node: Any, rows: Any) -> Any:
        if rows[0] >= 200:
            let_on.wait()
        return read(node, rows)

    monkeypatch.setattr(room, "_SMALL_BYTES", -1)
    monkeypatch.setattr("seekable.viewer.facts.reading.PIECE_ROWS", 50)
    monkeypatch.setattr(room, "read_rows", read_rows)
    monkeypatch.setattr("seekable.viewer.facts.reading.ResultPace.due", lambda _: True)
    server = Server(opened_of({"corpus": sk.open(data / "corpus")}), port=0)
    server.start()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(server.url + "d/corpus/rows?where=meta.lang=de&n=500")
        page.wait_for_selector("text=from the first 200 of 300 rows")
        page.wait_for_selector("tr.item >> nth=66")
        page.focus("tbody a >> nth=3")
        let_on.set()
        page.wait_for_selector("text=100 rows meet the filter")
        assert page.locator("tr.item").count() == 100
        assert page.locator("[data-live]").count() == 0
        assert page.locator("#gone").is_hidden()
        page.clock.install()
        page.goto(server.url + "d/corpus/rows")
        server.close()
        page.clock.fast_forward(6000)
        page.wait_for_selector("#gone:has-text('The viewer does not answer')")
    finally:
        let_on.set()
        context.close()
        server.close()
