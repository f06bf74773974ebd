"""Jobs over HTTP: started, shown, stopped, equal to what the command prints; data that is being opened."""

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
from seekable.cli.shared_options import DataOptions, RunOptions, Shown
from seekable.cli.view_targets import opened_targets
from seekable.errors import DataNotFound
from seekable.parallel.progress import Progress
from seekable.viewer import opened as room
from seekable.viewer.app import make_app
from seekable.viewer.opened import heads_of, opened_of, opening_work

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from seekable.parallel.progress import ProgressHook
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


OPTIONS = DataOptions()


def opened_from(*targets: str) -> Opened:
    return opened_targets(list(targets), RunOptions(), OPTIONS, Shown(quiet=True), pages={})


def asks(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Data without an index."""
    (tmp_path / "corpus").mkdir()
    for name in "ab":
        lines = "".join(f'{{"id": "{name}{row}"}}\n' for row in range(100))
        (tmp_path / "corpus" / f"{name}.jsonl").write_text(lines)
    return tmp_path / "corpus"


def test_an_index_that_is_built_has_a_page_that_ends_at_the_data(corpus: Path) -> None:
    going, reported = threading.Event(), threading.Event()
    opened = opened_of({}, paths={"corpus": str(corpus)})

    def call(hook: ProgressHook) -> sk.Dataset:
        hook(Progress(1, 2, 700, 1400, 64))
        reported.set()
        going.wait()
        return sk.open(corpus, progress=hook)

    work = opening_work(call, lambda dataset: opened.datasets.update({"corpus": dataset}))
    job = opened.opening["corpus"] = opened.jobs.start("index", "corpus", work)
    assert reported.wait(60)
    pages = asks(opened)
    while job.partial is None:
        pass
    for address in ("d/corpus/", "d/corpus/rows", "d/corpus/row/3"):
        assert pages.get(f"/{address}").headers["location"].endswith("opening/corpus"), address
    page = pages.get("/opening/corpus").text
    assert 'data-live="1"' in page
    assert "1 of 2" in page
    assert "{&#34;id&#34;: &#34;a0&#34;}" in page
    assert 'href="opening/corpus"' in pages.get("/").text
    found = pages.get("/opening/corpus?as=json").json()
    assert (found["open"], found["job"]["done"], found["job"]["of"]) == (False, 700, 1400)
    going.set()
    assert job.wait(60)
    assert pages.get("/opening/corpus").headers["location"] == "../d/corpus/"
    assert pages.get("/d/corpus/row/150?as=json").json()["record"] == {"id": "b50"}
    assert pages.get("/opening/corpus?as=json").json()["open"] is True


def test_data_is_there_at_once_where_its_index_is_built_soon(corpus: Path) -> None:
    opened = opened_from(str(corpus), f"again={corpus}")
    assert {name: len(dataset) for name, dataset in opened.datasets.items()} == {"corpus": 200, "again": 200}
    assert opened.opening == {}
    assert asks(opened).get("/?as=json").json()["jobs"] == []


def test_later_data_comes_by_itself(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_SOON_SECONDS", 0)
    opened = opened_from(str(corpus))
    assert opened.jobs.all()[0].wait(60)
    assert asks(opened).get("/d/corpus/row/0?as=json").json()["record"] == {"id": "a0"}


def test_what_cannot_be_opened_is_refused_before_the_viewer_listens(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="nothing"):
        opened_from(str(tmp_path / "nothing"))


def test_heads_are_the_first_lines_of_the_first_files(corpus: Path, tmp_path: Path) -> None:
    (corpus / "a.jsonl").write_bytes(b"\xff<b>\n" * 9)
    (corpus / "b.jsonl").write_bytes(b"\0\1\2")
    first, second = heads_of(str(corpus))
    assert first == {"file": "a.jsonl", "bytes": 45, "text": "\n".join(["\\xff<b>"] * 5)}
    assert second == {"file": "b.jsonl", "bytes": 3, "text": None}
    assert heads_of(str(tmp_path / "nothing")) == heads_of("s3://bucket/corpus") == []
