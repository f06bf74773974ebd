"""Loaders over the ends of processes: forks, and deaths without warning."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.loader.busy import slow, started
from tests.loader.flat import batches_of, shuffled
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRAIN = Path(__file__).with_name("train.py")


def forked(work: Callable[[], object]) -> object:
    """Run something in a forked child, with a time limit, and return what it returns as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang ends the child, and the test fails
        try:
            text = repr(work())
        except BaseException as error:  # noqa: BLE001 - it is the parent that looks at it
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with {status} after {text!r}"
    return text


@pytest.fixture(params=[0, 2], ids=["no prefetch", "prefetch"])
def loader(request: pytest.FixtureRequest) -> Iterator[sk.Loader]:
    made = sk.Loader(shuffled(37), batch_size=4, collate=list, prefetch=request.param)
    yield made
    made.close()


def test_an_iterator_from_before_a_fork_is_refused_in_the_child(loader: sk.Loader) -> None:
    run = iter(loader)
    next(run)
    assert str(forked(lambda: next(run))).startswith("ForkUnsafe: ")
    assert "iter(loader)" in str(forked(lambda: next(run)))
    assert list(run) == batches_of(shuffled(37), 4)[1:]


def test_a_loader_from_before_a_fork_goes_on_in_the_child(loader: sk.Loader) -> None:
    run = iter(loader)
    next(run)
    state = loader.state_dict()

    def resumed() -> list[object]:
        loader.load_state_dict(state)
        return list(iter(loader))

    assert forked(resumed) == repr(batches_of(shuffled(37), 4)[1:])
    assert forked(lambda: list(iter(loader))) == repr(batches_of(shuffled(37), 4, runs=2)[10:])


class Held:
    """Items, the later of which a thread that runs ahead is held up in making."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.leave = threading.Event()

    def __len__(self) -> int:
        return 20

    def __getitem__(self, row: int) -> int:
        if row >= 8 and threading.current_thread() is not threading.main_thread():
            self.asked.set()
            assert self.leave.wait(timeout=30)
        return row


def test_a_fork_while_the_thread_is_at_work_does_not_hang_the_child() -> None:
    held = Held()
    loader = sk.Loader(sk.from_sequence(held).map(slow), batch_size=2, collate=list)
    run = iter(loader)
    taken = started(run)
    assert held.asked.wait(timeout=30)

    def in_child() -> str:
        loader.close()
        return str(next(iter(loader)))

    assert forked(in_child) == repr("[0, 1]")  # The next run.
    held.leave.set()
    start = 2 * len(taken)
    assert next(run) == [start, start + 1]
    loader.close()


def test_a_fork_while_the_threads_lock_is_held_does_not_hang_the_child() -> None:
    """The thread may hold its lock at the moment of a fork, and nobody frees it in the child."""
    loader = sk.Loader(shuffled(37).map(slow), batch_size=4, collate=list, prefetch=2)
    run = iter(loader)
    taken = len(started(run))
    lock = run._batches._ahead._buffer._changed  # type: ignore[attr-defined]
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_go.wait(timeout=60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(timeout=30)
    try:
        assert str(forked(lambda: next(run))).startswith("ForkUnsafe")
        assert forked(loader.close) == "None"
        assert forked(lambda: next(iter(loader))) == repr(batches_of(shuffled(37), 4, runs=2)[10])
    finally:
        may_go.set()
        holder.join(timeout=30)
    assert list(run) == batches_of(shuffled(37), 4)[taken:]


def test_a_run_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Each process logs the records of a batch, saves, and is killed at no moment of its own choice."""
    log, folder = tmp_path / "log", tmp_path / "states"
    kills, most = 0, some(4, of=2)
    while True:
        child = subprocess.Popen([sys.executable, TRAIN, log, folder], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        # It says when a batch is through; after some it is killed, wherever it is by then.
        for count, line in enumerate(child.stdout):
            if line.strip() == "done" or (kills < most and count == 5 + 4 * kills):
                break
        if line.strip() == "done":
            child.communicate(timeout=60)
            break
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
        kills += 1
    assert kills == most
    steps: dict[int, str] = {}
    for line in log.read_text().splitlines():
        step, _, records = line.partition(" ")
        # Between the log and the save a batch may be made twice, but never another one of the same step.
        assert steps.setdefault(int(step), records) == records
    wanted = [str(batch) for epoch in range(2) for batch in epochs_of(epoch)]
    assert [steps[step] for step in sorted(steps)] == wanted


def epochs_of(epoch: int) -> list[list[int]]:
    everything = batches_of(shuffled(300, seed=11), 7, runs=epoch + 1)
    return everything[epoch * len(everything) // (epoch + 1) :]
