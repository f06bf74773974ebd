"""Work on all rows: in this process, in workers, in any executor; always in the order of the rows."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parallel.executors import Cancelling

from seekable.errors import InvalidArgument, WorkerDied
from seekable.parallel import function_calls, processes
from seekable.parallel import map_ranges as module
from seekable.parallel.map_ranges import ExecutionOptions, execution_options, map_ranges
from seekable.parallel.processes import usable_cpus

if TYPE_CHECKING:
    from collections.abc import Callable


def run(start: int, stop: int) -> tuple[int, range]:
    return os.getpid(), range(start, stop)


def rows_of(using: ExecutionOptions, rows: int) -> tuple[list[int], set[int]]:
    """Return the rows as they come, and which processes they come from."""
    found, pids, end = [], set(), 0
    for end, (pid, some) in map_ranges(run, rows, using=using):
        assert some.stop == end
        found += list(some)
        pids.add(pid)
    assert end == rows
    return found, pids


def here() -> ExecutionOptions:
    return execution_options(1, None, at_once=True)


@given(rows=st.integers(0, 3000))
def test_every_row_comes_once_and_in_order(rows: int) -> None:
    assert rows_of(here(), rows) == (list(range(rows)), {os.getpid()} if rows else set())


def test_workers_that_are_asked_for_do_it_all() -> None:
    found, pids = rows_of(execution_options(2, None, at_once=True), 5000)
    assert found == list(range(5000))
    assert os.getpid() not in pids


@pytest.mark.usefixtures("new_interpreters")
def test_workers_take_over_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", -1.0)
    found, pids = rows_of(ExecutionOptions(2, 1e-9, None), 50_000)
    assert found == list(range(50_000))
    assert os.getpid() in pids
    assert len(pids) > 1


def test_what_cannot_be_sent_stays_here_unless_workers_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", -1.0)
    lock = threading.Lock()

    def held(start: int, stop: int) -> int:
        with lock:
            return stop - start

    assert sum(count for _, count in map_ranges(held, 1000, using=ExecutionOptions(2, 1e-9, None))) == 1000
    with pytest.raises(InvalidArgument, match=r"cannot be sent to worker processes: .*lock.*jobs=1"):
        list(map_ranges(held, 1000, using=execution_options(2, None, at_once=True)))


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_does_it_and_stays_open(kind: str) -> None:
    context = multiprocessing.get_context("spawn")
    executor: Executor = (
        ThreadPoolExecutor(3) if kind == "threads" else ProcessPoolExecutor(1, mp_context=context)
    )
    with executor:
        for rows in (0, 1, 2000):
            found, pids = rows_of(execution_options(None, executor, at_once=True), rows)
            assert found == list(range(rows))
            assert (os.getpid() in pids) == (kind == "threads" and rows > 0)
        assert executor.submit(os.getpid).result()


def test_threads_are_given_the_function_itself() -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def note(start: int, stop: int) -> None:
        with lock:
            seen.extend(range(start, stop))

    with ThreadPoolExecutor(2) as executor:
        list(map_ranges(note, 500, using=execution_options(None, executor, at_once=True)))
    assert sorted(seen) == list(range(500))


def fail_at(row: int) -> Callable[[int, int], None]:
    def job(start: int, stop: int) -> None:
        if start <= row < stop:
            raise ZeroDivisionError(f"row {row}")

    return job


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_ends_it(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError, match="row 700"):
        list(map_ranges(fail_at(700), 100_000, using=execution_options(jobs, None, at_once=True)))


def test_the_error_of_the_lowest_range_is_raised_even_if_another_came_first() -> None:
    later = threading.Event()

    def job(start: int, stop: int) -> None:
        if start == 0:
            assert later.wait(60)
            raise KeyError(f"rows 0 to {stop}")
        later.set()
        raise ZeroDivisionError(f"rows from {start}")

    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(KeyError, match="rows 0 to 1"),
    ):
        list(map_ranges(job, 100, using=execution_options(None, executor, at_once=True)))


def test_an_executor_that_cancels_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(WorkerDied, match=r"cancelled the work on the range from 0 to 1\. .*jobs=1"):
        list(map_ranges(run, 100, using=execution_options(None, Cancelling(), at_once=True)))


def test_an_error_in_an_executor_cancels_what_waits_there() -> None:
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(ZeroDivisionError):
            list(map_ranges(fail_at(3), 10**9, using=execution_options(None, executor, at_once=True)))
        assert not function_calls._offered


def test_a_worker_that_is_killed_is_told_of() -> None:
    def die(start: int, stop: int) -> None:
        if stop - start > 100:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerDied, match="SIGKILL"):
        list(map_ranges(die, 1000, using=execution_options(2, None, at_once=True)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exit_is_one_of_the_whole_program(jobs: int) -> None:
    def leave(start: int, stop: int) -> None:
        sys.exit(start + stop + 2)

    with pytest.raises(SystemExit) as caught:
        list(map_ranges(leave, 1000, using=execution_options(jobs, None, at_once=True)))
    assert caught.value.code == 3


def test_closing_it_early_ends_the_workers() -> None:
    with contextlib.closing(map_ranges(run, 10**9, using=execution_options(2, None, at_once=True))) as runs:
        pids = {next(runs)[1][0] for _ in range(20)}
        descriptors = [os.pidfd_open(pid) for pid in pids]
    for descriptor in descriptors:
        # Closed is waited for: the process is gone, and was waited for by its parent.
        with pytest.raises(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, 0)
        os.close(descriptor)


def test_no_more_workers_are_started_than_there_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    start = processes.WorkerProcesses

    def noted(jobs: int, **options: Any) -> processes.WorkerProcesses:
        asked.append(jobs)
        return start(1, **options)

    monkeypatch.setattr(processes, "WorkerProcesses", noted)
    ordered, _ = rows_of(execution_options(2**20 - 1, None, at_once=True), 3)
    assert ordered == [0, 1, 2]
    assert asked == [3]


def test_jobs_are_checked() -> None:
    with pytest.raises(InvalidArgument, match=r"jobs must be at least 1.*got 0"):
        execution_options(0, None, at_once=True)
    assert execution_options(None, None, at_once=True).workers == usable_cpus()
