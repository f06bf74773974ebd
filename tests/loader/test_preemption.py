"""Runs that are stopped by signals end at one step on all ranks, and go on exactly from its state."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loader.preempted_train import Settings, loader_of, plain, train

import seekable as sk
from seekable.loader import preemption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


PATIENCE_SECONDS = 60


def small(**arguments: Any) -> sk.Loader:
    return sk.Loader(
        sk.from_sequence(range(40), version=1), **{"batch_size": 2, "collate": list, **arguments}
    )


def steps_in(folder: Path) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in folder.glob("state-*.json"))


@pytest.fixture(autouse=True)
def nothing_unanswered() -> None:
    preemption._UNANSWERED.clear()


# One process: it stops after the step at which it hears.


@pytest.mark.parametrize("heard", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_stops_after_its_step_with_the_state_there(heard: signal.Signals, tmp_path: Path) -> None:
    loader, seen = small(), []
    with sk.preemption(loader, tmp_path) as stop:
        assert not stop
        for batch in loader:
            seen.append(batch)
            if loader.step == 4:
                os.kill(os.getpid(), heard)
            if stop:
                assert steps_in(tmp_path) == []  # The model is saved first.
                break
    assert (stop.reason, bool(stop)) == (f"{heard.name} on rank 0", True)
    assert stop.saved == str(tmp_path / "state-000000000004-00000-of-00001.json")
    again = small()
    assert sk.load_state(tmp_path, again)
    assert seen + list(again) == list(small())
    assert not (tmp_path / "stop.json").exists()


def test_a_run_that_hears_nothing_saves_nothing(tmp_path: Path) -> None:
    loader = small()
    with sk.preemption(loader, tmp_path / "run") as stop:  # The folder is made: a model is saved there first.
        assert [bool(stop) for _ in loader] == [False] * 20
    assert (stop.reason, stop.saved, os.listdir(tmp_path / "run")) == (None, None, [])


def test_handlers_come_back_and_are_not_called_meanwhile(tmp_path: Path) -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: called.append(number))
    try:
        ours = signal.getsignal(signal.SIGUSR1)
        with sk.preemption(small(), tmp_path) as stop:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert stop
        assert signal.getsignal(signal.SIGUSR1) is ours
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert called == []
        with pytest.raises(LookupError), sk.preemption(small(), tmp_path):
            raise LookupError
        assert signal.getsignal(signal.SIGUSR1) is ours
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_more_signals_change_nothing_not_even_while_the_state_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = sk.save_state

    def save_in_a_storm(*arguments: Any, **named: Any) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return save(*arguments, **named)

    monkeypatch.setattr(preemption, "save_state", save_in_a_storm)
    loader = small()
    with sk.preemption(loader, tmp_path) as stop:
        for _ in loader:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            if stop:
                break
    assert (stop.reason, steps_in(tmp_path)) == ("SIGUSR1 on rank 0", [1])


def test_an_error_saves_no_state_and_an_exit_after_the_stop_does(tmp_path: Path) -> None:
    def train(error: BaseException, *, stops: bool) -> None:
        loader = small()
        with sk.preemption(loader, tmp_path) as stop:
            for _ in loader:
                if stops:
                    os.kill(os.getpid(), signal.SIGTERM)
                if bool(stop) == stops:
                    raise error

    def leave(error: BaseException, *, stops: bool) -> None:
        with pytest.raises(type(error)):
            train(error, stops=stops)

    for error in (LookupError(), KeyboardInterrupt()):
        leave(error, stops=True)
    leave(SystemExit(0), stops=False)
    assert steps_in(tmp_path) == []
    leave(SystemExit(3), stops=True)
    assert steps_in(tmp_path) == [1]


def test_it_stops_at_multiples_of_every(tmp_path: Path) -> None:
    loader = small()
    with sk.preemption(loader, tmp_path, every=4) as stop:
        for _ in loader:
            if loader.step == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            if stop:
                break
    assert steps_in(tmp_path) == [8]


@pytest.mark.parametrize("deadline", [1e-9, datetime.now(UTC), datetime.now() - timedelta(days=1)])  # noqa: DTZ005 - local time
def test_a_deadline_stops_too(deadline: Any, tmp_path: Path) -> None:
    loader = small()
    with sk.preemption(loader, tmp_path, deadline=deadline, signals=()) as stop:
        for _ in loader:
            if stop:
                break
    assert (stop.reason, steps_in(tmp_path)) == ("the deadline on rank 0", [1])


def test_a_deadline_that_lies_ahead_stops_nothing(tmp_path: Path) -> None:
    for deadline in (3600, datetime.now(UTC) + timedelta(hours=1)):
        with sk.preemption(small(), tmp_path, deadline=deadline) as stop:
            assert not stop


def test_a_signal_after_the_last_step_counts_in_the_next_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loader = small(epochs=1)
    with sk.preemption(loader, tmp_path) as stop:
        for _ in loader:
            assert not stop
        os.kill(os.getpid(), signal.SIGTERM)
    assert "SIGTERM came too late for this run to stop, and no state was saved" in caplog.text
    with sk.preemption(loader, tmp_path) as stop:
        for _ in loader:
            if stop:
                break
    assert (stop.reason, loader.step, steps_in(tmp_path)) == ("SIGTERM on rank 0", 21, [21])


def test_a_loop_that_never_asks_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with sk.preemption(small(), tmp_path):
        os.kill(os.getpid(), signal.SIGTERM)
    assert "SIGTERM was not seen: write `if stop:`, and no state was saved" in caplog.text


def test_a_forked_child_ends_by_sigterm_and_outlives_others(tmp_path: Path) -> None:
    read, write = os.pipe()
    with sk.preemption(small(), tmp_path) as stop:
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.write(write, b"alive" if not stop else b"stops")
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert not stop
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert os.read(read, 9) == b"alive"
    os.close(read)
    os.close(write)


def test_signals_are_refused_outside_of_the_main_thread(tmp_path: Path) -> None:
    found: list[str] = []

    def work() -> None:
        with pytest.raises(sk.errors.InvalidArgument) as raised, sk.preemption(small(), tmp_path):
            pass
        found.append(str(raised.value))
        with sk.preemption(small(), tmp_path, signals=(), deadline=1e-9) as stop:
            found.append(str(bool(stop)))

    thread = threading.Thread(target=work, name="trainer")
    thread.start()
    thread.join()
    assert found[0].startswith(
        "signals are heard in the main thread alone (this is 'trainer'): begin the with"
    )
    assert found[1:] == ["True"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"deadline": 0}, "deadline must be above 0 seconds"),
        ({"deadline": "1h"}, "deadline must be a number of seconds, or a datetime"),
        ({"deadline": True}, "deadline must be a number of seconds, or a datetime"),
        ({"every": 0}, "every must be at least 1"),
        ({"keep": 0}, "keep must be at least 1"),
        ({"signals": "SIGTERM"}, r"signals must be a list such as \[signal.SIGTERM\]"),
        ({"signals": signal.SIGTERM}, r"signals must be a list such as \[signal.SIGTERM\]"),
        ({"signals": ["SIGTERM"]}, "signals must be numbers such as signal.SIGTERM"),
        ({"signals": [12345]}, r"signals must be those of this system \(got 12345\)"),
        ({"signals": [signal.SIGKILL]}, r"signals must be ones that a process hears \(got SIGKILL\)"),
        ({"storage": sk.Storage(options={"a": 1})}, "storage is for addresses"),
        ({"storage_options": {"a": 1}}, r"write storage=sk\.Storage\(options"),
        ({"dead_line": 1}, "did you mean deadline="),
    ],
)
def test_arguments_are_checked_before_anything_begins(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(sk.SeekableError, match=message):
        sk.preemption(small(), tmp_path, **arguments)
    with pytest.raises(sk.errors.WrongType, match=r"loader must be a sk\.Loader"):
        sk.preemption([1], tmp_path)  # type: ignore[arg-type]


# Several ranks: the first that hears decides.


class Played:
    """Ranks in step, all played by this process: each step they ask in an order of its own."""

    def __init__(self, folder: Path, ranks: int, **arguments: Any) -> None:
        self.loaders = [
            small(batch_size=1, global_batch_size=12, rank=rank, world_size=ranks, epochs=20, prefetch=0)
            for rank in range(ranks)
        ]
        for loader in self.loaders:
            sk.load_state(folder, loader)
        self.stops = [sk.preemption(loader, folder, signals=(), **arguments) for loader in self.loaders]
        self._runs = [iter(loader) for loader in self.loaders]

    def run(
        self, orders: Iterable[Sequence[int]], hears: Callable[[int, int], bool] = lambda *_: False
    ) -> list[int | None]:
        """Return the step at which each rank stopped; ``hears`` tells whether a rank hears at a step."""
        ended: list[int | None] = [None] * len(self.stops)
        with contextlib.ExitStack() as stack:
            for stop in self.stops:
                stack.enter_context(stop)
            for order in orders:
                for rank, run in enumerate(self._runs):
                    if ended[rank] is None:
                        next(run)
                for rank in order:
                    stop, step = self.stops[rank], self.loaders[rank].step
                    if hears(rank, step):
                        stop._hear(signal.SIGTERM, None)
                    if ended[rank] is None and stop:
                        ended[rank] = step
                if None not in ended:
                    break
        return ended


@given(st.data())
def test_ranks_in_step_stop_at_one_step_whoever_hears_when(data: st.DataObject) -> None:
    ranks = data.draw(st.sampled_from([2, 3, 4]))
    every = data.draw(st.integers(1, 4))
    hears = data.draw(st.dictionaries(st.integers(0, ranks - 1), st.integers(1, 9), min_size=1))
    orders = [data.draw(st.permutations(range(ranks))) for _ in range(20)]
    with temporary_folder() as folder:
        played = Played(folder, ranks, every=every)
        ended = played.run(orders, lambda rank, step: hears.get(rank) == step)
        first = min(hears.values())
        (stopped,) = set(ended)
        assert stopped is not None
        assert stopped % every == 0
        assert first + 2 <= stopped < first + 2 + 2 * every
        assert steps_in(folder) == [stopped] * ranks
        # The next run finds the file of this one, which does not stop it.
        assert (folder / "stop.json").exists()
        again = Played(folder, ranks, every=every)
        assert again.run(orders[:5]) == [None] * ranks
        assert [loader.step for loader in again.loaders] == [stopped + 5] * ranks


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_rank_that_is_past_the_stop_says_so_and_is_saved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (
        small(batch_size=1, global_batch_size=4, rank=rank, world_size=2, prefetch=0) for rank in (0, 1)
    )
    runs = iter(first), iter(second)
    with (
        sk.preemption(first, tmp_path, signals=()) as ahead,
        sk.preemption(second, tmp_path, signals=()) as stop,
    ):
        for _ in range(6):
            next(runs[0])
            assert not ahead
        next(runs[1])
        stop._hear(signal.SIGTERM, None)
        assert not stop
        next(runs[0])
        assert ahead
        next(runs[1]), next(runs[1])
        assert stop
    assert "rank 0 is at step 7, past the stop at step 3 (SIGTERM on rank 1)" in caplog.text
    assert steps_in(tmp_path) == [3, 7]


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    played = Played(tmp_path, 2)
    assert played.run([(0, 1)] * 9, lambda rank, step: (rank, step) in {(1, 3), (0, 4)}) == [5, 5]
    # Of a file that is not whole yet nothing is known: the next look finds it.
    (tmp_path / "stop.json").write_bytes(b'{"heard":"SIGT')
    assert preemption._Agreement(str(tmp_path)).found() is None


def test_a_folder_that_cannot_be_looked_into_ends_no_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agreement = preemption._Agreement(str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    assert agreement.found() is None
    assert agreement.proposed(preemption._StopAt(3, 0, "SIGTERM")) is None
    assert "could not look for a stop" in caplog.text
    assert "could not write a stop" in caplog.text


# Real processes.


class Life:
    """One launch of all ranks of `preempted_train.py`, forks of this process; `at` says where each one is."""

    def __init__(
        self, folder: Path, life: int, ranks: int, *, every: int = 1, workers: int = 0, steps: int = 24
    ) -> None:
        self.at = dict.fromkeys(range(ranks), 0)
        gates = [os.pipe() for _ in range(ranks)]
        heard, tells = os.pipe()
        settings = Settings(str(folder), life, ranks, every, workers, steps)
        self.pids = []
        for rank in range(ranks):
            self.pids.append(os.fork())
            if not self.pids[-1]:
                for write in (write for _, write in gates):
                    os.close(write)
                _live(settings, rank, tells, gates[rank][0])
        for descriptor in (tells, *(read for read, _ in gates)):
            os.close(descriptor)
        self._gates, self._heard = [write for _, write in gates], os.fdopen(heard, "rb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for gate in self._gates:
            os.close(gate)  # Ranks that wait end.
        self._heard.close()

    def wait_at(self, step: int) -> None:
        """Let all ranks go on in step until they wait with the batch of a step."""
        while min(self.at.values()) < step:
            assert self._go_on()

    def end(self) -> list[int]:
        """Let all ranks go on in step to their ends; return their exit codes."""
        while self._go_on():
            pass
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]

    def _go_on(self) -> bool:
        """Let the ranks go on, if they all wait, and hear where one of them is; False at their end."""
        if len(set(self.at.values())) == 1 and min(self.at.values()):
            for gate in self._gates:
                os.write(gate, b".")
        line = self._heard.readline()
        if line:
            rank, step = map(int, line.split())
            self.at[rank] = step
        return bool(line)

    def processes(self) -> list[int]:
        """Return the ids of all ranks and of the workers of their loaders."""
        children = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in self.pids]
        return [*self.pids, *(int(child) for each in children for child in each)]


def _live(settings: Settings, rank: int, tells: int, gate: int) -> None:
    code = 1
    try:
        signal.alarm(PATIENCE_SECONDS)  # a hang ends the rank, and the test fails
        train(settings, rank, tells, gate)
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on as the tests
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def logged(folder: Path, life: int, ranks: int) -> dict[int, list[Any]]:
    """Return the global batches of a life by step: item i of rank r is item i * ranks + r of all."""
    logs = []
    for rank in range(ranks):
        lines = (folder / f"log-{life}-{rank}").read_text().splitlines()
        logs.append({entry["step"]: entry["batch"] for entry in map(json.loads, lines)})
    assert all(log.keys() == logs[0].keys() for log in logs)
    return {step: [log[step][i] for i in range(12 // ranks) for log in logs] for step in logs[0]}


def test_a_run_that_is_stopped_again_and_again_delivers_each_item_once(tmp_path: Path) -> None:
    batches: dict[int, list[Any]] = {}

    def keep(life: int, ranks: int, *, until: int) -> None:
        new = logged(tmp_path, life, ranks)
        assert new.keys().isdisjoint(batches)
        batches.update(new)
        assert list(batches) == list(range(until))

    with Life(tmp_path, 1, ranks=3) as life:  # One rank hears.
        life.wait_at(5)
        os.kill(life.pids[1], signal.SIGTERM)
        assert set(life.end()) == {0}
    keep(1, 3, until=7)
    with Life(tmp_path, 2, ranks=2, workers=1) as life:  # All processes hear, the workers too.
        life.wait_at(9)
        assert len(life.processes()) == 4
        for pid in life.processes():
            os.kill(pid, signal.SIGUSR1)
            os.kill(pid, signal.SIGTERM)
        assert set(life.end()) == {0}
    keep(2, 2, until=11)
    with Life(tmp_path, 3, ranks=4, every=4) as life:  # Ranks hear at different steps.
        life.wait_at(14)
        os.kill(life.pids[3], signal.SIGUSR1)
        life.wait_at(15)
        os.kill(life.pids[0], signal.SIGTERM)
        assert set(life.end()) == {0}
    keep(3, 4, until=20)
    with Life(tmp_path, 4, ranks=1) as life:  # None hears.
        assert set(life.end()) == {0}
    keep(4, 1, until=24)
    assert batches == dict(enumerate(plain(batch) for batch in loader_of(0, 1, 24)))
