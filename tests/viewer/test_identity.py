"""Links say which data they were made of: opened over other data, the page says that and how it changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

import seekable as sk
from seekable.viewer.app import LinkIdentity, identity_of, make_app
from seekable.viewer.opened import opened_of

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened

BANNER = "The data has changed since this link was made"


def over(folder: Path, *, seed: int = 0) -> Opened:
    """Return data, and pipelines over it, as they are now."""
    data = sk.open(folder)
    return opened_of(
        {
            "corpus": data,
            "train": sk.Loader(data.shuffle(seed=seed), batch_size=2),
            "endless": sk.mix([data.shuffle(seed=1)], seed=0, stop="never"),
            "stream": data.stream(epochs=1),
        }
    )


def asks(opened: Opened) -> TestClient:
    return TestClient(make_app(opened), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"id": {row}}}\n' for row in range(10)))
    return tmp_path


def test_a_link_over_the_same_data_says_nothing(folder: Path) -> None:
    opened = over(folder)
    link = identity_of(opened, "d", "corpus")
    assert str(link) == f"{opened.datasets['corpus'].fingerprint.partition(':')[2][:8]}-20-2"
    for text in (str(link), link.digits if link else "", "", "nonsense", "9f3c0a1", "ffffffff-1-x"):
        answer = asks(opened).get("/d/corpus/row/3", params={"is": text})
        assert BANNER not in answer.text, text
        assert "changed" not in asks(opened).get("/d/corpus/row/3", params={"is": text, "as": "json"}).json()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("append", "20 rows are now 21"),
        ("file", "20 rows are now 23, 2 files are now 3"),
        ("rewrite", "as many rows and files as before, with another content or in another order"),
    ],
)
def test_a_link_over_other_data_says_how_it_changed(folder: Path, change: str, says: str) -> None:
    links = {kind: str(identity_of(over(folder), *kind)) for kind in (("d", "corpus"), ("p", "train"))}
    if change == "append":
        with (folder / "b.jsonl").open("a") as file:
            file.write("{}\n")
    elif change == "file":
        (folder / "c.jsonl").write_text("{}\n{}\n{}\n")
    else:
        (folder / "a.jsonl").write_text("".join(f'{{"id":{row}}}\n' for row in range(10)))
    pages = asks(over(folder))
    for address, kind in (("/d/corpus/rows", ("d", "corpus")), ("/p/train/step/1", ("p", "train"))):
        answer = pages.get(address, params={"is": links[kind]})
        assert f"{BANNER}: {says}." in answer.text, address
        assert pages.get(address, params={"is": links[kind], "as": "json"}).json()["changed"] == says
        # Links of the page are of the data as it is, and so is a copy of its own.
        assert re.search(r"[?&;]is=", answer.text) is None
        assert f'data-is="{identity_of(over(folder), *kind)}"' in answer.text
    gone = pages.get("/d/corpus/row/99", params={"is": links["d", "corpus"]})
    assert (gone.status_code, BANNER in gone.text) == (404, True)


def test_another_order_is_another_pipeline_of_the_same_data(folder: Path) -> None:
    links = [identity_of(over(folder), kind, name) for kind, name in (("d", "corpus"), ("p", "train"))]
    pages = asks(over(folder, seed=1))
    assert BANNER not in pages.get("/d/corpus/", params={"is": str(links[0])}).text
    assert f"{BANNER}: as many rows" in pages.get("/p/train/", params={"is": str(links[1])}).text


def test_endless_data_streams_and_what_is_not_open(folder: Path) -> None:
    opened = over(folder)
    endless, stream = identity_of(opened, "p", "endless"), identity_of(opened, "p", "stream")
    assert str(endless).endswith("-endless-2")
    assert str(stream).endswith("-endless")
    for name in ("endless", "stream"):
        assert (
            BANNER
            not in asks(opened).get(f"/p/{name}/", params={"is": str(identity_of(opened, "p", name))}).text
        )
        assert BANNER in asks(opened).get(f"/p/{name}/", params={"is": "00000000"}).text
    assert [
        identity_of(opened, *kind) for kind in (("d", "no"), ("p", "no"), ("s", "corpus"), ("x", ""))
    ] == [None] * 4


def test_the_words_of_a_change_name_what_is_known() -> None:
    now = LinkIdentity("9f3c0a1b", 301, None)
    assert now.changed_since("77aa01cd-300-3") == "300 rows are now 301"
    assert now.changed_since("77aa01cd") == "the link does not say how many rows and files there were"
    assert str(now) == "9f3c0a1b-301"
    assert LinkIdentity("9f3c0a1b", None, 2).changed_since("77aa01cd-300-3") == "3 files are now 2"
