"""Broken data in a real browser: its pages can be read by all, and Reopen leads back to good data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.thrift import turns
from tests.viewer.test_broken import LINES, command
from tests.viewer.test_browser_every_page import SCHEMES, violations_in_schemes

from seekable.viewer.server import Server

if TYPE_CHECKING:
    from pathlib import Path

PAGES = ("d/corpus/row/1", "d/corpus/row/99", "d/corpus/row/0?is=00000000-9-1", "nowhere", "d/corpus/row/3")


def test_pages_of_broken_data_can_be_read_by_all_and_reopened(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.jsonl").write_bytes(b"\n".join(LINES))
    server = Server(command(tmp_path / "corpus"), port=0)
    server.start()
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(10_000)
    try:
        for address, schemes in zip(PAGES, turns(SCHEMES, len(PAGES)), strict=True):
            if address == PAGES[-1]:
                (tmp_path / "corpus" / "a.jsonl").write_text('{"id": 1}\n' * 7)
                server.opened.dataset("corpus").close()
            page.goto(server.url + address)
            assert violations_in_schemes(page, schemes) == [], address
            page.set_viewport_size({"width": 320, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, address
        assert page.locator("h1").inner_text() == "The data has changed"
        page.click("button:has-text('Reopen corpus')")
        page.wait_for_url("**/d/corpus/")
        assert page.locator("dd").first.inner_text() == "7"
    finally:
        context.close()
        server.close()
