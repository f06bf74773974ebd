"""Forked, spawned and served children of a process that has, or has not, read an object store."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import types
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.remote.fetching.range_server import ETAG, content, range_server
from tests.thrift import turns

import seekable as sk
from seekable.remote.fetching import forks
from seekable.remote.fetching.forks import Helper, RelayedStore
from seekable.remote.mounts import mount, store_of
from seekable.remote.stores.object_store import Passing, Pin, identity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 8_000_000
SECONDS = 120
"""The time after which a process counts as hanging."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with range_server(SIZE) as url:
        yield url


def count(url: str) -> int:
    with urllib.request.urlopen(f"{url}/count") as answer:
        return int(answer.read())


def run_case(url: str, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.remote.fetching.fork_case", url, str(SIZE), *words],
        env={"PATH": "", "SEEKABLE_REMOTE_DIR": str(folder)} | environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("place", "requests"), [pytest.param("cached", 3, marks=pytest.mark.exhaustive), ("missing", 5)]
)
def test_a_forked_child_reads_what_its_parent_could(
    url: str, tmp_path: Path, place: str, requests: int
) -> None:
    before = count(url)
    case = run_case(url, tmp_path, "used", "fork", place)
    assert (case.stdout, case.stderr, case.returncode) == ("(True, True) 0 True\n", "", 0)
    assert count(url) - before == requests


MATRIX = list(itertools.product(["used", "unused"], ["fork", "forkserver", "spawn"], ["cached", "missing"]))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("used", "method", "place", "most_bytes"),
    [
        pytest.param(*case, most_bytes, id=f"{'-'.join(case)}-{'no cache' if most_bytes else 'a cache'}")
        for case, each in zip(MATRIX, turns(["", "0"], len(MATRIX)), strict=True)
        for most_bytes in each
    ],
)
def test_children_of_all_kinds_read(
    url: str, tmp_path: Path, used: str, method: str, place: str, most_bytes: str
) -> None:
    case = run_case(url, tmp_path, used, method, place, SEEKABLE_REMOTE_BYTES=most_bytes)
    assert (case.stdout, case.stderr, case.returncode) == ("(True, True) 0 True\n", "", 0)


def test_an_interpreter_that_ends_with_requests_under_way_says_nothing(url: str) -> None:
    # All warnings are shown. "-X dev" would also log each turn of a loop that takes 0.1 s on a busy machine.
    case = subprocess.run(
        [sys.executable, "-W", "default", "-X", "faulthandler", "-m", "tests.remote.fetching.exit_case", url],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (case.stdout, case.stderr, case.returncode) == ("", "", 0)


def test_a_helper_with_answers_for_a_process_that_has_ended_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer() -> None:
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)
        theirs.close()
        for number in range(20):
            await forks._answer(writer, number, "memory://bucket/a", "no method", ())
        writer.close()

    asyncio.run(answer())
    assert not caplog.records


def test_a_child_that_can_start_no_helper_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/interpreter")
    store, _ = store_of("https://localhost/object")
    relayed = RelayedStore(store, "https://localhost/object", Helper())
    with pytest.raises(sk.errors.ForkUnsafe, match=r'no helper process can start .*="forkserver"'):
        asyncio.run(relayed.stat("object"))


@pytest.mark.exhaustive
def test_options_that_a_helper_cannot_read_are_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here = types.ModuleType("only_in_this_process")
    exec("def provider(): ...", here.__dict__)
    monkeypatch.setitem(sys.modules, here.__name__, here)
    path = mount("s3://only-here/a", {"credential_provider": here.provider})
    helper = Helper()
    relayed = RelayedStore(store_of(path)[0], path, helper)
    with pytest.raises(
        sk.errors.AccessDenied, match=r"s3://only-here \(credential_provider\) .*only_in_this"
    ):
        asyncio.run(relayed.stat("a"))
    helper.close()


def test_a_helper_that_dies_is_replaced(url: str) -> None:
    helper = Helper()
    store, _ = store_of(f"{url}/object")
    relayed = RelayedStore(store, f"{url}/object", helper)

    async def read_twice() -> bytes:
        pin = Pin(SIZE, identity_of(ETAG, modified_ns=0, size=SIZE))
        await relayed.read("object", 0, 10, pin=pin)
        assert pin.etag == ETAG
        hanging = asyncio.ensure_future(relayed.read("hang", 0, 10, pin=pin))
        await asyncio.sleep(0)
        assert helper.process is not None
        os.kill(helper.process, signal.SIGKILL)
        with pytest.raises(Passing, match="the helper process has ended"):
            await hanging
        return bytes(await relayed.read("object", 5, 15, pin=pin))

    assert asyncio.run(read_twice()) == content(SIZE)[5:15]
    helper.close()
