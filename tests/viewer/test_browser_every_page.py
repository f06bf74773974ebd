"""Every address in a real browser: no violation of WCAG 2.2 AA, no script needed, 320 pixels are enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.routing import compile_path
from tests.thrift import ALL, sample

from seekable.viewer.app import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.viewer.server import Server

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules whose result depends on the colours: the rest is the same in each scheme."""

PAGES = [
    route
    for route in ROUTES
    if not route.changes
    and not route.example.startswith("media/")
    and not route.example.partition("?")[0].endswith(".svg")
]
IDS = [route.example or "home" for route in PAGES]


def violations(page: Any, *, only: list[str] | None = None) -> list[tuple[str, list[Any]]]:
    """Return what axe finds on a page: by all rules, or by some of them alone."""
    if not page.evaluate("'axe' in window"):
        axe = pytest.importorskip("axe_playwright_python")
        page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text())
    options = {"runOnly": only or RULES, "resultTypes": ["violations"]}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found["violations"]]


SCHEMES = ("light", "dark")


def schemes_of(number: int) -> list[str]:
    """Return the schemes in which axe looks at a page: in `make test` one at every third page, in turn."""
    if ALL:
        return [*SCHEMES]
    return [] if number % 3 else [SCHEMES[number // 3 % 2]]


def violations_in_schemes(page: Any, schemes: Sequence[str]) -> list[tuple[str, list[Any]]]:
    """Return what axe finds on a page in some schemes of colours: by all rules in the first of them."""
    found = []
    for number, scheme in enumerate(schemes):
        page.emulate_media(color_scheme=scheme)
        found += violations(page, only=OF_COLOURS if number else None)
    return found


def route_of(path: str) -> Any:
    """Return the route that answers a path below the token."""
    return next(route for route in ROUTES if compile_path(f"/{route.path}")[0].match(f"/{path}"))


CASES = [(route, schemes_of(number)) for number, route in enumerate(PAGES)]


@pytest.fixture(scope="module")
def watched(browser: Any, viewer: Server) -> Iterator[Any]:
    """One page for all addresses, and what it complained about."""
    context = browser.new_context(base_url=viewer.url, reduced_motion="reduce")
    page, said = context.new_page(), []
    page.set_default_timeout(5000)
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    ours = (viewer.url, "data:")
    page.on("request", lambda asked: None if asked.url.startswith(ours) else said.append(asked.url))
    yield page, said
    context.close()


@pytest.mark.parametrize(
    ("route", "schemes"),
    sample((pytest.param(*case, id=name) for case, name in zip(CASES, IDS, strict=True)), of=4),
)
def test_a_page_can_be_read_by_all(watched: Any, viewer: Server, route: Any, schemes: list[str]) -> None:
    page, said = watched
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(viewer.url + route.example)
    shown = page.url.removeprefix(viewer.url)
    if shown != route.example:
        # It leads to an address that has a test of its own.
        assert route_of(shown.partition("?")[0]) in PAGES
        assert said == []
        return
    assert violations_in_schemes(page, schemes) == []
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert said == []


def test_axe_finds_grey_text_and_a_missing_language(page: Any, viewer: Server) -> None:
    page.goto(viewer.url)
    page.evaluate("document.documentElement.removeAttribute('lang')")
    page.evaluate("document.querySelector('h1').style.color = '#ccc'")
    assert {"html-has-lang", "color-contrast"} <= {name for name, _ in violations(page)}
    assert {name for name, _ in violations(page, only=OF_COLOURS)} == {"color-contrast"}


def test_pages_need_no_script(browser: Any, viewer: Server) -> None:
    context = browser.new_context(base_url=viewer.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(viewer.url)
    page.click("main a:text-is('rows') >> nth=0")
    page.click("tbody th a >> nth=2")
    assert page.locator(".record").count() == 1
    assert page.locator("button.script:visible").count() == 0
    context.close()
