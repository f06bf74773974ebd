"""Jobs in a real browser: the page follows them by itself, the button stops them, and no script is needed."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from seekable.viewer.server import Server


@dataclass(frozen=True)
class Part:
    done: int
    of: int = 1000

    def document(self) -> dict[str, Any]:
        return {"done": self.done, "of": self.of, "unit": "rows"}


def counting(go: threading.Semaphore) -> Generator[Part]:
    for number in itertools.count(1):
        yield Part(number)
        go.acquire()


def test_a_page_follows_its_job_until_it_is_stopped(page: Any, viewer: Server) -> None:
    go = threading.Semaphore(0)
    job = viewer.opened.jobs.start("count", "followed", counting(go))
    try:
        page.goto(f"{viewer.url}job/{job.name}")
        page.wait_for_selector("text=/^1 of 1,000 rows/")
        go.release()
        page.wait_for_selector("text=/^2 of 1,000 rows/")
        assert page.locator("[data-state]").inner_text() == "count: running"
        assert page.locator("text=Look again").is_hidden()
        job.stop()
        go.release()
        page.wait_for_selector("text=count: stopped; what it found stays")
        assert page.locator("button:has-text('Stop')").count() == 0
    finally:
        job.stop()
        go.release()


def test_data_is_compared_by_keyboard_alone(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "d/corpus/health")
    page.focus("main button:has-text('Check') >> nth=1")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The files are as they were indexed.")
    assert "every byte and offset" in page.locator("main").inner_text()


def test_a_job_is_started_looked_at_and_stopped_without_script(browser: Any, viewer: Server) -> None:
    go = threading.Semaphore(0)
    job = viewer.opened.jobs.start("count", "alone", counting(go))
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{viewer.url}job/{job.name}")
        page.click("text=Look again")
        assert job.state == "running"
        go.release()
        job.stop()
        page.click("button:has-text('Stop')")
        assert "stopped" in page.locator("[data-state]").inner_text()
        page.goto(viewer.url + "d/corpus/health")
        page.click("main button:has-text('Check') >> nth=0")
        assert "health?job=" in page.url
    finally:
        job.stop()
        go.release()
        context.close()
