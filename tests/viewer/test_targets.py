"""The targets of ``seekable view``: their names in addresses, and what cannot be opened of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

import seekable as sk
from seekable.cli.shared_options import DataOptions, RunOptions, Shown
from seekable.cli.view_targets import loss_log_of, opened_targets
from seekable.viewer.app import make_app

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened

OPTIONS = DataOptions()


def opened(*targets: str) -> Opened:
    return opened_targets(targets, RunOptions(), OPTIONS, Shown(), pages={"scans": False})


def is_long(record: Any) -> bool:
    return bool(record["id"] > 3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data, and the states of two runs over it and of a stream."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.jsonl").write_text("".join(json.dumps({"id": row}) + "\n" for row in range(80)))
    rows = sk.open("web.jsonl").shuffle(seed=1)
    runs: dict[str, Any] = {
        "monday": rows,
        "tuesday": rows.skip(1),
        "streamed": rows.stream(lanes=1).filter(is_long),
    }
    for name, data in runs.items():
        loader = sk.Loader(data, batch_size=4, prefetch=0)
        for _ in range(2):
            loader.skip_batches(2)
            sk.save_state(name, loader)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("targets", "pipelines", "states"),
    [
        (["monday"], ["train"], ["monday"]),
        (["monday", "tuesday"], ["train", "train-2"], ["monday", "tuesday"]),
        (["a=monday", "b=tuesday"], ["a", "b"], ["a", "b"]),
        (["monday", "train=tuesday"], ["monday", "train"], ["monday", "train"]),
        (["a=monday", "a=tuesday"], ["a", "a-2"], ["a", "a-2"]),
    ],
)
def test_a_run_has_the_name_that_the_user_gave(
    targets: list[str], pipelines: list[str], states: list[str]
) -> None:
    found = opened(*targets)
    assert (list(found.pipelines), list(found.states)) == (pipelines, states)


@pytest.mark.usefixtures("folder")
def test_a_folder_of_states_says_why_it_has_no_pipeline() -> None:
    pages = TestClient(make_app(opened("streamed")), base_url="http://127.0.0.1")
    why = pages.get("/s/streamed/?as=json").json()["pipeline_unknown"]
    assert "filter" in why
    assert "module:function" in why
    assert "cannot be shown: the order of filter" in pages.get("/s/streamed/").text
    assert why in pages.get("/go?to=step+3&as=json").json()["error"]
    pages = TestClient(make_app(opened("monday")), base_url="http://127.0.0.1")
    assert pages.get("/s/monday/?as=json").json()["pipeline_unknown"] is None


@pytest.mark.usefixtures("folder")
def test_a_log_is_of_the_run_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,2.5\n")

    def logs(targets: list[str], *logs: str) -> dict[str, Any]:
        found = opened_targets(targets, RunOptions(), OPTIONS, Shown(), logs=logs, pages={"scans": False})
        return dict(found.logs)

    assert list(logs(["monday"], "log.csv")) == ["train"]
    assert list(logs(["a=monday", "b=tuesday"], "b=log.csv:step,loss")) == ["b"]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"may be of 2 runs: name the one, as in a=log.csv, b=log.csv"
    ):
        logs(["a=monday", "b=tuesday"], "log.csv")
    with pytest.raises(sk.errors.InvalidArgument, match="is of no pipeline 'c'"):
        logs(["a=monday"], "c=log.csv")


@pytest.mark.usefixtures("folder")
def test_a_state_of_a_mixture_below_a_slice_has_the_records_of_each_source() -> None:
    even, odd = sk.open("web.jsonl"), sk.from_sequence(range(40), version="odd")
    mixed = sk.mix({"even": even, "odd": odd}, weights={"even": 3, "odd": 1}, seed=0).take(40).map(str)
    loader = sk.Loader(mixed, batch_size=4, prefetch=0)
    for _ in range(2):
        loader.skip_batches(4)
        sk.save_state("mixed", loader)
    pages = TestClient(make_app(opened("mixed")), base_url="http://127.0.0.1")
    found = pages.get("/s/mixed/8?as=json").json()["delivered"]
    counts = [sum(str(place.path).endswith("web.jsonl") for place in mixed.locate(list(range(32))))]
    assert found == [{"source": "even", "records": counts[0]}, {"source": "odd", "records": 32 - counts[0]}]
    between = pages.get("/s/mixed/4...8?as=json").json()["delivered"]
    assert sum(each["rows"] for each in between) == 16
    for address in ("/s/mixed/8", "/s/mixed/4...8"):
        assert "the only one" not in pages.get(address).text


def test_fields_of_a_log_may_have_slashes_and_its_path_colons(tmp_path: Path) -> None:
    plain, odd = tmp_path / "log.csv", tmp_path / "a:b,c.csv"
    plain.write_text("_step,train/loss\n1,2.5\n")
    odd.write_text("step,loss\n1,3.5\n")
    assert loss_log_of(f"{plain}:_step,train/loss").losses.tolist() == [2.5]
    assert loss_log_of(str(odd)).losses.tolist() == [3.5]
    assert loss_log_of(f"{odd}:step,loss").losses.tolist() == [3.5]
    with pytest.raises(sk.DataNotFound, match="no log of losses"):
        loss_log_of(str(tmp_path / "none.csv"))
