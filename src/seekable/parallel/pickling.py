"""Functions and errors as they travel to other processes: by cloudpickle, through a pipe or a socket.

Only a process and those that work for it exchange these bytes. No file is ever unpickled.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import xxhash

from seekable._lazy import lazy
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    import cloudpickle
else:
    cloudpickle = lazy("cloudpickle")

__all__ = ["at_place", "deserialized", "pickled_digest", "portable_error", "serialized"]


_SPAWNED = "__mp_main__"
"""The script in a process that multiprocessing has spawned; no other process can import it."""

_place: ContextVar[str] = ContextVar("place", default="")


@contextmanager
def at_place(name: str) -> Iterator[None]:
    """Name the machine that this process works on, for the errors that ``portable_error`` notes inside."""
    before = _place.set(f" on {name}")
    try:
        yield
    finally:
        _place.reset(before)


def serialized(thing: Any, *, way_out: str) -> bytes:
    """Return the bytes of an object; functions of a script, lambdas and closures can be serialized too.

    Args:
        thing: the object.
        way_out: what the user can do if the object cannot be serialized; the end of the error message.

    Raises:
        InvalidArgument: the object cannot be serialized.

    Example:
        >>> deserialized(serialized(lambda x: x + 1, way_out=""))(1)
        2
    """
    try:
        with _script_by_value():
            data: bytes = cloudpickle.dumps(thing)
    except Exception as error:
        message = (
            f"this pipeline, or a function of it, cannot be sent to worker processes: "
            f"{type(error).__name__}: {error}; {way_out}"
        )
        raise InvalidArgument(message) from error
    return data


@contextmanager
def _script_by_value() -> Iterator[None]:
    """Let functions of a script travel with their code, in a process that multiprocessing has spawned too."""
    script = sys.modules.get(_SPAWNED)
    if script is None:
        yield
        return
    with _registering:
        if script.__name__ in cloudpickle.list_registry_pickle_by_value():
            yield
            return
        cloudpickle.register_pickle_by_value(script)
        try:
            yield
        finally:
            cloudpickle.unregister_pickle_by_value(script)


_registering = threading.RLock()
"""Held while the script is registered: another thread would end that before this one has its bytes."""


def _begin_in_child() -> None:
    global _registering  # noqa: PLW0603 - a thread that a child does not have may hold the old one
    _registering = threading.RLock()


os.register_at_fork(after_in_child=_begin_in_child)


def deserialized(data: bytes) -> Any:
    """Return the object of `serialized` bytes. Call this only with bytes of the parent process."""
    return cloudpickle.loads(data)


def pickled_digest(thing: object) -> str:
    """Return the digest of the bytes that an object is pickled to; classes and functions count by name.

    Raises:
        Exception: whatever the object raises that cannot be pickled.
    """
    return xxhash.xxh3_128_hexdigest(pickle.dumps(thing, protocol=4))


def portable_error(error: BaseException) -> BaseException:
    """Return an error that can be pickled, with the traceback of this process among its notes.

    An error that cannot be pickled is replaced by a ``RuntimeError`` with its type and its message.
    """
    error.add_note(f"in a worker process (pid {os.getpid()}){_place.get()}:\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in the line itself
    except Exception:  # noqa: BLE001 - an error class of the user may raise anything here
        described = RuntimeError(f"{type(error).__name__}: {error}")
        described.__notes__ = error.__notes__
        return described
    return error
