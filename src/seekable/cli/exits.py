"""Exit codes, and the messages of errors on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer

from seekable._lazy import missing_part_named
from seekable.cli.option_names import in_options
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
            message = in_options(message, command, arguments)
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
    from seekable.viewer.facts.documents import document

    error = {"exit_code": int(code), "message": message, "type": kind, **details}
    typer.echo(document({"error": error}), err=True, nl=False)


def _details(error: Exception) -> dict[str, Any]:
    if not isinstance(error, CorruptRecord):
        return {}
    from seekable.viewer.facts.documents import json_safe

    where = {"path": json_safe(error.path), "row": error.row, "offset": error.offset, "length": error.length}
    return {"location": where}
