"""Commands that write or read tables: ``"sox a.flac -t wav - |"`` and ``"| gzip -c > a.gz"``.

A command can do whatever this user can do, so none is run unless the caller says ``pipes="allow"``.
`seekable.formats.kaldi.files.file_commands` does without them what only copies or decompresses files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, PipeFailed, PipeRefused
from seekable.formats.contract import Pipes

if TYPE_CHECKING:
    import subprocess
    from typing import IO
else:
    subprocess = lazy("subprocess")

__all__ = ["Pipes", "RunningCommand", "checked_pipes", "pipes_inside", "refuse_unless_allowed"]

_PIPES: Final = ("refuse", "specifier", "allow")

_READ_BYTES: Final = 64 << 10
"""The bytes that a pipe of Linux holds."""


def checked_pipes(pipes: object) -> Pipes:
    """Return the argument ``pipes`` of a function.

    Raises:
        InvalidArgument: it is none of ``"refuse"``, ``"specifier"`` and ``"allow"``.

    Example:
        >>> checked_pipes("allow")
        'allow'
    """
    for each in _PIPES:
        if pipes == each:
            return each
    message = f"pipes must be 'refuse', 'specifier' or 'allow' (got {pipes!r})"
    raise InvalidArgument(message)


def pipes_inside(pipes: Pipes) -> Pipes:
    """Return the setting for the commands inside a file, of a caller that opened the file with ``pipes``.

    Example:
        >>> pipes_inside("specifier"), pipes_inside("allow")
        ('refuse', 'allow')
    """
    return "refuse" if pipes == "specifier" else pipes


def refuse_unless_allowed(name: str, pipes: Pipes) -> None:
    """Raise an error for a command, unless commands are allowed.

    Args:
        name: the extended filename that has the command.
        pipes: the argument of the caller.

    Raises:
        PipeRefused: commands are not allowed.

    Example:
        >>> refuse_unless_allowed("make data |", "refuse")
        Traceback (most recent call last):
        ...
        seekable.errors.PipeRefused: 'make data |' is a command, which is run only with pipes='allow': ...
    """
    if pipes == "refuse":
        message = (
            f"{name!r} is a command, which is run only with pipes='allow': a command can do whatever this "
            f"user can do. Allow pipes if you trust the author of this text; `cat FILE |` and commands that "
            f"only decompress files, such as `gunzip -c FILE |`, need no permission"
        )
        raise PipeRefused(message)


@final
class RunningCommand:
    r"""A command that ``/bin/sh`` runs, with a pipe from its output or to its input.

    It inherits the working folder, the environment, stderr, and the one of stdin and stdout that is not the
    pipe. It inherits no other open file. SIGPIPE ends it, as in a shell, once nobody reads its output.
    One thread at a time may use it.

    Example:
        >>> command = RunningCommand("echo good day; exit 3", pipe="output")
        >>> command.read()
        b'good day\n'
        >>> command.finish()
        3
    """

    def __init__(self, command: str, *, pipe: Literal["output", "input"]) -> None:
        """Start a command in a shell.

        Args:
            command: a line of shell.
            pipe: ``"output"`` to read what the command prints, ``"input"`` to write what the command reads.

        Raises:
            OSError: no process can be started.
        """
        self.command = command
        """The command, a line of shell."""
        self._lost = False
        ours, inherited = subprocess.PIPE, None
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            ["/bin/sh", "-c", command],
            bufsize=0,
            stdin=ours if pipe == "input" else inherited,
            stdout=ours if pipe == "output" else inherited,
        )
        stream = self._process.stdin if pipe == "input" else self._process.stdout
        assert stream is not None
        self._pipe: IO[bytes] = stream

    def read(self) -> bytes:
        """Return the next bytes of the output, as soon as there are any; no bytes at its end."""
        return self._pipe.read(_READ_BYTES)

    def write(self, data: memoryview) -> int:
        """Write bytes to the input, and return how many of them the pipe took.

        Raises:
            PipeFailed: the command does not read any more.
        """
        try:
            return self._pipe.write(data)
        except BrokenPipeError:
            self._lost = True
            raise PipeFailed(self.command, self._process.poll()) from None

    @property
    def lost(self) -> bool:
        """True if the command did not read everything that was written."""
        return self._lost

    def finish(self) -> int:
        """Close the pipe, wait until the command has ended, and return its exit code.

        The exit code is negative for the number of a signal. A command whose output was not read to the end
        usually ends by SIGPIPE.
        """
        self._pipe.close()
        return self._process.wait()
