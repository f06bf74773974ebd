"""The losses of several runs on one chart, at a step, in a window; what was changed in a run is on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from tests.viewer.viewed import BATCH

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.facts.loss_log import read_loss_log
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.server import Server


FOLDERS = {"web": "corpus", "code": "code"}


def twin(pages: TestClient, address: str) -> Any:
    answer = pages.get(f"/{address}{'&' if '?' in address else '?'}as=json")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """Two runs with logs of their own, the first of them steered and saved, and one without a log."""
    folder = tmp_path_factory.mktemp("runs")
    sources = {name: sk.open(data / folder).shuffle(seed=1) for name, folder in FOLDERS.items()}
    mixed = sk.mix(sources, weights={"web": 7, "code": 3}, seed=0, stop="never")
    loaders = {name: sk.Loader(mixed, batch_size=BATCH, prefetch=0) for name in ("a", "b", "c")}
    loaders["a"].skip_batches(10)
    sk.save_state(folder / "states", loaders["a"])
    loaders["a"].steer({"web": 1, "code": 1}, at=20)
    loaders["a"].skip_batches(20)
    sk.save_state(folder / "states", loaders["a"])
    for name, first, last in (("a", 0, 80), ("b", 40, 120)):
        lines = [
            {"step": step, "loss": 3 + (name == "b") + step % 5 / 10 + 5 * (step == 70)}
            for step in range(first, last)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    logs = {name: read_loss_log(folder / f"{name}.jsonl") for name in ("a", "b")}
    stream = sk.Loader(mixed.stream(lanes=2).filter(bool), batch_size=BATCH, prefetch=0)
    stream.exclude([(str(data / "code" / "part-0.jsonl"), 3)], at=5)
    targets = {**loaders, "stream": stream, "states": str(folder / "states")}
    return TestClient(make_app(opened_of(targets, logs=logs)), base_url="http://127.0.0.1")


def test_runs_are_drawn_together_unless_the_address_says_otherwise(runs: TestClient) -> None:
    found = twin(runs, "p/a/loss")
    assert [each["name"] for each in found["others"]] == ["b"]
    assert found["others"][0]["steps"] == list(range(40, 120))
    assert [each["step"] for each in found["spikes"]] == [70]
    picture = runs.get("/p/a/loss.svg").text
    assert (
        "a from 3 at step 0 to 3.4 at step 79, with 1 marks; b from 4 at step 40 to 4.4 at step 119"
        in picture
    )
    alone = twin(runs, "p/a/loss?with=")
    assert alone["others"] == []
    assert "; b from" not in runs.get("/p/a/loss.svg?with=").text
    assert "show b" in runs.get("/p/a/loss?with=").text
    answer = runs.get("/p/a/loss?with=c&as=json")
    assert (answer.status_code, "no log of a run 'c'" in answer.json()["error"]) == (404, True)


def test_a_window_cuts_all_curves_and_a_step_has_the_loss_of_each(runs: TestClient) -> None:
    found = twin(runs, "p/a/loss?from=60&to=75&at=70")
    assert found["steps"] == found["others"][0]["steps"] == list(range(60, 76))
    assert [(each["name"], each["loss"]) for each in found["at"]] == [("a", 8), ("b", 9)]
    assert found["at"][0]["median"] == found["spikes"][0]["median"]
    assert found["at"][1]["median"] is None
    page = runs.get("/p/a/loss?from=60&to=75&at=70").text
    for link in ("../../p/a/step/70", "../../p/b/step/70", "from=76&amp;to=91", "from=44&amp;to=59"):
        assert link in page
    assert twin(runs, "p/a/loss?at=1000")["at"][0]["loss"] is None
    answer = runs.get("/p/a/loss?from=9&to=8&as=json")
    assert (answer.status_code, "to= must not be below from=" in answer.json()["error"]) == (400, True)
    empty = twin(runs, "p/a/loss?from=500&to=600")
    assert (empty["steps"], empty["spikes"]) == ([], [])
    assert "There is no value." in runs.get("/p/a/loss.svg?from=500&to=600").text


def test_what_was_changed_in_a_run_is_on_its_pages_and_charts(runs: TestClient) -> None:
    words = "weights web 1 : code 1, from position 160 on"
    for address in ("p/a/", "p/a/loss", "p/a/mixture?from=0&to=40", "s/states/", "s/states/10...30"):
        assert words in runs.get(f"/{address}").text, address
    for chart in ("p/a/loss.svg", "p/a/mixture.svg?from=0&to=40"):
        assert ">1</text>" in runs.get(f"/{chart}").text
    assert words not in runs.get("/p/b/loss").text
    assert "1 row of 1 file left out" in runs.get("/p/stream/").text
    assert twin(runs, "p/a/loss")["journal"][0]["at"] == 20


def test_two_states_are_compared_by_source(pages: TestClient, runs: TestClient) -> None:
    found = {each["source"]: each for each in twin(pages, "s/checkpoints/5...15")["by_source"]}
    assert found["web"]["new"] - found["web"]["old"] == found["web"]["rows"] > 0
    assert sum(each["rows"] for each in found.values()) == 10 * BATCH
    assert sum(each["share"] for each in found.values()) == pytest.approx(1)
    assert "By source" in pages.get("/s/checkpoints/5...15").text
    answer = pages.get("/s/checkpoints/compare?old=15&new=5")
    assert (answer.status_code, answer.headers["location"]) == (303, "../../s/checkpoints/5...15")
    steered = {each["source"]: each for each in twin(runs, "s/states/10...30")["by_source"]}
    assert sum(each["rows"] for each in steered.values()) == 20 * BATCH
    assert steered["code"]["rows"] > 3 * found["code"]["rows"] / 2


def test_the_chart_is_read_zoomed_and_followed_by_the_mouse(page: Any, viewer: Server) -> None:
    page.goto(viewer.url + "p/train/loss?with=even")
    box = page.locator(".plot img").bounding_box()
    scale = box["width"] / 1100

    def place(step: int) -> float:
        return float(box["x"] + (58 + step / 69 * (1100 - 58 - 150)) * scale)

    middle = box["y"] + box["height"] / 2
    with page.expect_response(lambda answer: "as=json" in answer.url):
        page.mouse.move(place(61), middle)
    page.mouse.move(place(60), middle)
    page.mouse.move(place(61), middle)
    page.locator(".words-at >> text=train: 4.41").wait_for()
    assert page.locator(".words-at").inner_text().split("\n") == ["step 61", "train: 4.41", "even: 4.41"]
    page.mouse.move(place(50), middle)
    page.mouse.down()
    page.mouse.move(place(65), middle)
    with page.expect_navigation():
        page.mouse.up()
    assert "from=50&to=65" in page.url
    box = page.locator(".plot img").bounding_box()
    page.mouse.move(box["x"] + (58 + 11 / 15 * (1100 - 58 - 150)) * scale, middle)
    with page.expect_response(lambda answer: "as=json" in answer.url):
        page.mouse.down()
    with page.expect_navigation():
        page.mouse.up()
    assert "at=61" in page.url
    page.locator("text=step 61 of train").click()
    page.wait_for_url(lambda url: "p/train/step/61" in url)
