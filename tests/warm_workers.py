"""The worker processes of loaders as forks of a warm interpreter: a plugin of pytest.

A worker is a new interpreter, which takes a fifth of a second to import what it runs; tests start hundreds.
Here it is a fork of one process that has imported that (``tests/cli/warm.py``), with the same descriptors,
environment, signals and way to end. Tests of the start itself ask for ``new_interpreters``, which are real.
Programs that tests start have real workers too, and so has what takes ``jobs=``.

A test that asks for ``forked_programs`` has its own programs (``python -c``) as forks too: it needs a process
that knows nothing of this one, and not that it starts anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seekable.loader import worker_pool
from seekable.parallel import processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.cli.warm import Fork

_start_anew = processes.start_interpreter
_PROCESS = os.getpid()
_USERS = (processes, worker_pool)
"""The modules that start workers by a name of their own."""

_WORKERS = {"seekable.loader.worker"}
"""The programs that are forks; workers of jobs, and the helper of a fork, start as they are."""


def start_fork(
    module: str, *numbers: int, stdin: int, stdout: int | None = None, pass_fds: Sequence[int] = ()
) -> Fork | subprocess.Popen[bytes]:
    """Do what `seekable.parallel.processes.start_interpreter` does, in a fork of the warm interpreter."""
    if os.getpid() != _PROCESS or module not in _WORKERS:
        return _start_anew(module, *numbers, stdin=stdin, stdout=stdout, pass_fds=pass_fds)
    from tests.cli import warm

    program = f"import sys\nsys.path[:] = {sys.path!r}\nfrom {module} import serve\nserve(*{numbers!r})\n"
    return warm.start_piped(
        program,
        stdin=stdin,
        stdout=stdout,
        environment=processes._ONE_THREAD | os.environ,
        kept=pass_fds,
        leads_group=True,
        blocked=processes._OF_JOBS,
    )


def pytest_configure() -> None:
    """Start workers as forks."""
    for module in _USERS:
        setattr(module, "start_interpreter", start_fork)  # noqa: B010 - it is theirs


def pytest_unconfigure() -> None:
    """Start them as they are."""
    for module in _USERS:
        setattr(module, "start_interpreter", _start_anew)  # noqa: B010


@pytest.fixture
def new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the workers of a test as users have them: each as a new interpreter."""
    for module in _USERS:
        monkeypatch.setattr(module, "start_interpreter", _start_anew)


@pytest.fixture
def forked_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the programs of a test, ``subprocess.run([sys.executable, "-c", ...])``, in forks."""
    monkeypatch.setattr(subprocess, "run", run_fork)


_run_anew = subprocess.run


def run_fork(  # noqa: PLR0913 - those of subprocess.run
    command: str | Sequence[str | os.PathLike[str]],
    *,
    input: bytes | str | None = None,  # noqa: A002 - its name there
    capture_output: bool = False,
    text: bool = False,
    check: bool = False,
    timeout: float | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    **others: Any,
) -> subprocess.CompletedProcess[Any]:
    """Do what `subprocess.run` does, in a fork if it is a program of this interpreter."""
    from tests.cli import warm

    words = [] if isinstance(command, str) else [os.fspath(word) for word in command]
    given: dict[str, Any] = {"capture_output": capture_output, "text": text, "check": check}
    if words[:2] != [sys.executable, "-c"] or others:
        return _run_anew(command, input=input, timeout=timeout, cwd=cwd, env=env, **given, **others)
    done: subprocess.CompletedProcess[Any] = warm.run(
        words[3:],
        program=words[2],
        data=input.encode() if isinstance(input, str) else input or b"",
        cwd=None if cwd is None else Path(cwd),
        environment=env,
        timeout=600 if timeout is None else timeout,
    )
    if not capture_output:
        sys.stderr.write(done.stderr.decode(errors="replace"))
    if text:
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    if check:
        done.check_returncode()
    return done
