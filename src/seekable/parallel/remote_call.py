"""A call as it travels to a process of another machine, and its outcome as it comes back.

Executors of clusters send these bytes: by sockets, and through the object store of a cluster that works for
this process. With a call go the variables of this process that say how data is read, credentials among them;
they are in no file and in no log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.parallel.pickling import at_place, deserialized, portable_error, serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["answer_call", "handed_on", "outcome_of", "packed_call"]

_PREFIXES = ("SEEKABLE_", "AWS_", "AZURE_", "GOOGLE_")
_NAMES = frozenset({"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})


class _Variables(dict[str, str]):
    """Variables that no log shows: some clusters log the arguments of a call that fails."""

    def __repr__(self) -> str:
        return f"<{len(self)} variables>"


def handed_on() -> dict[str, str]:
    """Return the variables of this process that its workers on other machines need.

    These are the ones of this library, and the credentials and settings of object stores and of the Hub.

    Example:
        >>> os.environ["SEEKABLE_EXAMPLE"] = "value"
        >>> variables = handed_on()
        >>> "PATH" in variables, variables["SEEKABLE_EXAMPLE"], "value" in repr(variables)
        (False, 'value', False)
        >>> del os.environ["SEEKABLE_EXAMPLE"]
    """
    return _Variables(
        (name, value) for name, value in os.environ.items() if name.startswith(_PREFIXES) or name in _NAMES
    )


def packed_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Return the bytes of a call, for ``answer_call``.

    Raises:
        InvalidArgument: the function or an argument cannot be sent.
    """
    return serialized((function, args, kwargs), way_out="send functions and arguments that can be pickled")


def answer_call(call: bytes, *, environment: Mapping[str, str], place: str) -> bytes:
    """Make a call in this process, and return the bytes of its outcome.

    Args:
        call: the bytes of ``packed_call``, from the process that this one works for.
        environment: the variables that this process gets from that one; they stay.
        place: the name of this machine, for errors.

    Example:
        >>> outcome_of(answer_call(packed_call(divmod, (7, 2), {}), environment={}, place="here"))
        (3, 1)
    """
    os.environ.update(environment)
    with at_place(place):
        try:
            function, args, kwargs = deserialized(call)
            made = function(*args, **kwargs)
            return serialized((True, made), way_out="return something that can be pickled")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is raised in the other process
            return serialized((False, portable_error(error)), way_out="")


def outcome_of(answer: bytes) -> Any:
    """Return what a call returned, of the bytes of ``answer_call``.

    Raises:
        BaseException: the error of the call, with the place and the stack among its notes.
    """
    succeeded, made = deserialized(answer)
    if not succeeded:
        raise made
    return made
