"""Messages of the library in words of the command line: ``overwrite=True`` is ``--overwrite`` there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["in_options"]

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
    """Return a message that names options where it named arguments of Python that the command has as options.

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
