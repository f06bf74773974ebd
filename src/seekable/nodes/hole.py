"""The hole, a value in the place of a record that could not be read or made."""

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
        """Return ``sk.HOLE``, the only instance."""
        return HOLE

    def __repr__(self) -> str:
        return "sk.HOLE"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as ``sk.HOLE`` of the process that unpickles."""
        return Hole, ()


HOLE: Final[Hole] = object.__new__(Hole)
"""The value in the place of a record that failed: ``errors=`` of ``sk.open`` or ``map`` gives it."""
