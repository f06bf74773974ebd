"""What stands where a record could not be had."""

from __future__ import annotations

from typing import Any, Final, final

__all__ = ["HOLE", "Hole"]


@final
class Hole:
    """The type of ``sk.HOLE``, of which there is one in a process.

    A hole keeps the position of a record, so that all others keep theirs. It passes through ``map`` and
    ``filter`` as it is, makes a hole of a ``zip``, and is left out of batches.

    Example:
        >>> import pickle, seekable as sk
        >>> sk.HOLE, pickle.loads(pickle.dumps(sk.HOLE)) is sk.HOLE
        (sk.HOLE, True)
    """

    __slots__ = ()

    def __new__(cls) -> Hole:
        """Return the one hole."""
        return HOLE

    def __repr__(self) -> str:
        return "sk.HOLE"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as the one hole that the other side has."""
        return Hole, ()


HOLE: Final[Hole] = object.__new__(Hole)
"""Stands where a record could not be had: ``errors=`` of ``sk.open`` or a function of ``map`` returns it."""
