"""Opponents in processes of their own.

Libraries that exclude each other's requirements cannot share a process, and what one of them imports and
starts should not slow another down. They take their turns in a race like everybody else: a job is asked for,
and timed on the other side.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_server.py")
_QUIET = {
    "TQDM_DISABLE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_OFFLINE": "1",  # nothing is fetched, so nobody waits for a network
    "PYTHONWARNINGS": "ignore",
}


@dataclass(frozen=True, slots=True)
class Library:
    """A library that is measured in a process of its own."""

    label: str
    """The name in the table while the library is not installed."""

    module: str
    """The module that uses the library for the benchmarks."""

    environment: str | None = None
    """The name of its own environment; None for the last part of the module's name."""

    @property
    def key(self) -> str:
        """The last part of the module's name: also of its data and its environment."""
        return self.module.rpartition(".")[2]


class Away:
    """A library in another process, or the reason why it does not run."""

    def __init__(self, library: Library, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._library = library
        self.process = process
        self._errors = errors
        hello = self._read()
        self.absent: str | None = hello.get("absent")
        """The reason why the library takes no part; None if it does."""
        self.name = (
            f"{library.label.rpartition(' ')[0]} {hello['version']}" if not self.absent else library.label
        )
        """The name and the version of the library."""

    def ask(self, job: str, **arguments: object) -> Any:
        """Send a request, and return the answer.

        Raises:
            RuntimeError: the process has ended; the message has its last output.
        """
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"job": job, **arguments}) + "\n")
            self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self._errors.seek(0)
        last = "".join(self._errors.readlines()[-20:])
        raise RuntimeError(f"{self._library.label.rpartition(' ')[0]} ended with status {status}:\n{last}")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A contestant in another process: one job of one library."""

    opponent: Away
    job: str
    count: int
    """The number of records of one run."""

    arguments: dict[str, int]

    def seconds(self) -> float:
        """Run the job once, and return the seconds a record."""
        taken: float = self.opponent.ask(self.job, **self.arguments)
        return taken / self.count


@contextlib.contextmanager
def visiting(library: Library, *, source: str, folder: str) -> Iterator[Away]:
    """Start a library on the records of some JSON lines, which it converts into the folder once.

    It runs in an environment of its own, ``apart/KEY`` inside this one, where there is such a one.

    Raises:
        RuntimeError: it is installed, and fails.
    """
    python = os.path.join(sys.prefix, "apart", library.environment or library.key, "bin", "python")
    command = [python if os.path.exists(python) else sys.executable, _SERVER, library.module]
    place = os.path.join(folder, library.key)
    environment = {**os.environ, **_QUIET, "HF_HOME": os.path.join(folder, "home")}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [*command, source, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            text=True,
        ) as process,
    ):
        try:
            yield Away(library, process, errors)
        except BaseException:
            process.kill()
            raise
