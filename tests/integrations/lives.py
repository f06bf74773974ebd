"""Training runs that may be killed: a server imports what is slow once, and forks a process for each life.

A script calls ``serve(live)``; a test starts it as ``Server(script, folder)`` and asks for lives. What a life
is given is a dict of JSON; what it took is the lines that it logged, which outlive it.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

KILLED = -signal.SIGKILL
_MOST_SECONDS = 120
_ROOT = Path(__file__).resolve().parents[2]
_IMPORTED = Path("imported")
"""In the folder of a server: the modules that its last lives imported."""


@dataclass(frozen=True, slots=True)
class Life:
    """What one process did."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    log: list[dict[str, Any]]
    """What it logged, in order."""
    said: str
    """What it and its libraries printed."""

    def ids(self, kind: str = "train") -> list[list[int]]:
        """Return the records of each batch of a kind."""
        return [entry["ids"] for entry in self.log if entry["kind"] == kind]


def together(lives: list[Life]) -> list[list[int]]:
    """Return the batches of all ranks, sorted: who has which record of one depends on the number of ranks."""
    steps = itertools.zip_longest(*(life.ids() for life in lives), fillvalue=[])
    return [sorted(itertools.chain.from_iterable(step)) for step in steps]


class Log:
    """Appends what a life sees to a file, line by line."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, kind: str, ids: Any) -> None:
        line = json.dumps({"kind": kind, "ids": [int(number) for number in ids]}) + "\n"
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(line)


def die() -> None:
    """End this process as a power cut would."""
    _note_imports()
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    """Send this process what schedulers send before they take a machine away."""
    _note_imports()
    os.kill(os.getpid(), signal.SIGTERM)


def _note_imports() -> None:
    """Write down what this life has imported: frameworks import much when they first need it."""
    descriptor = os.open(_IMPORTED, os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # The ranks of a run share it.
    os.write(descriptor, "".join(f"{name}\n" for name in list(sys.modules)).encode())
    os.close(descriptor)


def _import_what_lives_imported() -> None:
    """Import what the last lives imported, so that the next ones find it imported."""
    if not _IMPORTED.exists():
        return
    names = dict.fromkeys(_IMPORTED.read_text(encoding="utf-8").splitlines())
    _IMPORTED.unlink()
    for name in [name for name in names if name not in sys.modules]:
        with suppress(ImportError):  # Some packages put modules into sys.modules that cannot be imported.
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def serve(live: Callable[[dict[str, Any]], None]) -> None:
    """Fork processes for each line of standard input, and answer with how they ended."""
    for line in sys.stdin:
        children = [_forked(live, spec) for spec in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()
        _import_what_lives_imported()


def _forked(live: Callable[[dict[str, Any]], None], spec: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    signal.alarm(_MOST_SECONDS)  # a hang ends the life, and the test fails
    said = os.open(spec["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.environ |= spec["environment"]
    code = 1
    try:
        live(spec)
        _note_imports()
        code = 0
    except BaseException:  # noqa: BLE001 - it is the test that looks at it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Server:
    """A script that serves lives; what they write goes into a folder."""

    def __init__(self, script: str, folder: Path) -> None:
        self._folder = folder
        self._lives = 0
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name(script))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))},
        )

    def live(self, **spec: Any) -> Life:
        """Run one life to its end."""
        [life] = self._run([{**spec, "environment": {}}])
        return life

    def ranks(self, count: int, **spec: Any) -> list[Life]:
        """Run lives that are the ranks of one training run, as torchrun would start them."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "GROUP_RANK": "0",
            "TORCHELASTIC_RUN_ID": "test",
        }
        environments = [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
        return self._run([{**spec, "environment": environment} for environment in environments])

    def _run(self, specs: list[dict[str, Any]]) -> list[Life]:
        for spec in specs:
            self._lives += 1
            spec["log"], spec["said"] = (
                str(self._folder / f"{self._lives}.{end}") for end in ("log", "said")
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(specs) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the server of lives has died"
        return [_life(code, spec) for code, spec in zip(json.loads(answer), specs, strict=True)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _life(code: int, spec: dict[str, Any]) -> Life:
    log = Path(spec["log"])
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return Life(code, [json.loads(line) for line in lines], Path(spec["said"]).read_text(encoding="utf-8"))
