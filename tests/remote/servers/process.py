"""Servers in processes of their own: started, waited for, and stopped with all that they started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE_SECONDS = 30


def python(program: str, *arguments: str) -> list[str]:
    """Return the command of a program that needs the standard library alone."""
    return [sys.executable, "-I", "-S", program, *arguments]


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass(slots=True)
class ServerProcess:
    """A server on 127.0.0.1: in a process group of its own, without standard input."""

    process: subprocess.Popen[bytes]
    output: str
    """The file of all that it prints."""
    port: int = 0

    @classmethod
    def start(cls, command: Sequence[str]) -> Self:
        """Start a server that chooses its port and prints it."""
        server = cls(*_popen(command, {}))
        server.port = int(server._wait_for(server._printed, "print its port"))
        return server

    @classmethod
    def start_on_free_port(
        cls, command: Callable[[int], Sequence[str]], *, variables: Mapping[str, str] | None = None
    ) -> Self:
        """Start a server that is given its port, and wait until it accepts connections.

        Another process may take the port in between: then it is tried with another one.
        """
        for is_last in (False, False, True):
            port = free_port()
            try:
                return cls.start_on(port, command(port), variables=variables)
            except RuntimeError:
                if is_last:
                    raise
        raise AssertionError

    @classmethod
    def start_on(
        cls, port: int, command: Sequence[str], *, variables: Mapping[str, str] | None = None
    ) -> Self:
        """Start a server, and wait until it accepts connections on a port.

        Raises:
            RuntimeError: it has ended, or accepts none.
        """
        server = cls(*_popen(command, variables or {}), port)
        server._wait_for(server._accepts, f"listen on port {port}")
        return server

    def stop(self) -> None:
        """End the server and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        with suppress(FileNotFoundError):
            os.remove(self.output)

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def _printed(self) -> str:
        with open(self.output, encoding="utf-8", errors="replace") as file:
            text = file.read()
        return text.strip() if text.endswith("\n") else ""

    def _accepts(self) -> str:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return "yes"
        return ""

    def _wait_for(self, found: Callable[[], str], what: str) -> str:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (answer := found()):
            if self.process.poll() is not None or time.monotonic() > end:
                printed = self._printed()
                self.stop()
                raise RuntimeError(f"{self.process.args!r} did not {what}; it printed: {printed}")
            time.sleep(0.005)
        return answer


def _popen(command: Sequence[str], variables: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    # Where the test process is killed, nobody else ends the server.
    with_death = [setpriv, "--pdeathsig", "TERM"] if (setpriv := shutil.which("setpriv")) else []
    descriptor, output = tempfile.mkstemp(prefix="seekable-server-")
    with os.fdopen(descriptor, "wb") as file:
        process = subprocess.Popen(
            [*with_death, *command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **variables},
        )
    return process, output
