"""`RayExecutor` on a cluster of two nodes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import ray
from tests.integrations.ray_cluster import ENVIRONMENT, Mount

from seekable.errors import DataNotFound, InvalidArgument
from seekable.integrations.ray import RayExecutor
from seekable.parallel.cluster import check_nodes
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.testing import ExecutorTests

if TYPE_CHECKING:
    from tests.integrations.ray_cluster import RayCluster

SECRET = "a-planted-secret"


class TestRay(ExecutorTests):
    retries = True
    stops_running = True

    @pytest.fixture(autouse=True)
    def _cluster(self, ray_cluster: RayCluster) -> None:
        """Join the cluster."""

    def executor(self) -> RayExecutor:
        return RayExecutor(retries=1)


def fail(start: int, _: int) -> None:
    raise LookupError(start)


def node_here() -> str:
    node: str = ray.get_runtime_context().get_node_id()
    return node


def test_an_error_names_the_node_and_the_stack(ray_cluster: RayCluster) -> None:
    with RayExecutor() as executor:
        of_call = executor.submit(fail, 7, 8).exception()
        with pytest.raises(LookupError) as of_job:
            list(map_ranges(fail, 1, using=execution_options(None, executor, at_once=True)))
    for error in (of_call, of_job.value):
        assert error is not None
        (note,) = error.__notes__
        assert "in fail" in note
        assert any(f"(node {node[:8]})" in note for node in ray_cluster.nodes)


@pytest.mark.usefixtures("ray_cluster")
def test_a_worker_without_a_module_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("only_here")
    exec("def work():\n    return 1", vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    with RayExecutor() as executor:
        error = executor.submit(module.work).exception()
    assert isinstance(error, ModuleNotFoundError)
    assert "only_here" in str(error)


@pytest.mark.usefixtures("ray_cluster")
def test_no_more_tasks_are_under_way_than_may_be(tmp_path: Path) -> None:
    def work(number: int) -> int:
        (tmp_path / str(number)).touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return number

    with RayExecutor(most=2, num_cpus=0) as executor:
        calls = [executor.submit(work, number) for number in range(8)]
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        assert calls[-1].cancel()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
        (tmp_path / "go").touch()
        assert [call.result() for call in calls[:-1]] == list(range(7))
    assert not (tmp_path / "7").exists()


def test_the_calls_of_a_node_that_dies_are_made_again(ray_cluster: RayCluster, tmp_path: Path) -> None:
    node = ray_cluster.add_node(resources={"mortal": 2})

    def work(number: int) -> str:
        (tmp_path / str(number)).touch()
        here = node_here()
        while here == node:
            time.sleep(0.01)
        return here

    with RayExecutor(num_cpus=0.1, resources={"mortal": 1}) as executor:
        calls = [executor.submit(work, number) for number in range(4)]
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        other = ray_cluster.add_node(resources={"mortal": 2})
        ray_cluster.kill_node(node)
        assert {call.result() for call in calls} == {other}
    ray_cluster.kill_node(other)


def test_the_variables_of_this_process_are_there_and_nowhere_else(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("SEEKABLE_OF_A_TEST", SECRET)
    with RayExecutor() as executor:
        names = ("AWS_SECRET_ACCESS_KEY", "SEEKABLE_OF_A_TEST")
        assert executor.submit(lambda: [os.environ[name] for name in names]).result() == [SECRET] * 2
        shared = executor.shared(b"for all calls")
        assert executor.submit(lambda fetch: fetch().decode(), shared).result() == "for all calls"
        assert set(executor.on_each_node(os.getenv, "AWS_SECRET_ACCESS_KEY").values()) == {SECRET}
        error = executor.submit(fail, 1, 2).exception()
        assert SECRET not in f"{executor!r} {error!r} {getattr(error, '__notes__', '')}"
    monkeypatch.undo()
    found = subprocess.run(["grep", "-rl", SECRET, ray_cluster.folder], capture_output=True, check=False)
    assert found.stdout == b""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert SECRET.encode() not in process.read_bytes()


def test_a_node_that_sees_other_data_is_named_before_the_work(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    for folder in ("data", "private"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_text(f"{folder}\n")
    data = str(tmp_path / "data")
    try:
        node = ray_cluster.add_node(mount=Mount(str(tmp_path / "private"), over=data))
    except PermissionError as error:
        pytest.skip(f"a node cannot see another disk here: {error}")
    with RayExecutor() as executor:
        for given in ({"paths": [f"{data}/a.jsonl"]}, {"paths": [], "folder": data}):
            with pytest.raises(DataNotFound) as caught:
                check_nodes(executor, **given)
            assert f"(node {node[:8]})" in str(caught.value)
            assert not any(other in str(caught.value) for other in ray_cluster.nodes[:-1])
        check_nodes(executor, [str(tmp_path)], folder=str(tmp_path))
    ray_cluster.kill_node(node)


def test_another_cluster_is_not_joined_over_one(ray_cluster: RayCluster) -> None:
    for address in ("10.0.0.1:6379", "local"):
        with pytest.raises(InvalidArgument, match=f"joined the cluster at '{ray_cluster.address}'"):
            RayExecutor(address)
    with RayExecutor(ray_cluster.address, most=5) as executor:
        assert repr(executor) == "RayExecutor(most=5, num_cpus=1.0)"
    assert ray.is_initialized()
    with pytest.raises(InvalidArgument, match="most must be at least 1, got 0"):
        RayExecutor(most=0)


SCRIPT = """
import ray
from seekable.integrations.ray import RayExecutor

class Thing:
    def __init__(self, number):
        self.number = number

def double(thing):
    return Thing(2 * thing.number)

with RayExecutor("local", num_cpus=0.5) as executor:
    print(executor.submit(double, Thing(21)).result().number)
    waiting = [executor.submit(double, Thing(number)) for number in range(20)]
print([call.result().number for call in waiting] == list(range(0, 40, 2)), ray.is_initialized())
"""


def test_a_script_has_a_cluster_of_its_own_while_it_needs_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | ENVIRONMENT | {"RAY_ADDRESS": ""}
    done = subprocess.run(
        [sys.executable, "-W", "error", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:2] == ["42", "True False"], done.stderr


def test_an_address_without_a_cluster_is_refused_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        code = (
            "from seekable.integrations.ray import RayExecutor\n"
            "try:\n"
            f"    RayExecutor('127.0.0.1:{port}')\n"
            "except ConnectionError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"no cluster of Ray at '127.0.0.1:{port}'" in done.stdout
