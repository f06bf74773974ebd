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

_INDEXING = frozenset({"index", "info", "get", "head", "sample", "plot"})

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
    if hint := other_word(getattr(error, "option_name", "")):
        error.message = f"{error.format_message().rstrip('.')}. {hint}"  # type: ignore[attr-defined]  # of typer's errors
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


_INSTEAD = {
    "--allow": "--index allow=FOLDER",
    "--block-rows": "Dataset.shuffle(block_rows=) in Python",
    "--energon": "--for energon",
    "--index-dir": "--index folder=FOLDER",
    "--latency": "--network latency=SECONDS",
    "--lhotse": "--for lhotse",
    "--link": "--network link=BYTES",
    "--most-bytes": "--index most_bytes=BYTES",
    "--no-progress": "--quiet",
    "--no-refresh": "--storage refresh=false",
    "--no-scan": "--sample 0",
    "--num-workers": "--jobs N",
    "--pack": "--sample N",
    "--storage-option": "--storage NAME=VALUE",
    "--token": "SEEKABLE_VIEW_TOKEN=TEXT before the command: no other user sees it there",
    "--workers": "--jobs N",
}
"""What says the same as an option that people type, and that no command has."""

_OF_FORMATS = ("bos", "delimiter", "dtype", "encoding", "eos", "holder", "partitions", "quote")
INSTEAD_OF_COMMANDS = {
    "stats": "`seekable info PATH` counts records and bytes, `seekable plot lengths PATH` draws lengths",
    "cat": "`seekable head PATH -n N` prints records, `seekable export PATH NEW.jsonl` writes all of them",
    "convert": "`seekable export PATH NEW.parquet` writes Parquet, JSON lines or tar",
    "pack": "`seekable info PATH --length N` says what packing gives, `seekable get PATH ROW --sample N` "
    "prints a sample",
    "kaldi index": "`seekable index ark:FILE` indexes tables too, with --set holder=NAME where the type of "
    "the objects is not told by the first of them",
}
"""What does the same as a command that people type, and that is not there."""


def other_word(option: str | None) -> str:
    """Return what to write in place of an option that a command does not have; empty if nothing is known.

    Example:
        >>> other_word("--no-progress"), other_word("--dtype"), other_word("--xyz")
        ('Write --quiet.', 'Write --set dtype=VALUE.', '')
    """
    name = (option or "").removeprefix("--").replace("-", "_")
    found = f"--set {name}=VALUE" if name in _OF_FORMATS else _INSTEAD.get(option or "")
    return f"Write {found}." if found else ""


_VALUES = re.compile(r"(?:\w+=)?\b(?:sk\.)?(?:Index|Storage|formats\.\w+)\((?:\.\.\., )?([^()]*)\)")
"""A value of ``sk.open``, whose fields may be options."""

_CALL = re.compile(r"sk\.open\(\.\.\., (-[^()]*|\w+=[^()=]*)\)")
"""A call with one argument, or with what took its place."""

_GIVEN = re.compile(r"format=\w+\(\.\.\.\)")
"""The value of a format that ``--set`` made."""

_PAIR = r"([a-z]\w*)=(True|False|'[^']*'|\"[^\"]*\"|\d+|\.\.\.)?"
_ONLY_PAIRS = re.compile(rf"{_PAIR}(?:, {_PAIR})*")
_ARGUMENT = re.compile(rf"(?<!--index )(?<!--set )(?<!--storage )(?<![\w.='-]){_PAIR}(?=[\s,.;:)`]|$)")
_OF_STORES = re.compile(
    r"storage=sk\.Storage\(options=\{'(\w+)': ([^{}]+|\{[^{}]*\})\}\)"
    r"(?: \(in sk\.kaldi storage_options=.*?\}\))?"
)
_PLAIN = re.compile(r"[\w./:-]*")
"""A value that needs no quotes in a shell."""

_KEPT = re.compile(r"((?:\w+=)?sk\.(?:Index|Storage|formats\.\w+)\([^()]*\))")
"""A value of ``sk.open`` that no options say."""

_HOLDER = re.compile(r"format=sk\.formats\.Kaldi\([^()]*\), or (?=format=')")
_OR_FORMAT = re.compile(r"(?<=\)), or format='[^']*'")
"""Two ways to say one thing, of which a command has one."""

_FIELDS = {
    "index": {"folder": "folder", "index_dir": "folder", "allow": "allow", "most_bytes": "most_bytes"}
    | {"sampled": "sampled"},
    "storage": {name: name for name in ("cache", "max_open_files", "pin", "refresh")},
    "set": {name: name for name in (*_OF_FORMATS, "concatenated", "group", "missing", "pairs", "splitname")},
}
"""By option, the arguments of Python that its values name."""


def in_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """Return a message of the library, with options in place of Python's arguments.

    ``name=`` is ``--name`` where the command that runs has that option. What it says by a pair, as
    ``--index folder=``, is told by that pair. All else stays as it is.

    Args:
        message: the message.
        command: the command with all its subcommands, as typer makes it.
        arguments: the command line after ``seekable``, which says which of them runs.
    """
    options = _options(command, arguments)

    def told(name: str, value: str | None) -> str | None:
        names = options.get(name, {})
        if value in {None, "True", "False"} and (option := names.get(value != "False")):
            return option
        if True in names and value not in {None, "True", "False"}:
            return f"{names[True]} {_bare(value)}"
        found = ((by, fields[name]) for by, fields in _FIELDS.items() if by in options and name in fields)
        by, field = next(found, ("", ""))
        said = "" if value is None else value.lower() if value in {"True", "False"} else _bare(value)
        pair = f"{field}={said}" if _PLAIN.fullmatch(said) else f"'{field}={said}'"
        return f"--{by} {pair}" if by else None

    def unwrapped(found: re.Match[str]) -> str:
        pairs = re.findall(_PAIR, found[1]) if _ONLY_PAIRS.fullmatch(found[1]) else []
        texts = [told(name, value or None) for name, value in pairs]
        return " ".join(filter(None, texts)) if texts and all(texts) else found[0]

    if "holder" not in options and "format" in options:
        message = _HOLDER.sub("", message)
    elif "format" not in options:
        message = _OR_FORMAT.sub("", message)
    if "storage" in options:
        message = _OF_STORES.sub(r"--storage \1=\2", message)
    given = [f"--set {pair}" for pair in _values_of("--set", arguments)]
    message = _GIVEN.sub(" and ".join(given), message) if given else message
    message = _CALL.sub(r"\1", _VALUES.sub(unwrapped, message))
    parts = _KEPT.split(message)
    parts[::2] = [
        _ARGUMENT.sub(lambda found: told(found[1], found[2]) or found[0], part) for part in parts[::2]
    ]
    return "".join(parts)


def _bare(value: str | None) -> str:
    return "VALUE" if value in {None, "..."} else str(value).strip("'\"")


def _values_of(option: str, arguments: Sequence[str]) -> list[str]:
    """Return the values of an option on a command line."""
    after = [arguments[at + 1] for at, each in enumerate(arguments[:-1]) if each == option]
    return [*after, *(each.partition("=")[2] for each in arguments if each.startswith(f"{option}="))]


def _options(command: Any, arguments: Sequence[str]) -> dict[str, dict[bool, str]]:
    """Return the options of the command that runs, by the name of the argument, and by True or False."""
    for argument in arguments:
        if hasattr(command, "get_command"):
            command = command.get_command(None, argument) or command
    found: dict[str, dict[bool, str]] = {}
    for parameter in command.get_params(typer.Context(command)):
        for is_true, names in ((True, parameter.opts), (False, parameter.secondary_opts)):
            for name in names:
                if name.startswith("--"):
                    bare = name.removeprefix("--")
                    found.setdefault(bare.removeprefix("no-").replace("-", "_"), {})[
                        is_true is not bare.startswith("no-")
                    ] = name
    return found
