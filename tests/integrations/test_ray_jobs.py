"""Heavy work on a cluster of Ray gives the bytes that one process gives, also where nodes and drivers die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import ray
from tests.integrations.ray_cluster import ENVIRONMENT
from tests.parallel.heavy_calls import CALLS, contents, index_files, make_corpus

import seekable as sk
from seekable.index.build import file_parts as parts
from seekable.integrations.ray import RayExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.integrations.ray_cluster import RayCluster

ALIKE = {"Dataset.windows", "Stream.write_parquet", "Stream.write_tar"}
"""Calls that work as others do."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_corpus(tmp_path_factory.mktemp("heavy") / "corpus")
    sk.open(folder)
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Return the result of a call in this process."""
    known: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in known:
            known[name] = CALLS[name](corpus, tmp_path_factory.mktemp("here"), {"jobs": 1})
        return known[name]

    return of


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is a batch."""
    monkeypatch.setattr(parts, "_BATCH_BYTES", 1)


def unfinished(folder: Path) -> list[str]:
    """Return the temporary files, the finished parts of indexes and the marks that a job left."""
    names = re.compile(r".*\.tmp|part-[0-9a-f]{16}\.bin|\.seekable-nodes-.*")
    return [str(path) for path in folder.rglob("*") if names.fullmatch(path.name)]


@pytest.mark.usefixtures("ray_cluster", "small_batches")
@pytest.mark.parametrize("name", [name for name in CALLS if name not in ALIKE])
def test_a_cluster_gives_the_results_of_one_process(
    name: str, corpus: Path, expected: Callable[[str], Any], tmp_path: Path
) -> None:
    with RayExecutor() as executor:
        assert CALLS[name](corpus, tmp_path, {"executor": executor}) == expected(name)
    assert not unfinished(tmp_path)


class Killing(RayExecutor):
    """Has a node killed when the first answers have come."""

    def __init__(self, cluster: RayCluster, **given: Any) -> None:
        super().__init__(**given)
        self._cluster: RayCluster | None = cluster
        self._answers = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._answers and self._cluster is not None:
            self._cluster.kill_node(self._cluster.nodes[0])
            self._cluster = None
        future = super().submit(fn, *args, **kwargs)
        future.add_done_callback(self._answered)
        return future

    def _answered(self, _: Future[Any]) -> None:
        self._answers += 1

    @property
    def killed(self) -> bool:
        return self._cluster is None


@pytest.mark.usefixtures("small_batches")
def test_a_node_that_is_killed_changes_no_result(
    ray_cluster: RayCluster, corpus: Path, expected: Callable[[str], Any], tmp_path: Path
) -> None:
    ray_cluster.add_node()
    for name in ("seekable.open", "Dataset.sort"):
        folder = tmp_path / name
        folder.mkdir()
        with Killing(ray_cluster, most=2) as executor:
            assert CALLS[name](corpus, folder, {"executor": executor}) == expected(name)
        assert executor.killed
        assert not unfinished(folder)


def test_a_node_that_is_killed_in_the_middle_of_a_file_leaves_nothing_unfinished(
    ray_cluster: RayCluster, corpus: Path, tmp_path: Path
) -> None:
    victim, begun = ray_cluster.nodes[0], tmp_path / "begun"

    def stuck(record: dict[str, Any]) -> dict[str, Any]:
        while record["n"] % 100 == 99 and ray.get_runtime_context().get_node_id() == victim:
            begun.touch()
            time.sleep(0.01)
        return record

    def kill() -> None:
        while not begun.exists():
            time.sleep(0.01)
        ray_cluster.kill_node(victim)

    records = sk.open(corpus).map(stuck, version=1)
    sk.open(corpus).map(stuck, version=1).write_jsonl(tmp_path / "here", rows_per_file=100, jobs=1)
    killer = threading.Thread(target=kill)
    killer.start()
    with RayExecutor(most=4) as executor:
        written = records.write_jsonl(tmp_path / "there", rows_per_file=100, executor=executor)
    killer.join()
    assert written.rows == len(records)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert not unfinished(tmp_path)


DRIVER = """
import signal, sys
import seekable as sk
from seekable.integrations.ray import RayExecutor

class Stopping(RayExecutor):
    answers = 0
    def submit(self, *given):
        if self.answers >= int(sys.argv[2]):
            print("now", flush=True)
            signal.pause()
        future = super().submit(*given)
        future.add_done_callback(self.answered)
        return future
    def answered(self, future):
        self.answers += 1

executor = Stopping(sys.argv[1], most=1)
folder = sys.argv[3]
if sys.argv[4] == "index":
    sk.open(f"{folder}/large.txt", index=sk.Index(executor=executor))
else:
    records = sk.open(f"{folder}/corpus")
    records.write_jsonl(f"{folder}/there", rows_per_file=100, executor=executor)
"""


class Counting(RayExecutor):
    requests = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.requests += 1
        return super().submit(fn, *args, **kwargs)


def killed_driver(cluster: RayCluster, folder: Path, work: str, *, answers: int) -> Iterator[None]:
    """Start a driver, wait until it has some answers, and kill it."""
    (folder / "driver.py").write_text(DRIVER)
    program = [sys.executable, str(folder / "driver.py"), cluster.address, str(answers), str(folder), work]
    with subprocess.Popen(program, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE) as driver:
        yield
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"now\n"
        driver.send_signal(signal.SIGKILL)
    yield


def test_after_a_killed_driver_the_same_call_goes_on(ray_cluster: RayCluster, tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus")
    with open(tmp_path / "large.txt", "wb") as file:
        for number in range(1, 5):
            file.seek(number * (64 << 20) - 7)
            file.write(b"\nline\n")
    os.utime(tmp_path / "large.txt", ns=(10**18, 10**18))
    drivers = [killed_driver(ray_cluster, tmp_path, work, answers=2) for work in ("index", "write")]
    for driver in drivers:
        next(driver)  # Both start at once: a driver takes seconds to join the cluster.
    for driver in drivers:
        next(driver)
    with Counting() as executor:
        large = sk.open(tmp_path / "large.txt", index=sk.Index(executor=executor))
        assert executor.requests == 2
        here = sk.open(tmp_path / "large.txt", index=sk.Index(folder=tmp_path / "index", jobs=1))
        assert large.fingerprint == here.fingerprint
        assert index_files(tmp_path / ".seekable").items() >= index_files(tmp_path / "index").items()
        records = sk.open(corpus)
        written = records.write_jsonl(tmp_path / "there", rows_per_file=100, executor=executor)
    assert written.kept >= 2
    records.write_jsonl(tmp_path / "here", rows_per_file=100, jobs=1)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert not unfinished(tmp_path / "there")
