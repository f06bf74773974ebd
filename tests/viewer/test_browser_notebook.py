"""The frame of ``sk.view`` in a real browser: in notebooks, and behind a proxy that strips a prefix."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.viewer.serving import Handler, serving

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.exhaustive


@pytest.fixture
def viewer() -> Iterator[sk.Viewer]:
    """A viewer of three letters."""
    with sk.view({"letters": sk.from_sequence(["a", "b", "c"])}) as viewer:
        yield viewer


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_notebook_of_this_machine_shows_the_frame(browser: Any, viewer: sk.Viewer, host: str) -> None:
    notebook = f"<!doctype html><title>notebook</title>{viewer._repr_html_()}".encode()
    context = browser.new_context()
    with serving(lambda _: ("text/html; charset=utf-8", notebook)) as port:
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(f"http://{host}:{port}/")
        frame = page.frame_locator("iframe")
        frame.locator("a:has-text('letters') >> nth=0").click()
        frame.locator("h1:has-text('letters')").wait_for()
        frame.locator("nav.tabs >> text=Rows").click()
        frame.locator("h1:has-text('rows')").wait_for()
        assert frame.locator("main tbody tr").count() == 3
    context.close()


def test_links_hold_behind_a_proxy_that_strips_a_prefix(
    browser: Any, viewer: sk.Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = viewer.url
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def passed_on(request: Handler) -> tuple[str, bytes]:
        _, port, rest = request.path.removeprefix("/user/ada/").split("/", 2)
        assert port == direct.split(":")[2].partition("/")[0]
        with opener.open(f"http://127.0.0.1:{port}/{rest}", timeout=20) as answer:
            return answer.headers["Content-Type"], answer.read()

    context = browser.new_context()
    with serving(passed_on) as port:
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(f"http://127.0.0.1:{port}{viewer.url}")
        page.click("main a:has-text('letters')")
        page.click("nav.tabs >> text=Rows")
        page.click("tbody a >> nth=1")
        page.click("text=next >> nth=0")
        page.wait_for_url("**/d/letters/row/2*")
        assert f":{port}/user/ada/proxy/" in page.url
        page.click("header a:has-text('seekable')")
        page.wait_for_url("**/" + direct.rsplit("/", 2)[1] + "/")
        page.wait_for_load_state()
        assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "1840px"
    context.close()
