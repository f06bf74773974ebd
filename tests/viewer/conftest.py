"""A viewer over data of its own, asked with and without a browser."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from tests.viewer.viewed import make_data, opened

from seekable.viewer.app import make_app
from seekable.viewer.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.viewer.opened import Opened

CHROMIUM = (
    os.environ.get("SEEKABLE_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the data that is open."""
    folder = tmp_path_factory.mktemp("viewed")
    make_data(folder)
    return folder


@pytest.fixture(scope="session")
def shown(data: Path) -> Opened:
    """What is open."""
    return opened(data)


@pytest.fixture(scope="session")
def pages(shown: Opened) -> TestClient:
    """Asks for pages without a guard and a browser."""
    return TestClient(make_app(shown), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture(scope="package")
def viewer(shown: Opened) -> Iterator[Server]:
    """A viewer that listens."""
    server = Server(shown, port=0)
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A real browser. While it is open, the main thread has a running event loop: later tests must not."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make browser")
    if not CHROMIUM:
        if "CI" in os.environ:
            pytest.fail("there is no Chromium: make browser")
        pytest.skip("there is no Chromium: make browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def window(browser: Any, viewer: Server) -> Iterator[Any]:
    """What the pages of tests share: one context is made faster than one for each."""
    context = browser.new_context(base_url=viewer.url, reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture
def page(window: Any, viewer: Server) -> Iterator[Any]:
    """A page of the browser, which must not complain, or ask another host."""
    page = window.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.set_default_timeout(5000)
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    strays = [url for url in asked if not url.startswith((viewer.url, "data:", "blob:"))]
    page.evaluate("localStorage.clear()")
    page.close()
    assert not said
    assert not strays
