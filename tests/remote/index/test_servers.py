"""Indexes of objects on servers: published by conditional writes, built by an executor, interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
from tests.remote.proxy import Fault

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket
    from tests.remote.servers.nginx import Nginx

CONDITIONAL = ("moto", pytest.param("azurite", marks=pytest.mark.exhaustive))


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket of the server whose fixture the parameter names."""
    made: Bucket = request.getfixturevalue(request.param).bucket()
    return made


def fill(bucket: Bucket, files: int = 12) -> None:
    """Put files of JSON lines into a bucket."""
    bucket.upload(
        {
            f"data/{number:02}.jsonl": b"".join(
                b'{"file": %d, "row": %d}\n' % (number, row) for row in range(9)
            )
            for number in range(files)
        }
    )


def opened(bucket: Bucket, folder: Path, asked: str = "/data", **arguments: object) -> sk.Dataset:
    """Open a dataset whose index goes to a folder."""
    index = sk.Index(folder=folder, **arguments)  # type: ignore[arg-type]
    return sk.open(bucket.url + asked, index=index, storage=sk.Storage(options=bucket.options))


@pytest.mark.parametrize("store", CONDITIONAL, indirect=True)
def test_publishers_at_once_lose_nothing(store: Bucket, tmp_path: Path) -> None:
    fill(store)
    for number in range(3):
        opened(store, tmp_path / str(number), f"/data/*[{number}369]*.jsonl")

    def share(number: int) -> None:
        opened(store, tmp_path / str(number), f"/data/*[{number}369]*.jsonl", publish=True)

    threads = [threading.Thread(target=share, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = json.loads(store.content("data/.seekable/catalog.json"))["files"]
    expected = {f"{number:02}.jsonl" for number in range(12) if set(f"{number:02}") & set("012369")}
    assert {file["name"] for file in listed} == expected


@pytest.mark.exhaustive
def test_an_executor_of_processes_takes_the_credentials_of_its_environment(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bucket)
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes,
        pytest.raises(sk.errors.AccessDenied, match=r"secret options .* did not travel to this process"),
    ):
        opened(bucket, tmp_path, executor=processes)
    for name in ("access_key_id", "secret_access_key"):
        monkeypatch.setenv(f"AWS_{name.upper()}", bucket.options[name])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        ds = opened(bucket, tmp_path, executor=processes)
    assert len(ds) == 108
    assert ds[100] == {"file": 11, "row": 1}


@pytest.mark.exhaustive
def test_an_interrupted_build_ends_at_once_and_keeps_what_is_finished(
    nginx: Nginx, front: Front, tmp_path: Path
) -> None:
    bucket = nginx.bucket()
    fill(bucket, files=40)
    front.rule(Fault(hang=True), target=r"GET .*39\.jsonl (?!bytes=0-0$)", count=1000)
    urls = bucket.behind(front).urls(*(f"data/{number:02}.jsonl" for number in range(40)))
    script = f"import seekable as sk; sk.open({urls!r}, index=sk.Index(folder={str(tmp_path)!r}))"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) as child:
        try:
            front.wait(81, seconds=6)
            child.send_signal(signal.SIGINT)
            _, told = child.communicate(timeout=10)
        finally:
            child.kill()
    assert b"KeyboardInterrupt" in told
    assert len(front.log()) >= 81
