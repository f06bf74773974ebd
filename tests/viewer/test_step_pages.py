"""The oddness of a step on its page: that of the facts, by rank, over maps, and with data that is away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.testclient import TestClient
from tests.viewer.test_pages import twin

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.facts.odd import odd, usual
from seekable.viewer.facts.pipelines import Batches, pipeline_of
from seekable.viewer.opened import Opened, OpenPipeline, opened_of
from seekable.viewer.pages.step import can_rank

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def client_of(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1")


def refused(record: Any) -> Any:
    raise AssertionError(record)


ROWS = [{"id": str(n), "text": f"{n:05d}" * (1 + n % 9)} for n in range(400)]
DATA = sk.from_sequence(ROWS, version="rows").shuffle(seed=1)


def test_a_step_ranked_by_oddness_is_that_of_the_facts() -> None:
    loader = sk.Loader(DATA, global_batch_size=16, rank=0, world_size=2, prefetch=0)
    opened = opened_of({"train": loader})
    found = twin(client_of(opened), "p/train/step/3?by=odd")
    node = DATA._node
    assert found["odd"] == next(odd(node, np.arange(48, 64), usual(node, [0]), steps=0)).document()
    of_rank = twin(client_of(opened), "p/train/step/3?by=odd&rank=1")
    assert of_rank["odd"] == found["odd"]
    rows = client_of(opened).get("/p/train/step/3?by=odd&rank=1&as=csv").text.splitlines()
    order = [each["position"] for each in found["odd"]["records"]]
    assert [int(row.partition(",")[0]) for row in rows[1:]] == [at for at in order if at % 2]


def test_the_same_text_in_a_step_around_is_found_by_a_job() -> None:
    twice = sk.from_sequence([{"text": f"{n % 30:04d} words"} for n in range(60)], version="twice")
    opened = opened_of({"train": sk.Loader(twice, batch_size=10, collate=list, prefetch=0)})
    pages = client_of(opened)
    assert {each["same_text_at"] for each in twin(pages, "p/train/step/0?by=odd")["odd"]["records"]} == {None}
    answer = pages.post("/p/train/step/0/around", follow_redirects=False)
    address = answer.headers["location"].partition("/p/")[2]
    assert opened.jobs[address.rpartition("=")[2]].wait(30)
    found = twin(pages, f"p/{address}")["odd"]
    assert {each["position"]: each["same_text_at"] for each in found["records"]} == {
        n: n + 30 for n in range(10)
    }
    assert found["done"] == found["of"]


def test_functions_of_a_pipeline_do_not_run_for_records_one_by_one() -> None:
    opened = opened_of({"train": sk.Loader(DATA.map(refused), batch_size=8, collate=list, prefetch=0)})
    assert can_rank(opened, "train")
    found = twin(client_of(opened), "p/train/step/0?by=odd")["odd"]
    assert found == next(odd(DATA._node, np.arange(8), usual(DATA._node, [0]), steps=0)).document()


def test_lists_of_records_are_measured_as_they_are_made() -> None:
    lists = opened_of({"train": sk.Loader(DATA.batch(4), batch_size=8, collate=list, prefetch=0)})
    assert can_rank(lists, "train")
    mapped = opened_of({"train": sk.Loader(DATA.map(str).batch(4), batch_size=8, collate=list, prefetch=0)})
    assert not can_rank(mapped, "train")
    page = client_of(mapped).get("/p/train/step/0").text
    assert "data-fetch" not in page
    assert "data-fetch" in client_of(lists).get("/p/train/step/0").text


def test_a_run_whose_files_are_away_says_how_to_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jsonl").write_text('{"t": 1}\n' * 40)
    loader = sk.Loader(sk.open(tmp_path / "a").shuffle(seed=0), global_batch_size=4, prefetch=0)
    loader.skip_batches(3)
    sk.save_state(tmp_path / "states", loader)
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    found = pipeline_of("states", Batches({}), state=None, roots=[], index_dir=None)
    opened = opened_of({"train": OpenPipeline(found.loader)})
    answer = client_of(opened).get("/p/train/step/1?by=odd&as=json")
    assert answer.status_code == 404
    assert "--root" in answer.json()["error"]


def test_a_step_shows_what_was_changed_before_it() -> None:
    left = sk.from_sequence(ROWS, version="left")
    mixed = sk.mix({"a": DATA, "b": left}, weights=[1, 1], seed=1, stop="never")
    loader = sk.Loader(mixed, batch_size=8, collate=list, prefetch=0)
    loader.steer({"a": 0, "b": 1}, at=3)
    pages = client_of(opened_of({"train": loader}))
    assert "journal" not in twin(pages, "p/train/step/2")
    (entry,) = twin(pages, "p/train/step/3")["journal"]
    assert (entry["at"], entry["text"]) == (3, "weights a 0 : b 1")
    assert "weights a 0 : b 1" in pages.get("/p/train/step/3").text
    found = twin(pages, "p/train/step/5")
    assert [(each["name"], each["records"], round(each["planned"])) for each in found["sources"]] == [
        ("a", 0, 0),
        ("b", 8, 8),
    ]
    position = twin(pages, "p/train/position/40")
    assert {row["source"] for row in position["rows"]} == {"b"}


def test_a_steered_run_is_compared_and_shown_as_its_journal_says(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"{name}": {n}}}\n' for n in range(40)))
    sources = {name: sk.open(tmp_path / f"{name}.jsonl").shuffle(seed=1) for name in "ab"}
    mixed = sk.mix(sources, weights=[1, 1], seed=1, stop="never")
    steered, plain, mapped = (
        sk.Loader(each, batch_size=8, collate=list, prefetch=0) for each in (mixed, mixed, mixed.map(dict))
    )
    steered.steer({"a": 0, "b": 1}, at=3)
    runs = {"plain": plain}
    for name, loader in (("saved", steered), ("mapped", mapped)):
        loader.skip_batches(2)
        sk.save_state(tmp_path / name, loader)
        found = pipeline_of(str(tmp_path / name), Batches({}), state=None, roots=[], index_dir=None)
        runs[name] = found.loader
    pages = client_of(opened_of({"b": sk.open(tmp_path / "b.jsonl"), **runs}))

    compared = twin(pages, "compare?a=saved&b=plain&step=4")
    assert not compared["same"]
    assert compared["old"]["sources"] == [{"name": "b", "records": 8}]
    assert [each["records"] for each in compared["new"]["sources"]] == [4, 4]
    assert 24 <= compared["first_different"] < 32
    assert compared["differences"] == ["only in the old run, from step 3: weights a 0 : b 1"]

    row = steered.locate(step=4)[0].row
    delivered = pages.get(f"/d/b/row/{row}?view=difference&by=saved").text
    assert ("&#34;b&#34;: " in delivered, 'class="plus"' in delivered) == (True, False)
    assert "start the viewer with" in pages.get(f"/d/b/row/{row}?view=delivered&by=mapped").text
