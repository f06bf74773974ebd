"""Running the command line: in this process, in a process of its own, or in a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
import typer.main
from tests.cli import warm
from tests.cli.warm import SEEKABLE
from tests.index.corpus import age

from seekable.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UNWANTED = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "SEEKABLE_INDEX_DIR"}
"""Variables that change how commands behave."""

built_command = functools.cache(typer.main.get_command)
"""Builds the commands once: that takes as long as most of them run."""

AT_ONCE = {"SEEKABLE_BAR_AFTER_SECONDS": "0"}
"""Makes a bar appear at the first call of a progress hook, in place of a second later."""


def run(
    *arguments: str | Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process: what a process of its own prints and exits with, without its start."""
    given = [*map(str, arguments)]
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        stdout, stderr = (io.TextIOWrapper(file, encoding="utf-8", write_through=True) for file in (out, err))
        patch.setattr(sys, "argv", ["seekable", *given])
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", stderr)
        for name in UNWANTED:
            patch.delenv(name, raising=False)
        for name, value in (more or {}).items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(typer.main, "get_command", built_command)
        _filter_warnings_as_python_does()
        before = {*sys.modules}
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            _forget_modules({*sys.modules} - before, of=cwd)
        stdout.flush()
        return subprocess.CompletedProcess(given, int(ended.value.code or 0), _content(out), _content(err))


def _forget_modules(names: set[str], *, of: Path | None) -> None:
    """Let the next command import the programs of a folder anew, as a process of its own does."""
    for name in names:
        path = getattr(sys.modules[name], "__file__", None)
        if of is not None and path is not None and Path(path).is_relative_to(of):
            del sys.modules[name]


def _filter_warnings_as_python_does() -> None:
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def run_fork(
    *arguments: str | Path,
    program: str | None = None,
    cwd: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command, or a program, in a process of its own that has the modules from its start."""
    given = [*map(str, arguments)]
    return warm.run(given, program=program, cwd=cwd, environment=environment(more))


def run_process(
    *arguments: str | Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process that is started anew, in pipes."""
    command = [SEEKABLE, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment(more), capture_output=True, check=False)


def output(*arguments: str | Path, cwd: Path | None = None) -> bytes:
    """Return what a command prints that ends well and says nothing beside its data."""
    done = run(*arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def documents(*arguments: str | Path, cwd: Path | None = None) -> list[Any]:
    """Return the JSON documents that a command prints."""
    return [json.loads(line) for line in output(*arguments, "--json", cwd=cwd).splitlines()]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment, without what would change how commands behave."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "TERM": "xterm", **(more or {})}


@dataclass(frozen=True, slots=True)
class InTerminal:
    """A process whose stdout and stderr are a terminal."""

    process: subprocess.Popen[bytes] | warm.Fork
    screen: int
    """What reads from the terminal what the process writes."""

    def read_until(self, wanted: bytes) -> bytes:
        """Return what is written up to something that must come; a regular expression."""
        seen = b""
        while not re.search(wanted, seen):
            some = self._read()
            assert some, seen
            seen += some
        return seen

    def finish(self) -> tuple[int, bytes]:
        """Return the exit code, and all that is yet to be read."""
        seen = b""
        while some := self._read():
            seen += some
        return self.process.wait(), seen

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self.screen, b"\x03")

    def children(self) -> list[int]:
        """Return the processes that the process has started and not yet ended."""
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It ended meanwhile.
                state, parent = status.read_text().rpartition(")")[2].split()[:2]
                if int(parent) == self.process.pid and state != "Z":
                    found.append(int(status.parent.name))
        return found

    def _read(self) -> bytes:
        with contextlib.suppress(OSError):  # EIO, when nobody has the other end open any more.
            return os.read(self.screen, 65536)
        return b""


def _take_terminal() -> None:
    """Make standard input the terminal that interrupts come from, and hear them.

    Tests that run in the background of a shell have inherited that they are ignored.
    """
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def in_terminal(
    *arguments: str | Path,
    program: str | None = None,
    columns: int = 100,
    more: Mapping[str, str] | None = None,
    anew: bool = False,
) -> Iterator[InTerminal]:
    """Run a command, or a program, in a terminal that is its own; ``anew``: not as a fork."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = [*map(str, arguments)]
    process: subprocess.Popen[bytes] | warm.Fork
    try:
        if anew:
            process = subprocess.Popen(
                [SEEKABLE, *given],
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                env=environment(more),
                start_new_session=True,
                preexec_fn=_take_terminal,  # noqa: PLW1509 - calls of the system, and no lock
            )
        else:
            process = warm.start(
                given,
                program=program,
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                environment=environment(more),
                takes_terminal=True,
            )
    finally:
        os.close(terminal)
    try:
        yield InTerminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder of shards, and the lines in them."""

    folder: Path
    lines: list[bytes]


def write_corpus(folder: Path, *, files: int = 3, rows: int = 40) -> Corpus:
    """Write some shards of JSON lines that look old."""
    folder.mkdir()
    lines = []
    for shard in range(files):
        some = [f'{{"id": {shard * rows + row}, "text": "{"é" * row}"}}'.encode() for row in range(rows)]
        path = folder / f"shard-{shard}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in some))
        age(path)
        lines += some
    return Corpus(folder, lines)
