"""Work that is killed at a file operation or at any moment, in a fork of a process that has its modules."""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import cloudpickle
from tests.cli import warm

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from _typeshed import FileDescriptorLike

    Work = Callable[..., Any]

ROOT = Path(__file__).parents[1]
KILLED = -signal.SIGKILL

EVENTS = frozenset(
    {"open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir", "os.utime"}
)
"""The audit events of what is done to files. fsync has none, and is counted too."""


class Killer:
    """Runs work under a folder, and kills it at an operation on files in that folder, or at any moment."""

    def __enter__(self) -> Self:
        self._server = warm.start_piped(
            "from tests.killing import serve; serve()",
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *error: object) -> None:
        with self._server:
            self._stdin.close()

    def operations(self, folder: Path, work: Work, *arguments: Any) -> list[str]:
        """Let the work end; return the kinds of its operations, in their order."""
        code, kinds = self._ask(folder, 0, None, work, arguments)
        assert code == 0
        return kinds

    def kill_at(
        self, operation: int, folder: Path, work: Work, *arguments: Any, kind: str | None = None
    ) -> int:
        """Kill the work before an operation; return its exit code, 0 if it has fewer operations.

        Operations are counted from 1, those of one kind alone if a kind is given.
        """
        code, _ = self._ask(folder, operation, kind, work, arguments)
        assert code in (0, KILLED)
        return code

    def run(self, work: Work, *arguments: Any) -> int:
        """Let the work end in a fork; return its exit code."""
        self._send("", 0, None, work, arguments)
        code: int = self._send()
        return code

    def kill_after(self, notes: int, fifo: Path, work: Work, *arguments: Any) -> int:
        """Kill the work once a number of bytes has come through a FIFO; return its exit code.

        What is in the FIFO already does not count. The code is 0 if the work ended before.
        """
        reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)  # A reader that is a writer too sees no end.
        with suppress(BlockingIOError):
            while os.read(reader, 1 << 16):
                pass
        child = self._send("", 0, None, work, arguments)
        ended = os.pidfd_open(child)
        poll = select.poll()
        for descriptor in (reader, ended):
            poll.register(descriptor, select.POLLIN)
        while notes > 0 and (reader, select.POLLIN) in poll.poll():
            notes -= len(os.read(reader, notes))
        # The server does not wait for the process before it is asked to: the number is still its own.
        os.kill(child, signal.SIGKILL)
        os.close(ended)
        os.close(reader)
        code: int = self._send()
        assert code in (0, KILLED)
        return code

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._server.stdin is not None
        return self._server.stdin

    def _ask(self, folder: Path, *order: Any) -> tuple[int, list[str]]:
        answer: tuple[int, list[str]] = self._send(str(folder), *order)
        return answer

    def _send(self, *order: Any) -> Any:
        cloudpickle.dump(order, self._stdin)
        self._stdin.flush()
        assert self._server.stdout is not None
        return pickle.load(self._server.stdout)


_PATIENCE_SECONDS = 100
"""Work that takes longer hangs: its stack is printed, and it exits with 1."""


def one_of_each_kind(kinds: list[str]) -> list[tuple[str, int]]:
    """Return each kind of operation, and the number of the middle one of that kind, from 1."""
    return [(kind, (count + 1) // 2) for kind, count in Counter(kinds).items()]


def serve() -> None:
    """Run work in forks, as standard input says, until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def answer(given: object) -> None:
        pickle.dump(given, answers)
        answers.flush()

    while True:
        try:
            folder, operation, kind, work, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _run(folder, operation, kind, work, arguments, writer)
        os.close(writer)
        if not folder:
            answer(child)
            pickle.load(sys.stdin.buffer)
        with os.fdopen(reader, "rb") as noted:
            kinds, imported = _read_notes(noted.read().decode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answer((code, kinds) if folder else code)
        if imported:
            _import(imported)


_IMPORTED = "imported:"


def _read_notes(text: str) -> tuple[list[str], list[str]]:
    """Return the kinds of operations that a fork noted, and the modules that it imported."""
    notes = text.split()
    imported = [note.removeprefix(_IMPORTED) for note in notes if note.startswith(_IMPORTED)]
    return [note for note in notes if not note.startswith(_IMPORTED)], imported


def _import(names: list[str]) -> None:
    """Import what a fork imported late, so that the next forks need not: it takes longer than their work."""
    for name in names:
        with suppress(ImportError):  # Some packages put modules into sys.modules that cannot be imported.
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _run(folder: str, operation: int, kind: str | None, work: Work, arguments: Any, noted: int) -> None:
    left, sync, before = operation, os.fsync, set(sys.modules)

    def note_imports() -> None:
        names = [name for name in list(sys.modules) if name not in before]
        os.write(noted, "".join(f"{_IMPORTED}{name}\n" for name in names).encode())

    def count(name: str, path: object) -> None:
        nonlocal left
        if folder and isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(folder):
            os.write(noted, f"{name}\n".encode())
            left -= kind in (None, name)
            if left == 0 and operation and kind in (None, name):
                note_imports()
                os.kill(os.getpid(), signal.SIGKILL)

    def fsync(fd: FileDescriptorLike) -> None:
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        count("os.fsync", os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def heard(event: str, given: tuple[Any, ...]) -> None:
        if event in EVENTS and given:
            count(event, given[0])

    code = 1
    try:
        faulthandler.dump_traceback_later(_PATIENCE_SECONDS, exit=True)
        os.fsync = fsync
        sys.addaudithook(heard)
        work(*arguments)
        note_imports()
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on as the process that it was forked from
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
