"""Jobs wait, run and end as key, generator and stop say; calls with a hook are generators."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.parallel.progress import Progress
from seekable.viewer import jobs as room
from seekable.viewer.jobs import Jobs, ViewerJob, hooked

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from seekable.parallel.progress import ProgressHook

LONG = 30.0


@dataclass(frozen=True, slots=True)
class Counted:
    done: int
    of: int

    def document(self) -> dict[str, Any]:
        return {"done": self.done, "of": self.of}


class Steps:
    """Work that makes one partial result each time that it is let on."""

    def __init__(self, of: int) -> None:
        self.of = of
        self.turns = threading.Semaphore(0)
        self.made = threading.Semaphore(0)
        self.closed = threading.Event()
        self.begun = threading.Event()

    def work(self) -> Generator[Counted]:
        self.begun.set()
        try:
            for done in range(1, self.of + 1):
                assert self.turns.acquire(timeout=LONG)
                self.made.release()
                yield Counted(done, self.of)
        finally:
            self.closed.set()

    def let_on(self, times: int = 1) -> None:
        self.turns.release(times)


def counting(of: int) -> Generator[Counted]:
    for done in range(1, of + 1):
        yield Counted(done, of)


def failing(error: BaseException) -> Generator[Counted]:
    yield Counted(1, 2)
    raise error


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


@pytest.mark.parametrize("of", [1, 2, 1000])
def test_a_job_ends_with_the_last_partial_result(jobs: Jobs, of: int) -> None:
    job = jobs.start("count", of, counting(of))
    assert job.wait(LONG)
    document = job.document()
    seconds = document.pop("seconds")
    assert seconds > 0
    assert document.pop("rate") == pytest.approx(of / seconds)
    assert document == {
        "job": "1",
        "kind": "count",
        "state": "done",
        "done": of,
        "of": of,
        "seconds_left": None,
        "error": None,
        "again": None,
        "page": None,
        "result": {"done": of, "of": of},
    }


def test_work_without_a_result_is_done_without_one(jobs: Jobs) -> None:
    job = jobs.start("count", 0, counting(0))
    assert job.wait(LONG)
    assert (job.state, job.partial, job.document()["rate"]) == ("done", None, None)


def test_two_run_and_the_third_waits_until_one_ends(jobs: Jobs) -> None:
    steps = [Steps(1) for _ in range(3)]
    started = [jobs.start("count", number, some.work()) for number, some in enumerate(steps)]
    assert steps[0].begun.wait(LONG)
    assert steps[1].begun.wait(LONG)
    assert [job.state for job in started] == ["running", "running", "waiting"]
    assert not steps[2].begun.is_set()
    steps[1].let_on()
    assert steps[2].begun.wait(LONG)
    assert [job.state for job in started] == ["running", "done", "running"]
    assert [job.name for job in jobs.all()] == ["3", "2", "1"]
    for some in steps:
        some.let_on()
    assert all(job.wait(LONG) for job in started)


def test_the_partial_result_stands_while_the_work_goes_on(jobs: Jobs) -> None:
    steps = Steps(4)
    job = jobs.start("count", "", steps.work())
    assert job.document()["result"] is None
    steps.let_on(2)
    # The generator is resumed for the third result only after the second one is stored.
    for _ in range(2):
        assert steps.made.acquire(timeout=LONG)
    steps.let_on()
    assert steps.made.acquire(timeout=LONG)
    seen = job.document()
    assert seen["state"] == "running"
    assert seen["done"] in {2, 3}
    assert seen["seconds_left"] > 0
    job.stop()
    steps.let_on()
    assert job.wait(LONG)
    assert job.state == "stopped"
    # The stop may come before the third result is looked at.
    assert job.partial in {Counted(3, 4), Counted(4, 4)}
    assert steps.closed.is_set()


def test_a_key_names_one_job_until_it_fails_or_is_stopped(jobs: Jobs) -> None:
    steps, unused = Steps(1), counting(3)
    first = jobs.start("count", "a", steps.work())
    assert jobs.start("count", "a", unused) is first
    assert list(unused) == []
    assert jobs.start("other", "a", counting(1)) is not first
    steps.let_on()
    assert first.wait(LONG)
    assert jobs.start("count", "a", counting(1)) is first
    failed = jobs.start("count", "b", failing(ValueError("b")))
    assert failed.wait(LONG)
    assert jobs.start("count", "b", counting(1)) is not failed


@pytest.mark.parametrize("error", [ValueError("row 7"), SystemExit(3), GeneratorExit()], ids=repr)
def test_a_job_that_fails_keeps_what_it_found(jobs: Jobs, error: BaseException) -> None:
    failed = [jobs.start("count", number, failing(error)) for number in range(5)]
    assert all(job.wait(LONG) for job in failed)
    for job in failed:
        assert (job.state, job.error, job.partial) == ("failed", error, Counted(1, 2))
        assert job.document()["error"] == f"{type(error).__name__}: {error}"


def test_a_waiting_job_is_stopped_at_once_and_takes_no_place(jobs: Jobs) -> None:
    steps = [Steps(1) for _ in range(4)]
    started = [jobs.start("count", number, some.work()) for number, some in enumerate(steps)]
    started[2].stop()
    assert started[2].wait(0)
    assert started[2].state == "stopped"
    started[2].stop()
    steps[0].let_on()
    assert steps[3].begun.wait(LONG)
    fifth = jobs.start("count", "fifth", counting(1))
    assert fifth.state == "waiting"
    for some in steps:
        some.let_on()
    assert fifth.wait(LONG)
    assert not steps[2].begun.is_set()


def test_many_starts_and_stops_at_once_leave_all_places_free(jobs: Jobs) -> None:
    def start_and_stop(thread: int) -> None:
        for number in range(50):
            job = jobs.start("count", (thread, number), counting(3))
            if number % 3:
                job.stop()

    threads = [threading.Thread(target=start_and_stop, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(job.wait(LONG) for job in jobs.all())
    steps = [Steps(1) for _ in range(3)]
    last = [jobs.start("last", number, some.work()) for number, some in enumerate(steps)]
    assert steps[0].begun.wait(LONG)
    assert steps[1].begun.wait(LONG)
    assert last[2].state == "waiting"
    for some in steps:
        some.let_on()
    assert last[2].wait(LONG)


def test_the_oldest_ended_jobs_are_forgotten(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_ENDED_KEPT", 3)
    ended: list[ViewerJob] = []
    for number in range(6):
        ended.append(jobs.start("count", number, counting(1)))
        assert ended[-1].wait(LONG)
    assert jobs.all() == ended[:2:-1]
    assert jobs["6"] is ended[5]
    with pytest.raises(KeyNotFound, match="there is no job '1'"):
        jobs["1"]
    assert jobs.start("count", 0, counting(1)) is not ended[0]


def test_close_stops_what_runs_and_what_waits() -> None:
    jobs = Jobs(at_a_time=1)
    steps = Steps(100)
    running = jobs.start("count", 1, steps.work())
    waiting = jobs.start("count", 2, counting(1))
    steps.let_on(100)
    jobs.close()
    assert waiting.state == "stopped"
    assert running.state in {"stopped", "done"}
    assert steps.closed.is_set()
    with pytest.raises(RuntimeError, match="the viewer is closed"):
        jobs.start("count", 3, counting(1))


def test_at_least_one_job_can_run() -> None:
    with pytest.raises(InvalidArgument, match="at_a_time must be at least 1"):
        Jobs(at_a_time=0)


@dataclass(frozen=True)
class Part:
    done: int
    of: int = 9

    def document(self) -> dict[str, Any]:
        return {"done": self.done}


def shown(progress: Progress) -> Part:
    return Part(progress.files_done)


def report(number: int) -> Progress:
    return Progress(number, 9, 0, 0, 0)


@pytest.mark.parametrize("reports", [0, 1, 50])
def test_reports_come_in_order_and_the_result_last(reports: int) -> None:
    def call(hook: ProgressHook) -> Part:
        for number in range(reports):
            hook(report(number))
        return Part(1000)

    assert [part.done for part in hooked(call, shown)] == [*range(reports), 1000]


def test_an_error_comes_after_the_reports_before_it() -> None:
    def call(hook: ProgressHook) -> Part:
        hook(report(5))
        message = "broken"
        raise OSError(message)

    work = hooked(call, shown)
    assert next(work).done == 5
    with pytest.raises(OSError, match="broken"):
        next(work)


def test_closing_ends_the_call_at_its_next_report() -> None:
    cleaned, going = threading.Event(), threading.Event()

    def call(hook: ProgressHook) -> Part:
        try:
            for number in range(1_000_000_000):
                hook(report(number))
                going.wait()
        except Exception:  # noqa: BLE001 - as a handler of the library might be
            pytest.fail("the end is no error")
        finally:
            cleaned.set()
        return Part(0)

    work = hooked(call, shown)
    assert next(work).done == 0
    going.set()
    work.close()
    assert cleaned.is_set()


def test_nothing_runs_before_the_first_item() -> None:
    def call(_: ProgressHook) -> Part:
        pytest.fail("it was not asked for")

    hooked(call, shown).close()
