"""Commands in extended filenames, such as ``"sox a.flac -t wav - |"`` and ``"| gzip -c > a.gz"``.

A command can do whatever this user can do, so none is run unless the caller says ``pipes="allow"``. Commands
that only copy or decompress files, such as ``gunzip -c data/utt1.wav.gz |``, are not run: the file is read
here.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, PipeFailed, PipeRefused
from seekable.formats.contract import Pipes
from seekable.formats.kaldi.files.local_files import decompressed, open_local, read_pieces

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from typing import IO

    from seekable.formats.kaldi.files.local_files import Coding
else:
    subprocess = lazy("subprocess")

__all__ = [
    "FileCommand",
    "Pipes",
    "RunningCommand",
    "checked_pipes",
    "content_of",
    "file_command",
    "pipes_inside",
    "refuse_unless_allowed",
]

_PIPES: Final = ("refuse", "specifier", "allow")

_READ_BYTES: Final = 64 << 10
"""The bytes that a pipe of Linux holds."""

# Quoted texts without substitutions, and characters that mean nothing to a shell.
_PLAIN: Final = re.compile(
    r"""(?: '[^'\0]*' | "[^"$`\\!\0]*" | [^'"$`\\!|&;<>()*?\[\]{}~#\r\n\0] )+""", re.VERBOSE
)

_PROGRAMS: Final[dict[str, tuple[Coding | None, str]]] = {
    "cat": (None, ""),
    "gunzip": ("gz", "c"),
    "gzip": ("gz", "cd"),
    "zcat": ("gz", ""),
    "bunzip2": ("bz2", "c"),
    "bzip2": ("bz2", "cd"),
    "bzcat": ("bz2", ""),
    "unxz": ("xz", "c"),
    "xz": ("xz", "cd"),
    "xzcat": ("xz", ""),
    "unzstd": ("zst", "c"),
    "zstd": ("zst", "cd"),
    "zstdcat": ("zst", ""),
}
"""The programs, each with its coding and the options without which it does something else."""

_OPTIONS: Final = {
    "--stdout": "c",
    "--to-stdout": "c",
    "--decompress": "d",
    "--uncompress": "d",
    "--keep": "k",
    "--quiet": "q",
}


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


@dataclass(frozen=True, slots=True)
class FileCommand:
    """A command that prints the content of files, one after the other."""

    coding: Coding | None
    """The compression; None for a command that prints the bytes as they are."""

    paths: tuple[str, ...]
    """The files, at least one."""


def file_command(command: str) -> FileCommand | None:
    """Return the files that a command prints, or None for a command that must be run to know its output.

    Args:
        command: a line of shell, without the ``|``.

    Example:
        >>> file_command("gunzip -c 'data/a b.gz'")
        FileCommand(coding='gz', paths=('data/a b.gz',))
        >>> file_command("gunzip -c $file"), file_command("gunzip a.gz"), file_command("cat")
        (None, None, None)
    """
    if not _PLAIN.fullmatch(command):
        return None
    try:
        program, *words = shlex.split(command)
    except ValueError:  # No words at all.
        return None
    known = _PROGRAMS.get(re.sub("^(/usr)?/bin/", "", program))
    letters, paths = _options(words)
    if known is None or not paths or "-" in paths or not set(known[1]) <= letters <= _allowed(known[0]):
        return None
    return FileCommand(known[0], tuple(paths))


def _options(words: list[str]) -> tuple[set[str], list[str]]:
    """Return the letters of the options among some words, and the paths; ``?`` for an unknown option."""
    letters: set[str] = set()
    for number, word in enumerate(words):
        if word == "--":
            return letters, [*(each for each in words[:number] if each[:1] != "-"), *words[number + 1 :]]
        if word.startswith("--"):
            letters.add(_OPTIONS.get(word, "?"))
        elif word.startswith("-"):
            letters.update(word[1:] or "?")  # A single "-" is standard input.
    return letters, [word for word in words if word[:1] != "-"]


def _allowed(coding: Coding | None) -> frozenset[str]:
    return frozenset() if coding is None else frozenset("cdkq")


def content_of(command: FileCommand, *, regular: bool = False) -> Iterator[bytes]:
    """Yield what a command would print, in pieces of any size.

    Args:
        command: the command.
        regular: True to refuse named pipes and devices.

    Raises:
        DataNotFound: a file does not exist.
        AccessDenied: this user may not read a file.
        UnsupportedFormat: a compressed file is empty, torn, damaged, or of another compression; a file is
            refused.
        MissingDependency: a file is compressed by zstd, and zstandard is not installed.
    """
    for path in command.paths:
        with open_local(path, regular=regular) as file:
            yield from (
                read_pieces(file) if command.coding is None else decompressed(file, command.coding, path)
            )
