"""Every address in a real browser: no violation of WCAG 2.2 AA, no script needed, 320 pixels are enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seekable.viewer.routes import ROUTES

if TYPE_CHECKING:
    from seekable.viewer.server import Server

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = [
    route
    for route in ROUTES
    if not route.changes
    and not route.example.startswith("media/")
    and not route.example.partition("?")[0].endswith(".svg")
]
IDS = [route.example or "home" for route in PAGES]


def violations(page: Any) -> list[tuple[str, list[Any]]]:
    """Return what axe finds on a page."""
    axe = pytest.importorskip("axe_playwright_python")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = page.evaluate(f"axe.run(document, {{runOnly: {RULES}}})")
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]]


@pytest.mark.parametrize("route", PAGES, ids=IDS)
def test_a_page_can_be_read_by_all(page: Any, viewer: Server, route: Any) -> None:
    page.goto(viewer.url + route.example)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_axe_finds_grey_text_and_a_missing_language(page: Any, viewer: Server) -> None:
    page.goto(viewer.url)
    page.evaluate("document.documentElement.removeAttribute('lang')")
    page.evaluate("document.querySelector('h1').style.color = '#ccc'")
    assert {"html-has-lang", "color-contrast"} <= {name for name, _ in violations(page)}


def test_pages_need_no_script(browser: Any, viewer: Server) -> None:
    context = browser.new_context(base_url=viewer.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(viewer.url)
    page.click("text=rows >> nth=0")
    page.click("tbody a >> nth=2")
    assert page.locator(".record").count() == 1
    assert page.locator("button.script:visible").count() == 0
    context.close()
