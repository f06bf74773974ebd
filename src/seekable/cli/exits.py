"""Exit codes, and the messages of errors on stderr, in words of the command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer

from seekable._lazy import missing_part_named
from seekable.errors import (
    CorruptRecord,
    DataNotFound,
    InvalidArgument,
    OutOfRange,
    SeekableError,
    StateMismatch,
)


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    MISMATCH = 3
    NOT_FOUND = 4
    INTERRUPTED = 130


EXIT_CODES = """\
0    ok
1    failure
2    wrong usage
3    mismatch: data, or a state, is not what was expected
4    not found: no such file, or no such row
130  interrupted
"""
"""The table that --help shows."""

_INDEXING = frozenset({"index", "info", "get", "head", "sample", "pack", "plot"})

_OPTION_CLASS = re.compile(r"^sk\.(?:formats\.)?[A-Z]\w+: ")
"""The name of a class before errors about its fields, which are options of a command."""

_CODES: dict[type[Exception], ExitCode] = {
    DataNotFound: ExitCode.NOT_FOUND,
    OutOfRange: ExitCode.NOT_FOUND,
    InvalidArgument: ExitCode.USAGE,
    StateMismatch: ExitCode.MISMATCH,
}


@contextmanager
def errors_told(arguments: Sequence[str], command: Any) -> Iterator[None]:
    """Turn errors that a user can act on into a message and an exit code.

    These are errors of seekable and of the operating system, an interrupt, and a closed stdout. All others
    are bugs, and keep their traceback.

    Args:
        arguments: the command line after ``seekable``; with ``--json`` the message is a JSON document.
        command: the command with its subcommands, as typer makes it.
    """
    try:
        with missing_part_named():
            yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(ExitCode.OK) from None
    except KeyboardInterrupt:
        _flush_or_drop_output()
        _tell(arguments, "Interrupted", _interrupted(arguments), ExitCode.INTERRUPTED)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except (SeekableError, OSError) as error:
        _flush_or_drop_output()
        code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), ExitCode.FAILURE)
        message = _with_notes(error)
        if not isinstance(error, CorruptRecord):  # Its message has a part of the data.
            message = in_options(_OPTION_CLASS.sub("", message), command, arguments)
        _tell(arguments, type(error).__name__, message, code, **_details(error))
        raise typer.Exit(code) from None


def tell_wrong_usage(arguments: Sequence[str], error: Exception) -> int:
    """Print what is wrong with the arguments, and return the exit code.

    Args:
        arguments: the command line after ``seekable``.
        error: the error that typer raised for it; recognised by its methods, because the module of its class
            depends on the version of typer.

    Raises:
        Exception: the error, if typer did not raise it for wrong usage.
    """
    if not (hasattr(error, "show") and hasattr(error, "format_message") and hasattr(error, "exit_code")):
        raise error
    if wants_json(arguments):
        _tell(arguments, "UsageError", error.format_message(), error.exit_code)
    else:
        error.show()
    return int(error.exit_code)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return True if errors are to be printed as JSON, also for arguments that cannot be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _interrupted(arguments: Sequence[str]) -> str:
    if arguments[:1] and arguments[0] in _INDEXING:
        return "interrupted; what was indexed so far is kept, and the same command goes on from there"
    if arguments[:1] == ["export"]:
        return "interrupted; the files that are written are kept, and the same command goes on from there"
    return "interrupted"


def _with_notes(error: Exception) -> str:
    """Return the message and the notes of an error, without the traceback of a worker process."""
    message = error.told if isinstance(error, CorruptRecord) else str(error)
    return "; ".join([message, *(note for note in getattr(error, "__notes__", ()) if "\n" not in note)])


def _flush_or_drop_output() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    # Python flushes stdout once more at its end; data that cannot be written goes to /dev/null.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(arguments: Sequence[str], kind: str, message: str, code: int, **details: Any) -> None:
    if not wants_json(arguments):
        from seekable.cli.output import tell

        tell(message)
        return
    from seekable.viewer.facts.json_documents import document

    error = {"exit_code": int(code), "message": message, "type": kind, **details}
    typer.echo(document({"error": error}), err=True, nl=False)


def _details(error: Exception) -> dict[str, Any]:
    if not isinstance(error, CorruptRecord):
        return {}
    from seekable.viewer.facts.json_documents import json_safe

    where = {"path": json_safe(error.path), "row": error.row, "offset": error.offset, "length": error.length}
    return {"location": where}


_VALUE = re.compile(r"format=\w+\(\.\.\.\)")
"""The value of a format, which the options of the command make that only one format knows."""
_OF_FORMATS = frozenset({"--bos", "--dtype", "--eos", "--holder", "--partitions"})

_CALL = re.compile(r"(?:\w+=)?sk\.(?:open|Index|Storage|formats\.\w+)\((?:\.\.\., )?((\w+)=[^()]*)\)")
"""A call whose argument may be an option."""

_ARGUMENT = re.compile(r"(?<![\w.=-])([a-z]\w*)=(True|False|'[^']*'|\"[^\"]*\"|\d+|\.\.\.)?(?=[\s,.;:)]|$)")
_OF_STORES = re.compile(r"(?:storage_)?options=\{'(\w+)': ([^{}]+)\}")
_HOLDER = re.compile(r"format=sk\.formats\.Kaldi\([^()]*\), or (?=format=')")
_OR_FORMAT = re.compile(r", or format='[^']*'")
"""Two ways to say one thing, of which a command has one."""
_OTHER_NAMES = {"folder": "index_dir"}
"""What an option is called, by the name of the argument."""


def in_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """Return a message of the library, with options in place of Python's arguments.

    Args:
        message: the message.
        command: the command with all its subcommands, as typer makes it.
        arguments: the command line after ``seekable``, which says which of them runs.
    """
    options = _options(command, arguments)

    def told(found: re.Match[str]) -> str:
        names = options.get(found[1], {})
        if found[2] in {None, "True", "False"}:
            return names.get(found[2] != "False", found[0])
        value = "VALUE" if found[2] == "..." else found[2].strip("'\"")
        return f"{names[True]} {value}" if True in names else found[0]

    def unwrapped(found: re.Match[str]) -> str:
        name = _OTHER_NAMES.get(found[2], found[2])
        return found[1].replace(found[2], name, 1) if name in options else found[0]

    if "holder" not in options:
        message = _HOLDER.sub("", message)
    elif "format" not in options:
        message = _OR_FORMAT.sub("", message)
    if "storage_option" in options:
        message = _OF_STORES.sub(r"--storage-option \1=\2", message)
    given = [name for argument in arguments if (name := argument.partition("=")[0]) in _OF_FORMATS]
    message = _VALUE.sub(" and ".join(given), message) if given else message
    return _ARGUMENT.sub(told, _CALL.sub(unwrapped, message))


def _options(command: Any, arguments: Sequence[str]) -> dict[str, dict[bool, str]]:
    """Return the options of the command that runs, by the name of the argument, and by True or False."""
    for argument in arguments:
        if hasattr(command, "get_command"):
            command = command.get_command(None, argument) or command
    found: dict[str, dict[bool, str]] = {}
    for parameter in command.params:
        for is_true, names in ((True, parameter.opts), (False, parameter.secondary_opts)):
            for name in names:
                if name.startswith("--"):
                    bare = name.removeprefix("--")
                    found.setdefault(bare.removeprefix("no-").replace("-", "_"), {})[
                        is_true is not bare.startswith("no-")
                    ] = name
    return found
