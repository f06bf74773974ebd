"""The contract of items in several lanes, each of which resumes from a state, for writing.

Streams are such items. The rooms of the data's way are in the order writing, stream, so the names here are
those that writing needs, and `seekable.stream` has the class that implements them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["LaneRun", "LanedItems"]


class LaneRun(Protocol):
    """The items of one lane, from some state on; one thread at a time uses it."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Return the iterator over the next items, each after its token; always the same iterator."""
        ...

    @property
    def holes(self) -> int:
        """The number of records that the sources left out since the run began."""
        ...

    def state(self) -> list[Any]:
        """Return the state after the last item, JSON-safe."""
        ...


class LanedItems(Protocol):
    """Items in a fixed number of lanes: slot ``s`` is the next item of lane ``s % lanes``. Picklable."""

    @property
    def lanes(self) -> int:
        """The number of lanes, at least one."""
        ...

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the items and their order."""
        ...

    def functions(self) -> Sequence[Callable[..., Any]]:
        """Return the functions whose code decides the items, but for those that a ``version`` stands for."""
        ...

    def paths(self) -> Iterator[str]:
        """Return an iterator over the absolute paths of the data files that are read."""
        ...

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their Arrow types as the data files declare them; see `Node.declared`."""
        ...

    def run(self, lane: int, state: list[Any] | None) -> LaneRun:
        """Return the items of a lane after a state; None for the first state."""
        ...

    def named(self, lane: int, token: Any) -> str:
        """Return the lane, the token and the places of the records of an item, for error messages."""
        ...
