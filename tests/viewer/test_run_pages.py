"""The page of padding: by the index at once, by the records as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tests.cli.command import documents, output
from tests.viewer.viewed import pipeline

import seekable as sk
from seekable.viewer.facts.padding import padding

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from seekable.viewer.opened import Opened


def test_the_page_its_chart_and_its_numbers_are_those_of_the_command(pages: TestClient, data: Path) -> None:
    steps = ("--from", "2", "--to", "30", "--global-batch-size", "8", "--world-size", "2")
    address = "/p/train/padding?from=2&to=30"
    command = ("plot", "padding", "checkpoints", *steps)
    assert pages.get(f"{address}&as=csv").text == output(*command, "--csv", cwd=data).decode()
    (fact,) = documents(*command, cwd=data)
    found = pages.get(f"{address}&as=json").json()
    assert found == {**fact, "name": "train"}
    picture = pages.get("/p/train/padding.svg?from=2&to=30").text
    assert picture.replace("train: padding", "checkpoints: padding") == output(*command, cwd=data).decode()
    worst = max(range(28), key=lambda at: 1 - fact["held_by_step"][at] / fact["padded_by_step"][at])
    assert f'href="step/{fact["steps"][worst]}?by=length"' in pages.get(address).text


def test_texts_are_counted_by_a_job(pages: TestClient, shown: Opened) -> None:
    answer = pages.post("/p/train/padding/read?from=1&to=9", follow_redirects=True)
    (job,) = [job for job in shown.jobs.all() if job.kind == "padding"]
    assert job.wait(60)
    found: Any = pages.get(str(answer.url) + "&as=json").json()
    assert (found["job"]["state"], found["unit"]) == ("done", "characters")
    node = shown.pipeline("train").loader.dataset._node
    texts = [len(record["text"]) for record in node.fetch(np.arange(8, 72))]
    assert found["held_by_step"] == [sum(texts[at : at + 8]) for at in range(0, 64, 8)]
    assert pages.get(str(answer.url)).status_code == 200


def test_what_cannot_be_shown_says_why(pages: TestClient) -> None:
    answer = pages.get("/p/train/padding?from=5&to=5&as=json")
    assert (answer.status_code, "to= must be above from=" in answer.json()["error"]) == (400, True)
    assert pages.get("/p/stream/padding").status_code == 404


def test_texts_are_counted_by_the_command_too(data: Path) -> None:
    steps = ("--to", "3", "--batch-size", "8", "--text-key", "text")
    (fact,) = documents("plot", "padding", "checkpoints", *steps, cwd=data)
    node = pipeline(data)._node
    texts = [len(record["text"]) for record in node.fetch(np.arange(24))]
    assert fact["held"] == sum(texts)
    *_, by_index = padding(sk.Loader(pipeline(data), batch_size=8, prefetch=0), start=0, stop=3)
    assert by_index.held.sum() > fact["held"]
