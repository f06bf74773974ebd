"""The option that all commands share which take addresses: how their stores are reached."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME = "storage_option"

_OPTION = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="Of the stores of addresses: region, endpoint and so on; may be given several times. By default "
        "the environment decides.",
        show_default=False,
    ),
]


def takes_addresses(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the option ``--storage-option``, whose stores are reached as it says."""

    @functools.wraps(command)
    def with_stores(**arguments: object) -> None:
        given = _parsed(arguments.pop(_NAME))  # type: ignore[arg-type]  # typer makes a list of texts
        if not given:
            command(**arguments)
            return
        from seekable.remote.mounts import default_options

        with default_options(given) as options:
            command(**arguments)
        if not options.are_used:
            typer.echo("seekable: --storage-option has no effect: the command has met no address", err=True)

    whole = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(_NAME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_OPTION)
    with_stores.__signature__ = whole.replace(  # type: ignore[attr-defined]  # inspect reads it
        parameters=[*whole.parameters.values(), option]
    )
    return with_stores


def _parsed(texts: Sequence[str] | None) -> dict[str, str]:
    """Return options by name.

    Raises:
        InvalidArgument: an option is no ``NAME=VALUE``, or the same one is given twice.

    Example:
        >>> _parsed(["region=eu-west-1", "endpoint=http://host:1/?a=b"])
        {'region': 'eu-west-1', 'endpoint': 'http://host:1/?a=b'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals or name in found:
            from seekable.errors import InvalidArgument

            why = f"{name!r} is given twice" if name in found else f"it has {'no name' if equals else 'no ='}"
            message = f"--storage-option must be NAME=VALUE, each name once: {why}"
            raise InvalidArgument(message)
        found[name] = value
    return found
