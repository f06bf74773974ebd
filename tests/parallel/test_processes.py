from __future__ import annotations

import math
import operator
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from tests.processes import ends

from seekable.errors import InvalidArgument, WorkerDied
from seekable.parallel.pickling import deserialized, serialized
from seekable.parallel.processes import WorkerProcesses, usable_cpus

if TYPE_CHECKING:
    from pathlib import Path


def test_requests_are_answered_by_other_processes() -> None:
    with WorkerProcesses(2) as workers:
        futures = [workers.submit(operator.mul, number, number) for number in range(50)]
        assert [future.result() for future in futures] == [number * number for number in range(50)]
        assert workers.submit(os.getpid).result() != os.getpid()


def test_an_error_of_a_function_is_that_of_its_future() -> None:
    with WorkerProcesses(1) as workers:
        with pytest.raises(ZeroDivisionError):
            workers.submit(operator.truediv, 1, 0).result()
        with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
            workers.submit(math.sqrt, -1).result()
        assert workers.submit(operator.add, 1, 2).result() == 3


class Unreadable:
    """Pickled without an error, and not unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return int, ("no number",)


def test_a_result_that_cannot_be_unpickled_is_an_error_of_its_future() -> None:
    with WorkerProcesses(1) as workers:
        with pytest.raises(ValueError, match="no number") as caught:
            workers.submit(_unreadable).result(60)
        assert caught.value.__notes__ == ["raised while the result of a worker process was unpickled"]
        assert workers.submit(operator.add, 1, 2).result(60) == 3


def _unreadable() -> Unreadable:
    return Unreadable()


def test_what_a_function_prints_does_not_mix_with_the_answers(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerProcesses(1) as workers:
        assert workers.submit(print, "hello").result() is None
        assert workers.submit(os.write, 1, b"world").result() == 5
    out, err = capfd.readouterr()
    assert out == ""
    assert "world" in err


def test_a_worker_that_dies_is_told_of() -> None:
    with WorkerProcesses(1) as workers:
        pid = workers.submit(os.getpid).result()
        future = workers.submit(os.kill, pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match=rf"pid {pid}\) ended by signal SIGKILL.*jobs=1"):
            future.result()
    with WorkerProcesses(1) as workers, pytest.raises(WorkerDied, match="with exit status 3"):
        workers.submit(os._exit, 3).result()


def test_after_an_error_nothing_is_waited_for() -> None:
    workers = WorkerProcesses(1)
    futures = [workers.submit(time.sleep, 3600) for _ in range(3)]
    error = KeyboardInterrupt()
    workers.__exit__(type(error), error, None)
    for future in futures:
        with pytest.raises((CancelledError, WorkerDied)):
            future.result()


def test_jobs_must_be_positive() -> None:
    with pytest.raises(InvalidArgument, match="jobs must be at least 1, got 0"):
        WorkerProcesses(0)
    assert usable_cpus() >= 1


SCRIPT = """
import operator, os, sys
from seekable.parallel.processes import WorkerProcesses
print("main runs", flush=True)
workers = WorkerProcesses(1)
print(workers.submit(os.getpid).result(), flush=True)
{then}
"""


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(then="workers.shutdown()"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.count("main runs") == 1
    assert done.stderr == ""


def test_functions_of_a_spawned_script_travel_with_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multiprocessing of Python calls it `__mp_main__`, which no worker can import."""
    script = ModuleType("__mp_main__")
    exec("def double(x):\n    return 2 * x\n", vars(script))
    monkeypatch.setitem(sys.modules, "__mp_main__", script)
    data = serialized(vars(script)["double"], way_out="")
    monkeypatch.delitem(sys.modules, "__mp_main__")
    assert deserialized(data)(21) == 42


def test_functions_of_a_spawned_script_travel_from_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of a worker sends the stores of this process while another one sends functions."""
    script = ModuleType("__mp_main__")
    exec("def double(x):\n    return 2 * x\n", vars(script))
    monkeypatch.setitem(sys.modules, "__mp_main__", script)
    double = vars(script)["double"]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            sent = list(threads.map(lambda _: serialized([double] * 20, way_out=""), range(200)))
    finally:
        sys.setswitchinterval(before)
    monkeypatch.delitem(sys.modules, "__mp_main__")
    assert {deserialized(data)[-1](21) for data in sent} == {42}


def test_a_worker_sees_the_modules_that_its_parent_sees(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def answer():\n    return 42\n")
    script = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import mine
        from seekable.parallel.processes import WorkerProcesses
        with WorkerProcesses(1) as workers:
            print(workers.submit(mine.answer).result())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "42\n"


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(then="import time; workers.submit(time.sleep, 3600); time.sleep(3600)"))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "main runs\n"
        worker = int(parent.stdout.readline())
        descriptor = os.pidfd_open(worker)
        parent.kill()
    assert ends(descriptor)
    os.close(descriptor)
