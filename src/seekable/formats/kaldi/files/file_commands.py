"""Commands that only copy or decompress files, done here without a shell and without running them.

Scripts of Kaldi are full of lines like ``utt1 gunzip -c data/utt1.wav.gz |``. Such a line names a file and
the way to read it, and is read like any other file.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seekable.formats.kaldi.files.local_files import decompressed, open_local, read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.kaldi.files.local_files import Coding

__all__ = ["FileCommand", "content_of", "file_command"]

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
