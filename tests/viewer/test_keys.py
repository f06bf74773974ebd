"""Keys of records over a real socket: any text, numbers, and keys that several records have."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

import pytest

import seekable as sk
from seekable.viewer.opened import opened_of
from seekable.viewer.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = [
    "a/b",
    "../up",
    "//",
    "a%2fb",
    "%",
    "a b&c=d#e?f",
    "\\",
    "\u00e4/\U0001f600",
    ".",
    "key:",
    "17",
    17,
    18,
]


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("keys")
    lines = [json.dumps({"id": key, "row": row}) for row, key in enumerate([*KEYS, "twice", "twice"])]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.warns(sk.errors.DuplicateKeys, match="'twice'"):
        data = sk.open(folder, key="id")
    server = Server(opened_of({"keyed": data}), port=0)
    server.start()
    yield server
    server.close()


def asked(viewer: Server, address: str) -> tuple[str, str]:
    """Return the address that an address leads to, and its text."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(viewer.url + address, timeout=20) as answer:
        return answer.url.removeprefix(viewer.url), answer.read().decode()


@pytest.mark.parametrize("key", KEYS[:-2])
def test_the_box_leads_to_the_row_of_any_key(viewer: Server, key: str) -> None:
    to = urllib.parse.quote(f"key:{key}", safe="")
    address, text = asked(viewer, f"go?to={to}")
    assert address == f"d/keyed/row/{KEYS.index(key)}"
    assert "<h1>keyed" in text


def test_a_number_is_a_key_where_no_text_is(viewer: Server) -> None:
    assert asked(viewer, "d/keyed/key/18")[0] == f"d/keyed/row/{KEYS.index(18)}"
    assert asked(viewer, "d/keyed/key/17")[0] == f"d/keyed/row/{KEYS.index('17')}"


def test_a_key_of_several_records_leads_to_each_of_them(viewer: Server) -> None:
    address, text = asked(viewer, "go?to=key:twice")
    first = len(KEYS)
    assert address == "d/keyed/key?key=twice"
    assert "2 records have this key" in text
    for row in (first, first + 1):
        assert f'href="../../d/keyed/row/{row}"' in text
    twin = json.loads(asked(viewer, "d/keyed/key?key=twice&as=json")[1])
    assert [(each["row"], each["location"]["row"]) for each in twin["rows"]] == [
        (first, first),
        (first + 1, first + 1),
    ]
