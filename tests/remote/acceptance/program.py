"""Programs in interpreters of their own, which a test interrupts, kills or lets end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]
HEAD = """
import json, sys, time, signal
import seekable as sk
given = json.loads(sys.argv[1])
# Inherited as ignored where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
def say(*words):
    print(*words, flush=True)
def wait():
    sys.stdin.readline()
def opened():
    return sk.open(
        given["source"],
        index=sk.Index(folder=given["index_dir"]),
        storage=sk.Storage(options=given["storage_options"]),
    )
"""


@final
class Program:
    """A program that has `given` (a dict), `opened()`, `say(...)`, which prints a line, and `wait()`."""

    def __init__(self, code: str, given: Mapping[str, Any], **variables: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HEAD + textwrap.dedent(code), json.dumps(dict(given))],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> None:
        """Let its ``wait()`` return."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """Return the next line that it prints; empty if it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, *, seconds: float = 60) -> tuple[int, str, str]:
        """Wait until it ends; return its exit code, and what it still printed and complained of."""
        out, err = self._process.communicate(timeout=seconds)
        return self._process.returncode, out, err


def run(code: str, given: Mapping[str, Any], **variables: str) -> str:
    """Run a program to its end; return what it printed."""
    with Program(code, given, **variables) as program:
        status, out, err = program.end()
    assert status == 0, f"exit code {status}\n{out}\n{err}"
    return out
