"""Batches made by other processes, or by threads: the same ones in the same order, whatever happens."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.loader.sent import deadly, even_or_hole, large, picky, stuck_at_50, stuck_at_a_line
from tests.processes import ends
from tests.thrift import ALL, some

import seekable as sk
from seekable.loader.collate import collate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.arguments import WorkerType
    from seekable.loader.worker_pool import WorkerPool

TYPES = ["process", "thread"]

CHEAP_TYPES = [pytest.param("process", marks=pytest.mark.exhaustive), "thread"]
"""For what lies in messages that both pass."""


def shuffled(n: int = 101) -> sk.Dataset:
    return sk.from_sequence(range(n)).shuffle(3)


def pool_of(loader: sk.Loader) -> WorkerPool:
    pool: WorkerPool | None = loader._producer._execution.pool  # type: ignore[union-attr]
    assert pool is not None
    return pool


@contextlib.contextmanager
def loading(dataset: sk.Dataset, **given: Any) -> Iterator[sk.Loader]:
    with sk.Loader(dataset, **{"collate": list, "batch_size": 7, "workers": 2, **given}) as loader:
        yield loader


# Each number of processes with one end, because what fills a batch is done before it goes to a worker.
SAME = [
    ("process", 2, "drop"),
    *(
        pytest.param("process", workers, end, marks=pytest.mark.exhaustive)
        for workers, end in ((1, "short"), (3, "pad"))
    ),
    *(("thread", workers, end) for workers in (1, 2, 3) for end in ("short", "drop", "pad")),
]


@pytest.mark.parametrize(("worker_type", "workers", "end"), SAME)
@pytest.mark.usefixtures("new_interpreters")
def test_they_make_the_same_batches(worker_type: Any, workers: int, end: Any) -> None:
    sizes = (0, 1, 6, 7, 101) if worker_type == "thread" else (0, 6, 101) if ALL else (0, 101)
    for n in sizes:
        alone = sk.Loader(shuffled(n), batch_size=7, collate=list, end=end, epochs=2, prefetch=0)
        runs = [list(alone), list(alone)]
        with loading(shuffled(n), workers=sk.Workers(workers, type=worker_type), end=end, epochs=2) as loader:
            assert [list(loader), list(loader)] == runs
            assert loader.state_dict() == alone.state_dict()


@pytest.mark.parametrize("worker_type", CHEAP_TYPES)
def test_each_rank_has_its_share(worker_type: Any) -> None:
    def batches(workers: int, rank: int) -> list[list[int]]:
        given = {"batch_size": 1, "global_batch_size": 12, "rank": rank, "world_size": 3, "end": "drop"}
        with loading(shuffled(), workers=sk.Workers(workers, type=worker_type), **given) as loader:
            return list(loader)

    assert [batches(2, rank) for rank in range(3)] == [batches(0, rank) for rank in range(3)]


def test_a_run_goes_on_with_any_number_of_workers() -> None:
    whole = list(sk.Loader(shuffled(), batch_size=7, collate=list, epochs=2))
    for cut in range(0, len(whole) + 1, 3):
        kind: WorkerType = "process" if ALL or cut == 15 else "thread"
        with loading(shuffled(), workers=sk.Workers(cut % 3, type=kind), epochs=2) as first:
            run = iter(first)
            before = [next(run) for _ in range(cut)]
            state = json.loads(json.dumps(first.state_dict()))
        with loading(shuffled(), workers=sk.Workers((cut + 1) % 3, type=kind), epochs=2) as second:
            second.load_state_dict(state)
            assert before + list(second) == whole


def test_a_live_run_can_be_moved() -> None:
    with loading(shuffled()) as loader:
        whole = list(loader)
        loader.set_epoch(0)
        run = iter(loader)
        first = next(run)
        state = loader.state_dict()
        assert next(run) == whole[1]
        loader.load_state_dict(state)
        assert next(run) == whole[1]
        loader.skip_batches(3)
        assert [first, *run] == [whole[0], *whole[5:]]


@pytest.mark.parametrize("worker_type", TYPES)
def test_holes_are_counted(worker_type: Any) -> None:
    ds = sk.from_sequence([sk.HOLE if i % 5 == 2 else i for i in range(20)])
    with loading(ds, batch_size=6, workers=sk.Workers(2, type=worker_type)) as loader:
        assert list(loader) == [[0, 1, 3, 4, 5], [6, 8, 9, 10, 11], [13, 14, 15, 16], [18, 19]]
        assert loader.report()["holes"] == 4


def test_functions_without_a_name_are_sent() -> None:
    factor = 3
    with loading(shuffled().map(lambda i: i * factor), collate=sum, workers=1) as loader:
        wanted = [sum(3 * i for i in batch) for batch in sk.Loader(shuffled(), batch_size=7, collate=list)]
        assert list(loader) == wanted


SCRIPT = """
import numpy as np
import seekable as sk

def squared(record):
    return record * record

loader = sk.Loader(sk.from_sequence(range(50)).map(squared), batch_size=8, workers=1)
for batch in loader:
    if batch[0] == 24 * 24:
        break
print(loader.step, batch.tolist())
"""


@pytest.mark.parametrize("how", ["script", "command", "stdin"])
def test_a_script_needs_no_main_guard_and_ends_without_noise(how: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    command = {"script": [str(path)], "command": ["-c", SCRIPT], "stdin": ["-"]}[how]
    done = subprocess.run(
        [sys.executable, *command], input=SCRIPT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"4 {[i * i for i in range(24, 32)]}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("worker_type", TYPES)
def test_an_error_comes_where_its_batch_would_have(worker_type: Any) -> None:
    whole = list(sk.Loader(shuffled(), batch_size=7, collate=list))
    at = next(i for i, batch in enumerate(whole) if 50 in batch)
    with loading(shuffled().map(picky), workers=sk.Workers(2, type=worker_type)) as loader:
        run = iter(loader)
        assert [next(run) for _ in range(at)] == whole[:at]
        with pytest.raises(LookupError, match="cannot take 50") as caught:
            next(run)
        notes = "".join(caught.value.__notes__)
        assert "called with the record at" in notes
        assert ("in a worker process" in notes) == (worker_type == "process")
        loader.skip_batches(1)
        assert list(run) == whole[at + 1 :]


def test_a_corrupt_record_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n{"id": \n')
    with loading(sk.open(path), workers=1) as loader, pytest.raises(sk.CorruptRecord) as caught:
        list(loader)
    assert (caught.value.path, caught.value.row, caught.value.offset) == (str(path), 1, 10)


def test_what_cannot_be_sent_is_told() -> None:
    lock = threading.Lock()
    with pytest.raises(sk.errors.InvalidArgument, match="cannot be sent to worker processes"):
        iter(sk.Loader(shuffled().map(lambda i: (lock, i)), workers=1))
    with (
        loading(shuffled(), workers=1, collate=lambda records: (threading.Lock(), records)) as loader,
        pytest.raises(TypeError, match="pickle"),
    ):
        next(iter(loader))


@pytest.mark.usefixtures("new_interpreters")
def test_one_that_is_killed_is_told_with_its_signal() -> None:
    with loading(shuffled(), batch_size=1, prefetch=1) as loader:
        run = iter(loader)
        next(run)
        pid = pool_of(loader).workers[0].pid
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(sk.errors.WorkerDied, match=rf"pid {pid}\) ended by signal SIGKILL"):
            list(run)
        # A later run has other workers.
        loader.set_epoch(0)
        assert list(loader) == list(sk.Loader(shuffled(), batch_size=1, collate=list))


def test_one_that_is_killed_is_replaced() -> None:
    whole = list(sk.Loader(shuffled(400), batch_size=3, collate=list))
    with loading(
        shuffled(400), batch_size=3, prefetch=1, workers=sk.Workers(2, restart=None, timeout=60)
    ) as loader:
        run = iter(loader)
        batches = []
        for number in range(some(8, of=2)):
            batches.append(next(run))
            os.kill(pool_of(loader).workers[number % 2].pid, signal.SIGKILL)
        assert batches + list(run) == whole


def test_no_more_are_replaced_than_said() -> None:
    workers = sk.Workers(1, restart=1, timeout=60)
    with loading(shuffled(), batch_size=1, prefetch=1, workers=workers) as loader:
        run = iter(loader)
        batches = [next(run)]
        os.kill(pool_of(loader).workers[0].pid, signal.SIGKILL)
        # One may lie there already.
        batches += [next(run), next(run)]
        assert batches == [[record] for record in shuffled()[:3]]
        os.kill(pool_of(loader).workers[0].pid, signal.SIGKILL)
        with pytest.raises(sk.errors.WorkerDied, match=r"workers=sk\.Workers\(\.\.\., restart=2\)"):
            list(run)


def test_a_batch_that_kills_all_who_make_it_is_an_error() -> None:
    with (
        loading(shuffled().map(deadly), workers=sk.Workers(1, restart=None)) as loader,
        pytest.raises(sk.errors.WorkerDied),
    ):
        list(loader)


def up_to_one_that_never_comes(loader: sk.Loader, at: int) -> Iterator[Any]:
    """Return a run whose next batch hangs: only that one is awaited for no more than a tenth of a second."""
    run = iter(loader)
    for _ in range(at):
        next(run)
    assert loader.step == at
    pool_of(loader)._timeout = 0.1
    return run


def test_one_that_hangs_is_told_with_its_stack(tmp_path: Path) -> None:
    whole = list(sk.Loader(shuffled(), batch_size=7, collate=list))
    at = next(i for i, batch in enumerate(whole) if 50 in batch)
    fifo = tmp_path / "stuck"
    os.mkfifo(fifo)
    ds = shuffled().map(partial(stuck_at_50, tells=str(fifo)))
    with loading(ds, workers=sk.Workers(1, timeout=60)) as loader:
        run = up_to_one_that_never_comes(loader, at)
        assert fifo.read_bytes() == b"."
        with pytest.raises(
            sk.errors.WorkerHung, match=rf"batch of step {at} .*timeout=0.1(?s:.*)stuck_at_50"
        ):
            next(run)
        assert loader.step == at
        assert issubclass(sk.errors.WorkerHung, TimeoutError)


def test_one_that_hangs_is_told_with_its_files(tmp_path: Path) -> None:
    for name, rows in (("a", range(5)), ("b", range(5, 9))):
        (tmp_path / f"{name}.txt").write_text("".join(f"{row}\n" for row in rows))
    ds = sk.open(tmp_path).map(stuck_at_a_line)
    with loading(ds, workers=sk.Workers(1, timeout=60), batch_size=2) as loader:
        run = up_to_one_that_never_comes(loader, 2)
        with pytest.raises(sk.errors.WorkerHung) as caught:
            next(run)
    assert caught.value.__notes__ == [f"the batch reads from {tmp_path / 'a.txt'}, {tmp_path / 'b.txt'}"]


def test_close_ends_them() -> None:
    with loading(shuffled()) as loader:
        next(iter(loader))
        descriptors = [os.pidfd_open(worker.pid) for worker in pool_of(loader).workers]
    for descriptor in descriptors:
        # Closed is waited for: the process is gone, and was waited for by its parent.
        with pytest.raises(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, 0)
        os.close(descriptor)


def test_they_end_with_their_loader() -> None:
    loader = sk.Loader(shuffled(), batch_size=7, workers=1)
    next(iter(loader))
    descriptors = [os.pidfd_open(worker.pid) for worker in pool_of(loader).workers]
    del loader
    gc.collect()
    for descriptor in descriptors:
        assert ends(descriptor)
        os.close(descriptor)


def test_they_end_with_a_parent_that_is_killed() -> None:
    script = """
        import seekable as sk, time
        loader = sk.Loader(sk.from_sequence(range(10**6)), batch_size=8, workers=1)
        next(iter(loader))
        print(*[worker.pid for worker in loader._producer._execution.pool.workers], flush=True)
        time.sleep(3600)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        descriptors = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
    for descriptor in descriptors:
        assert ends(descriptor)
        os.close(descriptor)


def test_an_interrupt_loses_nothing() -> None:
    """Whenever it comes: the same batch comes next."""
    script = """
        import random, signal, sys
        import numpy as np
        import seekable as sk
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        ds = sk.from_sequence(range(3000)).shuffle(1).map(lambda i: np.full(5_000, i))
        loader = sk.Loader(ds, batch_size=5, workers=2, prefetch=2, steps=200)
        run, seen, rng, interrupts = iter(loader), [], random.Random(0), 0
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0005, 0.2))
                for batch in run:
                    step = loader.step
                    seen.append((step, batch[:, 0].tolist()))
                break
            except KeyboardInterrupt:
                interrupts += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        plain = sk.Loader(ds, batch_size=5, steps=200)
        wanted = {step: batch[:, 0].tolist() for step, batch in enumerate(plain, start=1)}
        # An interrupt may come between a delivery and the note of it here.
        assert all(wanted[step] == batch for step, batch in seen), "another batch"
        assert [step for step, _ in seen] == sorted({step for step, _ in seen}), "repeated"
        print(loader.step, interrupts > 0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "200 True\n", "")


def shared() -> list[str]:
    """Return the shared memory that this process has mapped or open."""
    # Files of other tests, whose names may have any bytes, may still be mapped.
    text = os.fsdecode(Path("/proc/self/maps").read_bytes())
    maps = [line for line in text.splitlines() if "memfd:seekable" in line]
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return maps + [link for link in links if "memfd:seekable" in link]


def test_large_batches_come_through_shared_memory_and_leave_nothing() -> None:
    gc.collect()
    assert shared() == []
    with loading(shuffled(40).map(large), workers=1, batch_size=4, collate=collate) as loader:
        batches = list(loader)
        assert shared()
        assert [int(batch["x"][0, -1]) for batch in batches] == [int(batch["n"][0]) for batch in batches]
        batches[0]["x"][:] = 0  # as training code may do
        assert batches[0]["x"].shape == (4, 200_000)
    del batches
    gc.collect()
    assert shared() == []


@pytest.mark.parametrize(("prefetch", "limit", "most"), [(2, 1 << 30, 2), (50, 2 << 20, 3)])
def test_no_more_is_made_ahead_than_was_asked_for(
    prefetch: int, limit: int, most: int, tmp_path: Path
) -> None:
    """Each batch notes how many were delivered when it was made; of a megabyte, a worker may have two."""
    delivered = tmp_path / "delivered"
    delivered.write_text("0")

    def noted(_: list[Any]) -> tuple[int, Any]:
        return int(delivered.read_text() or -1), np.zeros(1 << 17)

    with loading(
        sk.from_sequence(range(60)), batch_size=1, prefetch=prefetch, prefetch_bytes=limit, collate=noted
    ) as loader:
        for step, (seen, _) in enumerate(loader):
            # Made when `seen` were delivered: at most so many of each worker were waiting before it.
            assert seen == -1 or step - seen <= 2 * most + 2
            delivered.write_text(str(step + 1))


def test_a_pickled_batch_is_what_the_loader_made() -> None:
    records = [{"a": (1, [2.5, None])}, {"a": b"x" * 100_000}]
    with loading(sk.from_sequence(records), workers=1) as loader:
        assert pickle.loads(pickle.dumps(list(loader))) == [records]


def test_a_forked_child_has_workers_of_its_own() -> None:
    whole = list(sk.Loader(shuffled(), batch_size=7, collate=list))
    with loading(shuffled()) as loader:
        run = iter(loader)
        first = next(run)
        pid = os.fork()
        if not pid:
            with contextlib.suppress(sk.errors.ForkUnsafe):
                next(run)
                os._exit(1)
            loader.set_epoch(0)
            same = list(loader) == whole
            loader.close()
            os._exit(7 if same else 2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert [first, *run] == whole


def test_they_are_started_once() -> None:
    with loading(shuffled()) as loader:
        list(loader)
        pids = [worker.pid for worker in pool_of(loader).workers]
        list(loader)
        next(iter(loader))
        assert [worker.pid for worker in pool_of(loader).workers] == pids


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"workers": -1}, "workers must be at least 0"),
        ({"workers": "2"}, r"workers must be an integer .*: say how many, or sk\.Workers\(count"),
        ({"worker_type": "thread"}, r"no argument 'worker_type': write workers=sk\.Workers\(4, type="),
        ({"timeout": 60}, r"no argument 'timeout': write workers=sk\.Workers\(4, timeout=60\)"),
        ({"restart_workers": True}, r"write workers=sk\.Workers\(4, restart=2\)"),
        ({"prefetch_bytes": 0}, "prefetch_bytes must be at least 1"),
    ],
)
def test_arguments_are_checked(given: dict[str, Any], match: str) -> None:
    with pytest.raises(sk.SeekableError, match=match):
        sk.Loader(shuffled(), **given)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"count": -1}, "count must be at least 0"),
        ({"type": "fork"}, "type must be 'process' or 'thread'"),
        ({"timeout": 0}, "timeout must be above 0 seconds"),
        ({"timeout": "1"}, "timeout must be a number of seconds"),
        ({"restart": True}, r"restart must be an integer \(got True"),
        ({"restart": -1}, "restart must be at least 0"),
    ],
)
def test_workers_check_themselves(given: dict[str, Any], match: str) -> None:
    with pytest.raises(sk.SeekableError, match=match):
        sk.Workers(**{"count": 2, **given})


def test_workers_are_a_value() -> None:
    workers = sk.Workers(4, timeout=60, restart=2, type="thread")
    assert workers == sk.Workers(4, timeout=60.0, restart=2, type="thread")
    assert eval(repr(workers), {"Workers": sk.Workers}) == workers == pickle.loads(pickle.dumps(workers))
    with pytest.raises(FrozenInstanceError):
        workers.count = 5  # type: ignore[misc]


@pytest.mark.usefixtures("forked_programs")
def test_an_error_of_a_class_that_only_the_script_has_is_told_as_text() -> None:
    script = """
        import seekable as sk
        class Odd(Exception):
            pass
        def odd(record):
            raise Odd("very odd")
        try:
            list(sk.Loader(sk.from_sequence(range(9)).map(odd), batch_size=2, workers=1))
        except RuntimeError as error:
            print(error, "in odd" in error.__notes__[-1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("Odd: very odd True\n", "")


def pipeline() -> sk.Dataset:
    """Filtered, with holes, shuffled in windows and by lanes, and mixed."""
    one = sk.from_sequence(range(4000), version="a").filter(lambda i: i % 3 > 0, jobs=1).map(even_or_hole)
    other = sk.from_sequence(range(10_000, 11_500), version="b").shuffle(2)
    return sk.mix([one.shuffle(1, window=1, lanes=4), other], weights=[3, 2], seed=0)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 6))]
)
def test_any_chain_of_ranks_and_workers_delivers_the_same_batches(seed: int) -> None:
    rng, data = np.random.default_rng(seed), pipeline()
    whole = [sorted(batch) for batch in sk.Loader(data, batch_size=24, collate=list, end="drop", epochs=2)]
    state: dict[str, Any] | None = None
    seen: list[list[int]] = []
    while len(seen) < len(whole):
        world, workers = int(rng.choice([1, 2, 3, 4, 6])), int(rng.integers(0, 3))
        count = int(rng.integers(1, 120))
        is_cheap = world * workers <= 2
        kind: WorkerType = "process" if rng.random() < 0.2 and (ALL or is_cheap) else "thread"
        ranks = []
        for rank in range(world):
            given = {"batch_size": 1, "global_batch_size": 24, "rank": rank, "world_size": world}
            with loading(
                data, workers=sk.Workers(workers, type=kind), end="drop", epochs=2, **given
            ) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                run = iter(loader)
                ranks.append([batch for _, batch in zip(range(count), run, strict=False)])
                after = json.loads(json.dumps(loader.state_dict()))
        state = after
        seen += [sorted(record for part in step for record in part) for step in zip(*ranks, strict=True)]
    assert seen == whole


@pytest.mark.usefixtures("new_interpreters")
def test_workers_live_on_at_the_signals_of_a_job_from_their_first_moment_on() -> None:
    """Slurm and systemd send them to all processes of a job, of which this one has to save its state."""
    with loading(shuffled()) as loader:
        run, batches = iter(loader), []
        for _ in range(2):  # while the interpreters start, and when they have
            for worker in pool_of(loader).workers:
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                    os.kill(worker.pid, number)
            batches += [next(run), next(run)]
        assert [*batches, *run] == list(sk.Loader(shuffled(), batch_size=7, collate=list))
