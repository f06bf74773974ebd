"""`SlurmExecutor` on a cluster of Slurm with two nodes, on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import BrokenExecutor, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import run
from tests.integrations.slurm_cluster import CPUS, MISSING, NODES, SlurmCluster, programs
from tests.processes import ends

import seekable as sk
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.integrations.slurm import SlurmExecutor
from seekable.integrations.slurm import slurm_executor as executor
from seekable.testing import ExecutorTests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Pipe = tuple[str, Callable[[], int]]

WHOLE_NODES = [f"--cpus-per-task={CPUS}"]

SECONDS = 60
"""Far more than anything here takes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """A cluster for all tests of this module, to which this process submits jobs meanwhile."""
    slurm = programs()
    if slurm is None:
        pytest.skip(MISSING)
    started = SlurmCluster(slurm)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in started.variables.items():
            patch.setenv(name, value)
        patch.setattr(executor, "_LOOK_SECONDS", 0.1)
        yield started
    started.stop()


@pytest.fixture(autouse=True)
def logs(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have the logs of jobs in the folder of the test."""
    del cluster
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def two(cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmExecutor]:
    """An executor of two elements, for all tests that leave them alive."""
    del cluster
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("two"))
        started = SlurmExecutor(2)
    with started:
        yield started


def what_others_can_see() -> str:
    """Return the command line and the environment of an element, and its key, each on a line."""
    from seekable.integrations.slurm.elements import _driver

    command = Path("/proc/self/cmdline").read_text(encoding="utf-8")
    return "\n".join((command, str(dict(os.environ)), _driver[0][2].hex()))


def port_of_the_executor() -> int:
    from seekable.integrations.slurm.elements import _driver

    return _driver[0][1]


def job_of(shown: str) -> str:
    """Return the number of the job of an executor, as it is shown."""
    return shown.partition("job ")[2].partition(",")[0]


def say_and_stay(pipe: str) -> None:
    """Write the id of this process into a pipe with a name, and stay."""
    with open(pipe, "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    signal.pause()


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    """A pipe with a name, and a function that waits for a process to write its id there, and opens it."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    with open(os.open(path, os.O_RDWR), encoding="utf-8") as file:
        yield path, lambda: os.pidfd_open(int(file.readline()))


@pytest.mark.usefixtures("cluster")
class TestSlurm(ExecutorTests):
    """What any executor must do."""

    retries = True

    def executor(self) -> SlurmExecutor:
        return SlurmExecutor(2)


def test_a_call_on_each_node_names_the_nodes(two: SlurmExecutor) -> None:
    names = two.on_each_node(lambda: os.environ["SLURMD_NODENAME"])
    assert 0 < len(names) <= len(NODES)
    assert all(node == name for node, name in names.items())
    (error,) = {type(error) for error in two.on_each_node(int, "x").values()}
    assert error is ValueError


def test_an_index_and_a_filter_are_those_of_one_process(two: SlurmExecutor, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        for part in range(3):
            lines = (f'{{"id": {number}, "part": {part}}}\n' for number in range(200))
            (tmp_path / folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    ours, theirs = (
        sk.open(str(tmp_path / "one")),
        sk.open(str(tmp_path / "other"), index=sk.Index(executor=two)),
    )
    assert list(theirs) == list(ours)
    assert theirs.fingerprint == ours.fingerprint
    kept = theirs.filter(lambda record: record["id"] % 7 == 0, executor=two)
    assert list(kept) == [record for record in ours if record["id"] % 7 == 0]


def test_a_command_submits_an_array_and_takes_it_off_the_queue(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n", encoding="utf-8")
    done = run("index", "--executor", "slurm:1", "notes.txt", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"2 records in 1 file" in done.stdout


def test_an_error_of_a_function_comes_with_the_node(two: SlurmExecutor) -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        two.submit(int, "x").result(SECONDS)
    assert any(node in note for note in raised.value.__notes__ for node in NODES)
    assert two.submit(int, "7").result(SECONDS) == 7


def test_a_request_that_kills_its_elements_is_given_up() -> None:
    with SlurmExecutor(3, retries=1) as three:
        with pytest.raises(BrokenExecutor, match=r"2 elements died .* node n[12].*--mem.*retries=1"):
            three.submit(os._exit, 3).result(SECONDS)
        assert three.submit(abs, -1).result(SECONDS) == 1


def test_an_executor_is_broken_when_no_element_is_left() -> None:
    with SlurmExecutor(1) as one:
        futures: list[Future[Any]] = [one.submit(os._exit, 3), one.submit(abs, -1)]
        wait(futures, SECONDS)
        for future in (*futures, one.submit(abs, -1)):
            with pytest.raises(BrokenExecutor, match="no element of the Slurm job"):
                future.result(SECONDS)
        with pytest.raises(BrokenExecutor, match="no element of the Slurm job"):
            one.on_each_node(os.getpid)


def test_the_error_has_what_elements_printed_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with (
        SlurmExecutor(2) as never,
        pytest.raises(BrokenExecutor, match=r"seekable-\d+\.log ends.*\n.*/no/such/python"),
    ):
        never.submit(abs, -1).result(SECONDS)


def test_elements_that_wait_in_the_queue_leave_it_at_the_end(cluster: SlurmCluster) -> None:
    """Each of them takes a node."""
    with SlurmExecutor(9, options=WHOLE_NODES) as nine:
        assert sum(future.result(SECONDS) for future in [nine.submit(abs, -1) for _ in range(50)]) == 50
        job = job_of(str(nine))
    assert cluster.has_ended(job)


def test_an_error_ends_all_elements_at_once(pipe: Pipe) -> None:
    def fail() -> None:
        with both:
            futures.extend(both.submit(say_and_stay, pipe[0]) for _ in range(3))
            processes.extend(pipe[1]() for _ in range(2))  # Both elements are busy: nobody answers twice.
            raise ZeroDivisionError

    both, futures, processes = SlurmExecutor(2), list[Future[None]](), list[int]()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert all(ends(process) for process in processes)
    for future in futures[:2]:
        with pytest.raises(BrokenExecutor, match="was shut down"):
            future.result(SECONDS)
    assert futures[2].cancelled()
    with pytest.raises(RuntimeError, match="takes no more"):
        both.submit(abs, -1)


def test_a_driver_that_is_killed_leaves_nothing(cluster: SlurmCluster, pipe: Pipe) -> None:
    program = """
        import sys
        from seekable.integrations.slurm import SlurmExecutor
        from tests.integrations.test_slurm import say_and_stay
        started = SlurmExecutor(4, options=["--cpus-per-task=2"])
        print(started, flush=True)
        [started.submit(say_and_stay, sys.argv[1]).result() for _ in range(2)]
    """
    command = [sys.executable, "-c", textwrap.dedent(program), pipe[0]]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as driver:
        process = pipe[1]()
        driver.kill()
        assert driver.stdout is not None
        job = job_of(driver.stdout.read())
    assert ends(process)
    assert cluster.has_ended(job)


def test_the_key_is_in_no_command_line_and_no_environment(two: SlurmExecutor) -> None:
    seen, _, key = two.submit(what_others_can_see).result(SECONDS).rpartition("\n")
    assert len(key) == 64
    assert "SLURMD_NODENAME" in seen
    assert key not in seen


def test_a_stranger_gets_nothing_and_disturbs_nobody(two: SlurmExecutor) -> None:
    port = two.submit(port_of_the_executor).result(SECONDS)
    with socket.create_connection(("127.0.0.1", port)) as silent:
        with socket.create_connection(("127.0.0.1", port)) as wrong:
            challenge = wrong.recv(100)
            assert b"CHALLENGE" in challenge
            wrong.sendall((16).to_bytes(4, "big") + bytes(16))
            assert b"FAILURE" in wrong.makefile("rb").read()
        assert two.submit(abs, -1).result(SECONDS) == 1
        assert silent.fileno() >= 0


def test_wrong_arguments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="tasks must be at least 1"):
        SlurmExecutor(0)
    with pytest.raises(InvalidArgument, match="retries must be at least 0"):
        SlurmExecutor(1, retries=-1)
    with pytest.raises(WrongType, match="options must be a list"):
        SlurmExecutor(1, options="--time=1")
    with pytest.raises(InvalidArgument, match=r"sbatch refused 1 elements with .*nowhere.*: sbatch: error"):
        SlurmExecutor(1, options=["--nodelist=nowhere"])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingDependency, match="sbatch, squeue, scancel"):
        SlurmExecutor(1)
