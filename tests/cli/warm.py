"""Commands and short programs in processes of their own: forks of an interpreter that has its modules.

A process that is started anew spends most of its time on imports. A fork has its own descriptors,
environment, working folder and session, and it ends as an interpreter ends: what is left in buffers is
written, and an error that nobody caught is printed. What is about the start itself takes a real process.
``test_exits.py`` compares both with the command in the process of the tests. Worker processes of the library
are such forks too (``tests/warm_workers.py``).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import io
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import typer
import typer.main

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import CodeType

SEEKABLE = str(Path(sys.executable).with_name("seekable"))
COMMAND = "import sys; from seekable.cli.main import main; sys.exit(main())"
"""What the file of the command does."""

ROOT = Path(__file__).parents[2]

MODULES = (
    *("seekable.cli.data_argument", "seekable.cli.data_argument", "seekable.cli.machine_checks"),
    *("seekable.cli.records", "seekable.dataset.verify_data", "seekable.viewer.facts.data_survey"),
    *("seekable.viewer.facts.pipelines", "seekable.stream.stream", "seekable.writing.write"),
    *("seekable.formats.lines.jsonl_writer", "rich.console", "rich.progress", "json", "tests.index.corpus"),
    *("seekable.loader.loader", "seekable.loader.worker", "seekable.dataset.dataset", "pyarrow.parquet"),
)
"""What most commands and workers import when they need it."""


_SERVER = """
import sys
from tests.cli.warm import end, serve
try:
    exec(serve(int(sys.argv[1])))
except SystemExit as exit:
    end(exit.code)
    raise
end(None)
"""


@dataclass(frozen=True, slots=True)
class Order:
    """What a fork runs: a command, or a program."""

    arguments: list[str]
    program: str | None
    cwd: str
    environment: dict[str, str]
    takes_terminal: bool
    kept: tuple[int, ...]
    """The numbers of the descriptors that it has beside the standard streams."""

    leads_group: bool
    blocked: tuple[int, ...]
    """The signals that it blocks from its first moment on."""


@dataclass(slots=True)
class Fork:
    """A process that is a child of the warm interpreter; used as a `subprocess.Popen`."""

    pid: int
    _ended: int
    """A descriptor that can be read once the process has ended."""

    returncode: int | None = None
    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the pipes, and wait."""
        for pipe in (self.stdout, self.stdin):
            if pipe is not None:
                pipe.close()
        self.wait()

    def poll(self) -> int | None:
        """Return the exit code; None while the process lives."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit code."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = _warm_interpreter().code_of(self.pid)
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)


class WarmInterpreter:
    """A process that has the modules, and forks on demand."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(theirs.fileno())],
                cwd=ROOT,
                # Threads do not survive a fork.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._owner = os.getpid()
        self._lock = threading.Lock()
        """Held from a request to its answer: tests start programs from several threads."""

    def start(self, order: Order, descriptors: list[int]) -> Fork:
        """Run an order with three descriptors as its standard streams."""
        with tempfile.TemporaryFile() as file:
            # An environment may be larger than a message.
            pickle.dump(order, file)
            file.flush()
            with self._lock, _uncollected():
                socket.send_fds(self._socket, [b"run"], [*descriptors, file.fileno()])
                message, fds, _, _ = socket.recv_fds(self._socket, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        (ended,) = fds
        return Fork(int(message), ended)

    def code_of(self, pid: int) -> int:
        """Return the exit code of a fork that has ended; below zero for a signal."""
        with self._lock, _uncollected():
            self._socket.send(b"%d" % pid)
            return int(self._socket.recv(1 << 16))

    def close(self) -> None:
        """End the interpreter; not in a fork of the process that started it."""
        if os.getpid() == self._owner:
            # Forks may hold the socket too: closing it alone would not end what is read from it.
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._process.wait()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector off: it may end workers of a lost loader, which asks the interpreter too."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


_STARTING = threading.Lock()


def _warm_interpreter() -> WarmInterpreter:
    """Return the interpreter that all tests of this process share."""
    with _STARTING:
        return _one_interpreter()


@functools.cache
def _one_interpreter() -> WarmInterpreter:
    interpreter = WarmInterpreter()
    atexit.register(interpreter.close)
    return interpreter


def start(  # noqa: PLR0913 - those of subprocess.Popen
    arguments: list[str],
    *,
    program: str | None = None,
    stdin: int,
    stdout: int,
    stderr: int,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    takes_terminal: bool = False,
    kept: Sequence[int] = (),
    leads_group: bool = False,
    blocked: Iterable[int] = (),
) -> Fork:
    """Start a command of `seekable`, or a program, in a fork.

    Args:
        arguments: what follows the name of the command, or of the program.
        program: Python code, as after ``python -c``; by default the command ``seekable`` runs.
        stdin: a descriptor for standard input.
        stdout: a descriptor for standard output.
        stderr: a descriptor for standard error.
        cwd: the working folder.
        environment: the variables.
        takes_terminal: whether the process begins a session, whose terminal is its standard input.
        kept: descriptors that the process has too, under the same numbers.
        leads_group: whether the process is in a group of its own.
        blocked: signals that it blocks.
    """
    variables = dict(os.environ if environment is None else environment)
    order = Order(
        *(arguments, program, str(cwd or Path.cwd()), variables, takes_terminal),
        *(tuple(kept), leads_group, tuple(map(int, blocked))),
    )
    return _warm_interpreter().start(order, [stdin, stdout, stderr, *kept])


def start_piped(program: str, *, stdin: int, stdout: int | None, **given: Any) -> Fork:
    """Start a program in a fork as `subprocess.Popen` does, with pipes to it and from it.

    Args:
        program: Python code, as after ``python -c``.
        stdin: `subprocess.PIPE` or `subprocess.DEVNULL`.
        stdout: `subprocess.PIPE`, or None for the standard output of this process.
        given: other arguments of `start`.
    """
    theirs, ours = os.pipe() if stdin == subprocess.PIPE else (os.open(os.devnull, os.O_RDONLY), None)
    answers, out = os.pipe() if stdout == subprocess.PIPE else (None, os.dup(1))
    try:
        fork = start([], program=program, stdin=theirs, stdout=out, stderr=2, **given)
    finally:
        os.close(theirs)
        os.close(out)
    fork.stdin = None if ours is None else os.fdopen(ours, "wb")
    fork.stdout = None if answers is None else os.fdopen(answers, "rb")
    return fork


def run(
    arguments: list[str],
    *,
    program: str | None = None,
    data: bytes = b"",
    stdout: int | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command or a program to its end; return what it printed, unless it goes to a descriptor."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(data)
        given.seek(0)
        fork = start(
            arguments,
            program=program,
            stdin=given.fileno(),
            stdout=out.fileno() if stdout is None else stdout,
            stderr=errors.fileno(),
            cwd=cwd,
            environment=environment,
        )
        try:
            code = fork.wait(timeout)
        finally:
            fork.kill()
        return subprocess.CompletedProcess(arguments, code, _content(out), _content(errors))


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def serve(descriptor: int) -> CodeType:
    """Fork as orders say, until the other end is closed; return in each fork what it is to execute."""
    orders = socket.socket(fileno=descriptor)
    for name in MODULES:
        with contextlib.suppress(ImportError):  # of pyarrow, where the core is tested alone
            importlib.import_module(name)
    _build_commands()
    gc.collect()
    gc.freeze()
    while True:
        message, fds, _, _ = socket.recv_fds(orders, 1 << 16, 16)
        if not message:
            os._exit(0)
        if message != b"run":
            orders.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(int(message), 0)[1]))
            continue
        with open(fds.pop(), "rb") as file:
            file.seek(0)
            order: Order = pickle.load(file)
        signal.pthread_sigmask(signal.SIG_BLOCK, order.blocked)
        child = os.fork()
        if not child:
            orders.detach()
            return _become(order, fds)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, order.blocked)
        for fd in fds:
            os.close(fd)
        ended = os.pidfd_open(child)
        socket.send_fds(orders, [b"%d" % child], [ended])
        os.close(ended)


def _build_commands() -> None:
    """Build the commands once: that takes as long as most of them run."""
    from seekable.cli.main import app

    build = typer.main.get_command
    commands = build(app)

    def built(typer_instance: typer.Typer) -> Any:
        return commands if typer_instance is app else build(typer_instance)

    typer.main.get_command = built


def _become(order: Order, descriptors: list[int]) -> CodeType:
    """Take what a process that was started anew has, and return what it executes."""
    if order.takes_terminal:
        os.setsid()
        fcntl.ioctl(descriptors[0], termios.TIOCSCTTY, 0)
    if order.leads_group:
        os.setpgid(0, 0)
    targets = (0, 1, 2, *order.kept)
    # Above all of both, so that none is closed before it has its place.
    above = max(*descriptors, *targets) + 1
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, above) for fd in descriptors]
    os.closerange(3, above)
    for target, fd in zip(targets, moved, strict=True):
        os.dup2(fd, target)
    os.closerange(above, above + (1 << 10))
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")  # noqa: SIM115 - stays open
    sys.stdout, sys.stderr = (_text_stream(number) for number in (1, 2))
    sys.argv = ["-c" if order.program else SEEKABLE, *order.arguments]
    sys.path[0] = "" if order.program else str(Path(SEEKABLE).parent)
    return compile(order.program or COMMAND, "<string>", "exec")


def end(code: object) -> None:
    """End a fork that has done its work, as an interpreter ends, but for taking all modules apart.

    That takes five times as long as the work of most. An interpreter ends the rest: an exit that is told by a
    text, and buffers that nobody reads any more.
    """
    if code is None or isinstance(code, int):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit((code or 0) & 0xFF)


def _text_stream(number: int) -> io.TextIOWrapper:
    """Return what an interpreter makes of a standard stream for output."""
    return io.TextIOWrapper(
        open(number, "wb", closefd=False),
        encoding="utf-8",
        errors="strict" if number == 1 else "backslashreplace",
        line_buffering=number == 2 or os.isatty(number),
    )
