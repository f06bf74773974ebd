"""Secrets of storage options stay in processes of ours: nothing that is kept, shown or logged has them."""

from __future__ import annotations

import json
import logging
import multiprocessing
import operator
import os
import pickle
import traceback
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

PLANTED = "planted-key-31415"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder that everything kept lies in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "remote"))
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def data(bucket: Bucket, folders: Path) -> sk.Dataset:
    bucket.upload({f"d/{n}.jsonl": b"".join(b'{"n": %d}\n' % row for row in range(50)) for n in range(3)})
    assert folders.is_dir()
    options = {name: value for name, value in bucket.options.items() if "key" not in name}
    options |= {"key": f"id-{PLANTED}", "secret": PLANTED, "token": f"token-{PLANTED}"}
    options["headers"] = {"X-Planted": PLANTED}
    return sk.open(f"{bucket.url}/d/*.jsonl", storage=sk.Storage(options=options))


def holds(folder: Path) -> list[str]:
    """Return the files below a folder that have the planted secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if PLANTED.encode() in path.read_bytes()]


def error_text(call: Any) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any of them
        return "".join(traceback.format_exception(error)) + repr(error)
    raise AssertionError


def test_nothing_that_is_kept_or_shown_has_a_secret(
    bucket: Bucket, data: sk.Dataset, folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    pipeline = data.filter(is_even, jobs=1).shuffle(seed=1)
    loader = sk.Loader(pipeline, batch_size=4, collate=list, prefetch=0)
    next(iter(loader))
    sk.save_state(folders / "states", loader)
    pipeline.save(folders / "pipeline.json")
    pipeline.write_jsonl(f"{bucket.url}/out", jobs=1)
    written = json.dumps(json.loads(bucket.content("out/.seekable-write.json")))
    texts = [
        *(repr(data), str(pipeline), str(pipeline.explain()), repr(loader), str(loader.report())),
        *(json.dumps(loader.state_dict()), pipeline.fingerprint, written, caplog.text),
    ]
    assert not [text for text in texts if PLANTED in text]
    for dumps in (pickle.dumps, cloudpickle.dumps):
        for thing in (data, pipeline):
            assert PLANTED.encode() not in dumps(thing)
    assert holds(folders) == []


def test_no_error_has_a_secret(bucket: Bucket, data: sk.Dataset) -> None:
    calls = [
        lambda: sk.open(f"{bucket.url}/none/*.jsonl"),
        lambda: sk.open(f"http://me:{PLANTED}@{bucket.server}/a.jsonl?sig={PLANTED}"),
        lambda: sk.open(bucket.url, storage=sk.Storage(options={**bucket.options, "regoin": PLANTED})),
        lambda: data.write_jsonl(f"http://me:{PLANTED}@{bucket.server}/x/y?sig={PLANTED}", jobs=1),
    ]
    bucket.delete("d/1.jsonl")
    calls.append(lambda: data[60])
    for call in calls:
        assert PLANTED not in error_text(call)


def test_workers_of_a_loader_have_the_secrets(data: sk.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """They fetch for themselves: nothing is kept on disk, and a request without a key is refused."""
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", "0")
    with sk.Loader(data, batch_size=25, collate=count, workers=1) as loader:
        assert list(loader)[:6] == [25] * 6


def test_a_pickle_is_read_elsewhere_by_the_environment(
    data: sk.Dataset, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor of a user sends what ``pickle.dumps`` returns, to a process that has fetched nothing."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id-of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-environment")
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(folders / "another-cache"))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert executor.submit(operator.getitem, data, 149).result() == {"n": 49}


def is_even(row: dict[str, Any]) -> bool:
    return bool(row["n"] % 2 == 0)


def count(rows: list[Any]) -> int:
    return len(rows)
