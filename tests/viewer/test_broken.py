"""Empty and broken data: each page says what is wrong, where, and what helps."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

import seekable as sk
from seekable.cli.shared_options import DataOptions, RunOptions, Shown
from seekable.cli.view_targets import opened_targets
from seekable.viewer.app import ROUTES, make_app
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened

OPTIONS = DataOptions()
LINES = [b'{"id": 0}', b'{"id": 1, "text": tru}', b'{"id": "\xff"}', b'{"id": 3}']


def asks(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1")


def command(*targets: object) -> Opened:
    """Return what ``seekable view`` opens."""
    names = [str(target) for target in targets]
    return opened_targets(names, RunOptions(), OPTIONS, Shown(quiet=True), pages={})


def twin(pages: TestClient, address: str) -> Any:
    return pages.get(f"/{address}{'&' if '?' in address else '?'}as=json").json()


def of_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number, line in enumerate(LINES):
            member = tarfile.TarInfo(f"s{number}.json")
            member.size = len(line)
            tar.addfile(member, io.BytesIO(line))
    return out.getvalue()


PLAIN = b"\n".join(LINES) + b"\n"
FILES = {"a.jsonl": PLAIN, "a.jsonl.gz": gzip.compress(PLAIN), "a.tar": of_tar()}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("row", "wrong"), [(1, b"tru}"), (2, b"\xff")])
def test_a_corrupt_record_is_shown_with_its_place_and_its_neighbours(
    tmp_path: Path, name: str, row: int, wrong: bytes
) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    content = FILES[name] if name == "a.tar" else PLAIN
    pages = asks(opened_of({"corpus": sk.open(tmp_path / name)}))
    found = twin(pages, f"d/corpus/row/{row}")
    place, around = found["location"], found["bytes"]
    start, stop = around["record"]
    assert content[start:stop] == LINES[row]
    data = bytes.fromhex(around["hex"])
    assert data == content[around["offset"] :][: len(data)]
    assert around["offset"] <= start
    assert around["offset"] + len(data) >= min(stop, start + 100)
    assert content[around["failing"] :].startswith(wrong)
    assert [each["row"] for each in found["neighbours"]] == [row - 1, row + 1]
    assert ["error" in each for each in found["neighbours"]] == [row == 2, row == 1]
    page = pages.get(f"/d/corpus/row/{row}").text
    assert "This record is corrupt" in page
    assert f"the record begins at byte {start:,}" in page
    assert f'<a href="{row - 1}">row {row - 1}</a>' in page
    assert "corrupt too: " in page
    assert 'action="../verify?depth=decode"' in page
    for view in ("file", "bytes", "delivered", "difference"):
        assert pages.get(f"/d/corpus/row/{row}?view={view}").status_code == 200, view
    assert place["row"] == row


def test_the_ends_of_data_have_one_neighbour(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id":\n{"id": 1}\n{"id": ')
    pages = asks(opened_of({"corpus": sk.open(tmp_path)}))
    assert [each["row"] for each in twin(pages, "d/corpus/row/0")["neighbours"]] == [1]
    assert twin(pages, "d/corpus/row/2")["neighbours"] == [{"row": 1, "record": {"id": 1}}]
    assert "corrupt" not in pages.get("/d/corpus/row/1").text
    assert pages.get("/d/corpus/").status_code == pages.get("/d/corpus/rows").status_code == 200


def test_a_function_that_raises_is_named_beside_the_record_as_in_the_file(tmp_path: Path) -> None:
    def clean(record: dict[str, Any]) -> Any:
        return 7 // record["id"]

    (tmp_path / "a.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
    data = sk.open(tmp_path)
    pages = asks(opened_of({"corpus": data, "train": sk.Loader(data.map(clean), batch_size=1)}))
    for view in ("delivered", "difference"):
        page = pages.get(f"/d/corpus/row/0?view={view}").text
        assert "A function of train raised an error" in page
        assert "ZeroDivisionError: " in page
        assert "{&#34;id&#34;: 0}" in page
    assert "raised" not in pages.get("/d/corpus/row/1?view=delivered").text


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three files of 20 records each."""
    (tmp_path / "corpus").mkdir()
    for name in "abc":
        lines = "".join(f'{{"id": "{name}{row}"}}\n' for row in range(20))
        (tmp_path / "corpus" / f"{name}.jsonl").write_text(lines)
    return tmp_path / "corpus"


def change(corpus: Path, how: str) -> str:
    """Change the second file under a viewer, and return the words of the page for that."""
    path = corpus / "b.jsonl"
    size = path.stat().st_size
    if how == "truncated":
        os.truncate(path, 100)
        return f"changed since it was indexed: {size} bytes are now 100"
    if how == "replaced":
        (corpus / "new").write_text('{"id": "new"}\n' * 30)
        (corpus / "new").rename(path)
        return f"changed since it was indexed: {size} bytes are now 420"
    if how == "touched":
        path.write_bytes(path.read_bytes().replace(b"b1", b"B1"))
        os.utime(path, (1_600_000_000, 1_600_000_000))
        return "changed since it was indexed"
    path.unlink()
    return "not there any more"


@pytest.mark.parametrize("how", ["truncated", "replaced", "touched", "gone"])
def test_a_file_that_changed_under_a_viewer_is_named_and_data_reopened(corpus: Path, how: str) -> None:
    opened = command(corpus)
    pages = asks(opened)
    assert twin(pages, "d/corpus/row/25")["record"] == {"id": "b5"}
    sk.open(corpus)[25]
    says = change(corpus, how)
    opened.datasets["corpus"].close()
    answer = pages.get("/d/corpus/row/25")
    assert answer.status_code == 409
    assert "The data has changed" in answer.text
    assert '<form method="post" action="../../../d/corpus/reopen"' in answer.text
    (named,) = twin(pages, "d/corpus/row/25")["files"]
    assert (named["path"], named["status"]) == (str(corpus / "b.jsonl"), says)
    assert says in answer.text
    assert named["since"] == (None if how == "gone" else named["since"])
    if how == "touched":
        assert named["since"] == "2020-09-13 12:26:40 UTC"
    assert pages.get("/d/corpus/row/5").status_code == 200
    for address in ("", "d/corpus/files", "d/corpus/file/1", "d/corpus/", "d/corpus/rows", "d/corpus/health"):
        assert pages.get(f"/{address}").status_code in (200, 409), address
    reopened = pages.post("/d/corpus/reopen")
    assert (reopened.status_code, str(reopened.url)) == (200, "http://127.0.0.1/d/corpus/")
    rows = {"truncated": 48, "replaced": 70, "touched": 60, "gone": 40}[how]
    assert twin(pages, "d/corpus/")["records"] == rows
    first = {"truncated": "b5", "replaced": "new", "touched": "b5", "gone": "c5"}[how]
    assert twin(pages, "d/corpus/row/25")["record"] == {"id": first}
    assert pages.get("/opening/corpus").url.path == "/d/corpus/"


def test_all_pages_of_changed_data_answer(corpus: Path) -> None:
    data = sk.open(corpus)
    loader = sk.Loader(data.shuffle(seed=1), batch_size=4)
    opened = opened_of({"corpus": data, "train": loader})
    for path in corpus.glob("*.jsonl"):
        path.write_text("{}\n")
    data.close()
    pages = asks(opened)
    seen = set()
    for route in ROUTES:
        if not route.changes and route.example.startswith(("d/corpus", "p/train", "compare")):
            answer = pages.get(f"/{route.example}")
            seen.add(answer.status_code)
            assert answer.status_code in (200, 400, 404, 409), (route.example, answer.text)
            assert "as=json" not in str(answer.url)
            if answer.status_code == 409 and "text/html" in answer.headers["content-type"]:
                assert answer.text.count("changed since it was indexed") == 3, route.example
                assert "start it again" in answer.text
                assert "<button>Reopen" not in answer.text
    assert 409 in seen
    refused = pages.post("/d/corpus/reopen")
    assert (refused.status_code, "was given to the viewer as an object" in refused.text) == (404, True)
    assert pages.post("/d/nobody/reopen").status_code == 404


def test_data_that_cannot_be_reopened_says_why_and_stays(corpus: Path) -> None:
    pages = asks(command(corpus))
    for path in corpus.glob("*.jsonl"):
        path.unlink()
    answer = pages.post("/d/corpus/reopen")
    assert answer.status_code == 404
    assert str(corpus) in answer.text
    assert pages.get("/d/corpus/files").status_code == 200


def test_data_is_reopened_in_the_background_where_that_takes_long(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = command(corpus)
    pages = asks(opened)
    (corpus / "d.jsonl").write_text("{}\n")
    monkeypatch.setattr("seekable.viewer.opened._SOON_SECONDS", 0)
    pages.post("/d/corpus/reopen")
    job = opened.jobs.all()[0]
    assert job.wait(60)
    assert twin(pages, "d/corpus/")["records"] == 61
    assert pages.get("/opening/corpus").url.path == "/d/corpus/"


def test_no_such_row_leads_to_the_last(corpus: Path) -> None:
    answer = asks(command(corpus)).get("/d/corpus/row/10000000")
    assert answer.status_code == 404
    assert "there is no row 10,000,000: corpus has 60 rows, 0 to 59" in answer.text
    assert '<a href="../../../d/corpus/row/59">the last row, 59</a>' in answer.text


def test_data_without_records_has_all_its_pages(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.jsonl").write_text("")
    pages = asks(command(tmp_path / "corpus"))
    for route in ROUTES:
        if not route.changes and route.example.startswith("d/corpus"):
            answer = pages.get(f"/{route.example}")
            assert answer.status_code in (200, 400, 404), (route.example, answer.text)
    assert "corpus has no records" in pages.get("/d/corpus/rows").text
    assert "corpus has no records" in pages.get("/d/corpus/").text
    assert "there is no row 0: corpus has no rows" in pages.get("/d/corpus/random").text
    assert "the last row" not in pages.get("/d/corpus/row/0").text


def test_a_hole_is_no_record() -> None:
    opened = opened_of({"holes": sk.from_sequence([{"id": 0}, sk.HOLE, {"id": 2}])})
    pages = asks(opened)
    assert "no record here (a hole)" in pages.get("/d/holes/row/1").text
    for address in ("d/holes/", "d/holes/rows", "d/holes/stats", "d/holes/row/1"):
        answer = pages.get(f"/{address}")
        assert answer.status_code == 200, (address, answer.text)
        assert pages.get(f"/{address}", params={"as": "json"}).status_code == 200


def test_a_state_without_a_description_says_what_it_knows_and_the_way_out(
    tmp_path: Path, corpus: Path
) -> None:
    folder = tmp_path / "states"
    loader = sk.Loader(sk.open(corpus).shuffle(seed=1), batch_size=4)
    for _ in range(2):
        loader.skip_batches(3)
        sk.save_state(folder, loader)
    for path in folder.glob("pipeline-*.json"):
        path.unlink()
    for path in folder.glob("*.json"):
        state = json.loads(path.read_text())
        state.pop("pipeline", None)
        path.write_text(json.dumps(state))
    pages = asks(command(folder))
    page = pages.get("/s/states/6").text
    assert twin(pages, "s/states/6")["position"] == 24
    assert "There is no description of the pipeline beside the state" in page
    assert "seekable view module:function" in page
    assert pages.get("/s/states/3...6").status_code == 200
    assert pages.get("/").status_code == pages.get("/s/states/").status_code == 200


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run on two ranks, over data beside it."""
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": {row}}}\n' for row in range(40)))
    for rank in range(2):
        loader = sk.Loader(
            sk.open(tmp_path / "a.jsonl").shuffle(seed=1),
            global_batch_size=4,
            rank=rank,
            world_size=2,
            prefetch=0,
        )
        for _ in range(2):
            loader.skip_batches(2)
            sk.save_state(tmp_path / "states", loader)
    return tmp_path


def test_a_run_without_its_data_has_files_and_rows_by_name(run: Path) -> None:
    whole = twin(asks(command(run / "states")), "p/train/step/3")
    (run / "a.jsonl").unlink()
    pages = asks(command(run / "states"))
    found = twin(pages, "p/train/step/3")
    rows = [[each["location"]["row"] for each in step["records"]] for step in (found, whole)]
    assert rows[0] == rows[1]
    page = pages.get("/p/train/step/3")
    assert (page.status_code, "a.jsonl" in page.text, "around" in page.text) == (200, True, False)
    assert "--root" in twin(pages, "p/train/step/3?by=odd")["error"]


def test_states_say_which_ranks_are_missing_and_which_is_corrupt(run: Path) -> None:
    (run / "states" / "state-000000000004-00001-of-00002.json").unlink()
    (run / "states" / "state-000000000002-00000-of-00002.json").write_text("{")
    pages = asks(command(run / "states"))
    assert [each["missing"] for each in twin(pages, "s/states/")["generations"]] == [[1], []]
    assert "rank 1 of 2 missing" in pages.get("/s/states/").text
    answer = pages.get("/s/states/2")
    assert (answer.status_code, "<h1>A corrupt state" in answer.text) == (422, True)
    assert "is not JSON" in answer.text
