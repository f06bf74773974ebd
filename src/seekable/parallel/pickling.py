"""Pipelines and functions as they are sent to other processes: by cloudpickle, through a pipe."""

from __future__ import annotations

from typing import Any

import cloudpickle

from seekable.errors import InvalidArgument

__all__ = ["sent"]


def sent(thing: Any, *, way_out: str) -> bytes:
    """Return the bytes of something, functions of a script, lambdas and closures included.

    Args:
        thing: what to send.
        way_out: what does without, for the message.

    Raises:
        InvalidArgument: it cannot be sent.

    Example:
        >>> cloudpickle.loads(sent(lambda x: x + 1, way_out=""))(1)
        2
    """
    try:
        data: bytes = cloudpickle.dumps(thing)
    except Exception as error:
        message = (
            f"this pipeline, or a function of it, cannot be sent to worker processes: "
            f"{type(error).__name__}: {error}; {way_out}"
        )
        raise InvalidArgument(message) from error
    return data
