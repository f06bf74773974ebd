"""A run on real ranks that is killed again and again, and goes on with another number of them."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import select
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import pytest
from tests.loader.elastic_train import SAVE_EVERY, STATUSES, Settings, pipeline
from tests.loader.flat import Flat
from tests.thrift import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

TRAIN = Path(__file__).with_name("elastic_train.py")
PATIENCE_SECONDS = 120
STATE = re.compile(r"state-(\d+)-(\d+)-of-(\d+)\.json")


@dataclass(frozen=True)
class Life:
    """One launch of all ranks."""

    ranks: int
    ends: Literal["killed", "one killed", "torn", "done"]
    at: int
    """The step at which it ends, or is ended."""
    workers: int = 0
    batch: int = 12
    torchrun: bool = False
    gloo: bool = True
    """True if the ranks meet in a collective of torch; otherwise they meet at the launcher."""


# Of 4 and 6, and of 3 and 2, neither divides the other.
CHAIN = [
    Life(4, "killed", at=7),
    Life(6, "torn", at=15),
    Life(1, "killed", at=23, workers=2),
    Life(3, "one killed", at=31, torchrun=True),
    Life(2, "one killed", at=41, workers=1),
    # The position is in records: it does not care how many make a batch.
    Life(4, "done", at=50, batch=24),
]
WITHOUT_TORCH = [Life(2, "killed", at=7, gloo=False), Life(3 if ALL else 1, "done", at=15, gloo=False)]


class Launch:
    """The processes of one life; `steps` says how far each rank is."""

    def __init__(self, life: Life, settings: Settings) -> None:
        self.pids: dict[int, int] = {}
        self.steps = dict.fromkeys(range(life.ranks), 0)
        self._errors, self._statuses = Path(settings.logs, "stderr"), Path(settings.logs, STATUSES)
        self._rest = b""
        self._pipe, write = os.pipe()
        command = [str(TRAIN), json.dumps(asdict(settings))]
        known = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
        around = {name: value for name, value in os.environ.items() if name not in known}
        around["OMP_NUM_THREADS"] = "1"
        if life.torchrun:
            torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={life.ranks}"]
            commands = [([*torchrun, *command], around)]
        else:
            around |= {"WORLD_SIZE": str(life.ranks), "RENDEZVOUS": f"file://{settings.logs}/rendezvous"}
            # One process imports torch for all ranks, and forks them.
            forks = [{"FORKS": str(life.ranks)}]
            each = forks if life.gloo else [{"RANK": str(rank)} for rank in range(life.ranks)]
            commands = [(command, {**around, **own}) for own in each]
        with self._errors.open("wb") as errors:
            self._processes = [
                subprocess.Popen(
                    [sys.executable, *arguments], env=env, stdin=subprocess.PIPE, stdout=write, stderr=errors
                )
                for arguments, env in commands
            ]
        os.close(write)
        self._meetings = 0
        self._arrivals = dict.fromkeys(range(life.ranks), 1)
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if any(process.poll() is None for process in self._processes):
            self.kill()
        for process in self._processes:
            process.wait(PATIENCE_SECONDS)
            assert process.stdin is not None
            process.stdin.close()
        os.close(self._pipe)

    def wait_until(self, step: int, *, ranks: Iterable[int]) -> None:
        while min(self.steps[rank] for rank in ranks) < step:
            assert self._hear(), f"all ranks ended before step {step}: {self._errors.read_text()}"

    def kill(self, rank: int | None = None) -> None:
        """Kill one rank, or all and whoever launched them."""
        if rank is not None:
            os.kill(self.pids[rank], signal.SIGKILL)
            return
        for process in self._processes:
            process.kill()
        # What a launcher of ranks launches does not end with it.
        for pid in self.pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self) -> list[int]:
        """Wait until all has ended, loaders' workers too; return the exit statuses."""
        while self._hear():
            pass
        statuses = [process.wait(PATIENCE_SECONDS) for process in self._processes]
        return json.loads(self._statuses.read_text()) if self._statuses.exists() else statuses

    def _hear(self) -> bool:
        """Take in what the ranks say; False when none of them is there to say more."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        assert poll.poll(PATIENCE_SECONDS * 1000), f"{self.steps}: {self._errors.read_text()}"
        heard = os.read(self._pipe, 1 << 16)
        *lines, self._rest = (self._rest + heard).split(b"\n")
        for line in lines:
            rank, pid, step = map(int, line.split())
            self.pids[rank], self.steps[rank] = pid, step
            self._arrivals[rank] += 1
        self._let_go()
        return bool(heard)

    def _let_go(self) -> None:
        """Let all ranks make the next batch, if all have made the last one; ranks of gloo do not read it."""
        while self._meetings < min(self._arrivals.values()):
            self._meetings += 1
            for process in self._processes:
                assert process.stdin is not None
                with contextlib.suppress(BrokenPipeError):  # It has made its last batch.
                    os.write(process.stdin.fileno(), b".")


def live(life: Life, settings: Settings) -> None:
    """Launch the ranks and see them to their end."""
    everyone = range(life.ranks)
    with Launch(life, settings) as launch:
        if life.ends == "done":
            assert set(launch.wait()) == {0}
            return
        launch.wait_until(life.at, ranks=everyone[:-1] if life.ends == "torn" else everyone[:1])
        launch.kill(rank=life.ranks - 1 if life.ends == "one killed" else None)
        # Where one was killed, the others fail at the next collective.
        assert 0 not in launch.wait()


def newest_complete(states: Path) -> int:
    """Return the newest step of which each rank's state is there; 0 where there is none."""
    found: dict[tuple[int, int], set[int]] = {}
    for path in states.glob("state-*"):
        if match := STATE.fullmatch(path.name):
            step, rank, ranks = map(int, match.groups())
            found.setdefault((step, ranks), set()).add(rank)
    return max((step for (step, ranks), files in found.items() if len(files) == ranks), default=0)


def logged(logs: Path, rank: int) -> tuple[int, dict[int, Any]]:
    """Return the step at which a rank began, and its share of each step."""
    # A rank that was killed may have been half through a line.
    lines = (logs / f"rank-{rank}").read_text().split("\n")[:-1]
    head, *entries = [json.loads(line) for line in lines]
    steps = [entry["step"] for entry in entries]
    assert steps == list(range(head["begins"], head["begins"] + len(steps)))
    return head["begins"], {entry["step"]: entry["batch"] for entry in entries}


def following(model: Flat) -> tuple[int, list[int]]:
    """Return the place at which the next batch begins, and the batch."""
    if not model.left():
        model.take()
    start = model.epoch * len(model.dataset) + model.at
    batch = model.take()
    assert batch is not None
    return start, batch


def check(life: Life, logs: Path, *, begins: int, model: Flat) -> None:
    """Hold all that the ranks of a life logged to what the model gives from the step on at which it began."""
    parts = []
    for rank in range(life.ranks):
        began, steps = logged(logs, rank)
        assert began == begins
        parts.append(steps)
    counts = [len(steps) for steps in parts]
    assert max(counts) - min(counts) <= (0 if life.ends == "done" else 1)
    for step in range(begins, begins + max(counts)):
        start, batch = following(model)
        for rank, steps in enumerate(parts):
            share = [record for place, record in enumerate(batch, start) if place % life.ranks == rank]
            assert steps.get(step, share) == share, f"step {step} of rank {rank} of {life.ranks}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Fourteen files, each of them a block of the windowed shuffle."""
    folder = tmp_path / "data"
    folder.mkdir()
    at = 0
    for name, records in [*((f"web-{i}", 5 + i % 4) for i in range(13)), ("code", 31)]:
        lines = [json.dumps({"id": at + row, "text": "a word " * (row % 5)}) for row in range(records)]
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        at += records
    return folder


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param(
            CHAIN, marks=[pytest.mark.frameworks(name="torch"), pytest.mark.exhaustive], id="4-6-1-3-2-4"
        ),
        pytest.param(WITHOUT_TORCH, id="without-torch"),
    ],
)
def test_a_run_on_changing_numbers_of_ranks_is_the_run_of_one_process(
    data: Path, tmp_path: Path, chain: list[Life]
) -> None:
    states = tmp_path / "states"
    begins = [0]
    for number, life in enumerate(chain):
        logs = tmp_path / f"life-{number}"
        logs.mkdir()
        torn = life.at if life.ends == "torn" else None
        until = life.at if life.ends == "done" else 10**9
        settings = Settings(
            str(data), str(states), str(logs), life.batch, life.workers, until, torn, life.gloo
        )
        live(life, settings)
        begins.append(newest_complete(states))
        if life.ends == "torn":
            assert len(list(states.glob(f"state-{life.at:012d}-*"))) == life.ranks - 1
            assert begins[-1] == life.at - SAVE_EVERY
    model = Flat(pipeline(str(data)), batch=12, end="pad", epochs=1, limit=None)
    for number, life in enumerate(chain):
        model.batch = life.batch
        check(life, tmp_path / f"life-{number}", begins=begins[number], model=copy.copy(model))
        while model.step < begins[number + 1]:
            following(model)
    assert begins == sorted(begins)
    assert begins[1] > 0, "the first life saved a state"
    assert begins[-1] == chain[-1].at - chain[-1].at % SAVE_EVERY
    assert model.epoch > 2 or chain is WITHOUT_TORCH, "the run went over the ends of epochs"
