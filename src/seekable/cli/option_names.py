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

_ARGUMENT = re.compile(r"(?<![\w.=-])([a-z]\w*)=(True|False)?(?=[\s,.;:)]|$)")


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
        return names.get(found[2] != "False", found[0])

    given = [name for argument in arguments if (name := argument.partition("=")[0]) in _OF_FORMATS]
    return _ARGUMENT.sub(told, _VALUE.sub(" and ".join(given), message) if given else message)


def _options(command: Any, arguments: Sequence[str]) -> dict[str, dict[bool, str]]:
    """Return the options of the command that runs, by the name of the argument, and by True or False."""
    for argument in arguments:
        command = getattr(command, "commands", {}).get(argument, command)
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
