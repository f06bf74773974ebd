"""Jobs and the health of data over HTTP: started, shown, stopped, and equal to what the command prints."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from tests.cli.command import run

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from seekable.viewer.opened import Opened


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Data of two files, one of which is changed after it was indexed, at the same size and time."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"id": {row}}}\n' for row in range(50)))
    return opened_of({"corpus": sk.open(tmp_path)}, paths={"corpus": str(tmp_path)})


@pytest.fixture
def pages(opened: Opened) -> TestClient:
    """Asks for pages, and follows where a form leads."""
    return TestClient(make_app(opened), base_url="http://127.0.0.1")


def verified(pages: TestClient, opened: Opened, depth: str) -> Any:
    """Return the JSON twin of the page of a comparison that has ended."""
    answer = pages.post(f"/d/corpus/verify?depth={depth}")
    assert answer.status_code == 200
    assert opened.jobs.all()[0].wait(60)
    return pages.get(str(answer.url) + "&as=json").json()


@pytest.mark.parametrize(
    ("depth", "options"), [("ends", []), ("deep", ["--deep"]), ("decode", ["--deep", "--decode"])]
)
def test_a_comparison_is_that_of_the_command(
    pages: TestClient, opened: Opened, tmp_path: Path, depth: str, options: list[str]
) -> None:
    result = verified(pages, opened, depth)["job"]["result"]
    command = json.loads(run("verify", *options, "--json", str(tmp_path)).stdout)
    assert {key: result[key] for key in command if key != "schema"} == {
        key: value for key, value in command.items() if key != "schema"
    }
    assert result["good"] is True


def test_problems_are_listed_and_a_new_comparison_sees_that_they_are_mended(
    pages: TestClient, opened: Opened, tmp_path: Path
) -> None:
    good = (tmp_path / "b.jsonl").read_bytes()
    with (tmp_path / "b.jsonl").open("ab") as file:
        file.write(b'{"id": 50}\n')
    found = verified(pages, opened, "ends")
    assert [problem["kind"] for problem in found["job"]["result"]["problems"]] == ["changed"]
    address = f"/d/corpus/health?job={found['job']['job']}"
    assert "1 problem" in pages.get(address).text
    assert pages.get(address + "&as=csv").text.splitlines()[0] == "kind,path,row,offset,message"
    assert "b.jsonl" in pages.get(address + "&as=jsonl").text
    (tmp_path / "b.jsonl").write_bytes(good)
    assert verified(pages, opened, "ends")["job"]["job"] != found["job"]["job"]


@dataclass(frozen=True)
class Part:
    done: int
    of: int = 1000

    def document(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "of": self.of,
            "unit": "rows",
            "example": "<script>window.pwned = 1</script>",
        }


def test_a_job_is_shown_and_stopped_and_keeps_what_it_found(pages: TestClient, opened: Opened) -> None:
    made, going = threading.Event(), threading.Event()

    def work() -> Generator[Part]:
        for number in itertools.count(7):
            yield Part(number)
            made.set()
            going.wait()

    job = opened.jobs.start("count", "it", work())
    assert made.wait(60)
    live = pages.get("/job/1").text
    assert 'data-live="1"' in live
    assert "7 of 1,000 rows" in live
    assert "<script>window" not in live
    assert '<form method="post" action="../job/1/stop?to=job%2F1"' in live
    job.stop()
    going.set()
    ended = pages.post("/job/1/stop")
    assert job.wait(60)
    assert str(ended.url).endswith("/job/1")
    page = pages.get("/job/1")
    assert "data-live" not in page.text
    assert "stopped" in page.text
    assert page.text.count("Stop</button>") == 0
    assert pages.get("/job/1?as=json").json()["result"]["done"] >= 7


def test_a_job_that_fails_says_why_and_keeps_what_it_found(pages: TestClient, opened: Opened) -> None:
    def work() -> Generator[Part]:
        yield Part(3)
        message = "<b>no</b>"
        raise ValueError(message)

    assert opened.jobs.start("count", "it", work()).wait(60)
    page = pages.get("/job/1").text
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in page
    assert "Found so far" in page


def test_jobs_are_changed_by_post_alone(pages: TestClient) -> None:
    assert pages.get("/d/corpus/verify").status_code == 404
    assert pages.post("/d/corpus/verify?depth=all").status_code == 400
    assert pages.post("/d/nobody/verify").status_code == 404
    assert pages.get("/job/7").status_code == 404
    assert pages.post("/job/7/stop").status_code == 404


def test_a_corrupt_record_leads_to_a_comparison_that_names_it(tmp_path: Path) -> None:
    lines = [b'{"id": 0}', b'{"id": ', b'{"id": 2}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    opened = opened_of({"corpus": sk.open(tmp_path)})
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    page = pages.get("/d/corpus/row/1").text
    assert "This record is corrupt" in page
    assert 'action="../verify?depth=decode"' in page
    (problem,) = verified(pages, opened, "decode")["job"]["result"]["problems"]
    assert (problem["kind"], problem["row"], problem["offset"]) == ("record", 1, 10)
    shown = pages.get(f"/d/corpus/health?job={opened.jobs.all()[0].name}").text
    assert '<a href="at/a.jsonl/1">1</a>' in shown
    assert str(pages.get("/d/corpus/at/a.jsonl/1").url).endswith("/d/corpus/row/1")
