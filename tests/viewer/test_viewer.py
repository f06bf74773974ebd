"""``sk.view`` and the method ``view``: one server a process, a token for each viewer, none in a child."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import run
from tests.viewer.viewed import picture, tone

import seekable as sk
from seekable.errors import DataNotFound, MissingDependency, WrongType
from seekable.viewer import viewer as room

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = sk.from_sequence(["a", "b", "c"])


def ask(url: str, *, host: str | None = None) -> tuple[int, str]:
    """Return the status and the text of an answer; no proxy is asked."""
    request = urllib.request.Request(url, headers={} if host is None else {"Host": host})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_each_viewer_shows_its_own_until_it_is_closed() -> None:
    first, second = sk.view({"letters": LETTERS}), sk.view({"numbers": sk.from_sequence([1, 2])})
    try:
        assert first.url != second.url
        assert first.url.split("/")[2] == second.url.split("/")[2]
        assert ask(first.url + "d/letters/row/1?as=json")[0] == 200
        assert ask(first.url + "d/numbers/row/1?as=json")[0] == 404
        assert json.loads(ask(second.url + "d/numbers/row/1?as=json")[1])["record"] == 2
        first.close()
        assert ask(first.url)[0] == 403
        assert ask(second.url)[0] == 200
        first.close()
        assert ask(second.url)[0] == 200
    finally:
        first.close()
        second.close()
    with pytest.raises(urllib.error.URLError):
        ask(second.url)
    with sk.view(LETTERS) as again:
        assert ask(again.url)[0] == 200


@pytest.mark.parametrize(
    ("target", "address"),
    [
        (LETTERS, "d/data/"),
        (LETTERS.shuffle(seed=1), "p/data/"),
        (LETTERS.stream(epochs=1), "p/data/"),
        (sk.Loader(LETTERS.shuffle(seed=1), batch_size=2), "p/data/"),
    ],
    ids=["data", "pipeline", "stream", "loader"],
)
def test_datasets_streams_and_loaders_can_be_viewed(
    target: sk.Dataset | sk.Stream | sk.Loader, address: str
) -> None:
    with sk.view(target, height=321) as viewer:
        status, page = ask(viewer.url)
        assert status == 200
        assert f'href="{address}"' in page
        frame = viewer._repr_html_()
        assert f'src="{viewer.url}{address}"' in frame
        assert ask(viewer.url + address)[0] == 200
        assert 'height="321"' in frame


def test_a_tokenizer_is_taken(data: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.jsonl").write_text('{"tokens": [1, 2, 3, 4]}\n')
    loader = sk.Loader(sk.open(tmp_path / "ids.jsonl").pack(4, seed=3), batch_size=1)
    for tokenizer, is_there in ((data / "tokenizer.json", True), (None, False)):
        with sk.view(loader, tokenizer=tokenizer) as viewer:
            status, page = ask(f"{viewer.url}p/data/sequence/0?as=json")
            assert status == 200
            assert (json.loads(page)["tokenizer"] is not None) is is_there


def test_a_table_stays_in_the_notebook_with_pictures_and_sound(data: Path, tmp_path: Path) -> None:
    with sk.view({"sounds": sk.open(data / "sounds"), "web": sk.open(data / "corpus")}) as viewer:
        table = viewer.table("sounds", n=9)
        chats = viewer.table("web", n=2, at=298)
        with pytest.raises(
            sk.errors.InvalidArgument, match="name= says of which there is a table: sounds, web"
        ):
            viewer.table()
        with pytest.raises(sk.errors.KeyNotFound, match="no pipeline 'other'"):
            viewer.table("other")
    assert repr(table) == "<5 columns of 3 records of sounds>"
    html = table._repr_html_()
    assert (html.count("<audio "), html.count("<img ")) == (6, 3)
    for form, what in (("audio/wav", tone(20)), ("image/png", picture(80))):
        assert f"data:{form};base64,{base64.b64encode(what).decode()}" in html
    assert "script" not in re.sub('base64,[^"]*', "", html)
    assert "http" not in html
    assert "assistant: &lt;b&gt;hello" in chats._repr_html_()
    assert repr(chats) == "<4 columns of 2 records of web>"
    (tmp_path / "a.jsonl").write_text('{"<i>": "<script>"}\nnot JSON\n7\n')
    with sk.view(sk.open(tmp_path / "a.jsonl")) as viewer:
        html = viewer.table()._repr_html_()
    assert "<script" not in html
    for words in ("&lt;i&gt;", "&lt;script&gt;", "cannot be decoded", "7"):
        assert words in html
    pipeline = sk.from_sequence(range(10)).map(str).shuffle(seed=1)
    with sk.view(pipeline) as viewer:
        assert all(each in viewer.table(n=3)._repr_html_() for each in pipeline[:3])
    with sk.view(sk.from_sequence([])) as viewer:
        assert repr(viewer.table()) == "<0 columns of 0 records of data>"


def test_the_frame_is_of_the_viewer_and_names_are_escaped() -> None:
    with sk.view({"<script>": LETTERS}) as viewer:
        frame = viewer._repr_html_()
        assert re.search(rf'<iframe src="{re.escape(viewer.url)}" ', frame)
        assert "<script" not in frame
    assert "closed" in viewer._repr_html_()
    assert "<iframe" not in viewer._repr_html_()


def test_below_a_hub_the_link_is_a_path_and_its_name_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/")
    monkeypatch.setenv("JUPYTERHUB_PUBLIC_URL", "https://hub.example.org/user/ada/")
    with sk.view(LETTERS, allow_host=["other.example.org"], frame_from=["https://lab.example.org"]) as viewer:
        found = re.fullmatch(r"/user/ada/proxy/(\d+)/([0-9a-f]{32})/", viewer.url)
        assert found is not None
        direct = f"http://127.0.0.1:{found[1]}/{found[2]}/"
        statuses = {
            host: ask(direct, host=host)[0]
            for host in (
                "hub.example.org",
                "other.example.org:8000",
                "evil.example.org",
                "hub.example.org.evil",
            )
        }
        assert list(statuses.values()) == [200, 200, 421, 421]


FORKS = """
import os, socket, sys, urllib.request
from tests.cli.command import run


import seekable as sk

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ds = sk.from_sequence("abc")
viewer = sk.view(ds)
url, port = viewer.url, int(viewer.url.split(":")[2].split("/")[0])
child = os.fork()
if not child:
    try:
        viewer.close()
        try:
            viewer.url
        except sk.errors.ForkUnsafe:
            pass
        else:
            os._exit(3)
        assert "another process" in viewer._repr_html_(), viewer._repr_html_()
        with sk.view(ds) as own:
            assert own.url.split("/")[2] != url.split("/")[2]
            assert opener.open(own.url).status == 200
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert opener.open(url).status == 200
reader, writer = os.pipe()
holder = os.fork()
if not holder:
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
viewer.close()
free = socket.socket()
# Connections that wait to be forgotten do not count.
free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
free.bind(("127.0.0.1", port))  # The child that lives holds no copy of the socket.
os.close(writer)
os.waitpid(holder, 0)
"""


def test_a_child_has_no_server_and_may_begin_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_viewed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongType, match="'data': int"):
        sk.view(7)
    with pytest.raises(DataNotFound, match="nothing"):
        sk.view(LETTERS, media_root=tmp_path / "nothing")
    monkeypatch.setattr(room, "is_installed", lambda name: name != "uvicorn")
    with pytest.raises(MissingDependency, match=r"needs uvicorn: pip install 'seekable\[view\]'"):
        sk.view(LETTERS)
    said = run("view", "--no-browser")
    assert (said.returncode, said.stderr) == (
        1,
        b"seekable: seekable view needs uvicorn: pip install 'seekable[view]'\n",
    )
    assert b"'--port': Input should be less than or equal to 65535" in run("view", "--port", "99999").stderr
