"""A source over anything with a length and items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np

from seekable._cached import cached
from seekable.index.location import Location
from seekable.nodes.bases import InMemoryPlan
from seekable.nodes.graph import Origins, Plan, Reader, part_of
from seekable.nodes.node import LeafNode, NamedFiles
from seekable.order.blocks import default_blocks
from seekable.state.functions import module_name
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s


__all__ = ["SequenceSource", "SupportsItems"]


class SupportsItems(Protocol):
    """An object with a length, and items by number."""

    def __len__(self) -> int:
        """Return the number of items."""
        ...

    def __getitem__(self, index: int, /) -> Any:
        """Return the item of a number from 0 to the length, exclusive."""
        ...


@final
@dataclass(frozen=True, eq=False, repr=False)
class SequenceSource(LeafNode):
    """A source over a sequence: row ``r`` is item ``r``."""

    sequence: SupportsItems
    version: str | int | None

    kind: ClassVar[str] = "sequence"

    @property
    def cache_bytes(self) -> int:
        """The bytes that the operating system can cache."""
        return cache_bytes()

    @cached
    def size(self) -> int:
        """The number of items when it was first read."""
        return len(self.sequence)

    @property
    def blocks(self) -> Int64s:
        """The edges of blocks of 1,024 rows, int64."""
        return default_blocks(self.size)

    @property
    def type_name(self) -> str:
        """The qualified name of the sequence's type."""
        kind = type(self.sequence)
        return f"{module_name(kind)}.{kind.__qualname__}"

    @property
    def place(self) -> str:
        """The path in locations: the type and the version, in angle brackets as it is not a file."""
        return f"<{self.type_name}>" if self.version is None else f"<{self.type_name} {self.version}>"

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the type, the length and the version."""
        version = {} if self.version is None else {"version": self.version}
        return {"type": self.type_name, "length": self.size, **version}

    def shown(self, children: Sequence[str]) -> str:
        """Return the call of ``sk.from_sequence``."""
        return f"from_sequence(<{self.type_name} of {self.size:,}>)"

    @classmethod
    def reader(cls, nodes: Sequence[SequenceSource]) -> Reader:
        """Return a reader that reads each sequence by itself."""
        return _SequenceReader(nodes)

    def record(self, position: int) -> Any:
        """Return the item at a position; positions go on over the epochs."""
        return self.sequence[position % self.size]

    @property
    def keys(self) -> None:
        """Always None: sequences have no index of keys."""
        return None

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the row itself if the path is the place of this sequence; otherwise no row."""
        return [row] if path == self.place and row < self.size else []

    def named_files(self) -> NamedFiles:
        """Return the sequence as one file, named by its place."""
        return NamedFiles([self.place], [""], np.array([self.size], dtype=np.int64))

    def close(self) -> None:
        """Do nothing: the sequence is the caller's."""

    @property
    def decodes_itself(self) -> bool:
        """True if items are read by no method of the user."""
        return type(self.sequence) in (list, tuple, str, bytes, range, np.ndarray)

    def items(self, rows: list[int]) -> list[Any]:
        """Return the items of some rows, in the order of ``rows``."""
        together = getattr(self.sequence, "__getitems__", None)
        return list(together(rows)) if together else [self.sequence[row] for row in rows]


class _SequenceReader(Reader):
    def __init__(self, nodes: Sequence[SequenceSource]) -> None:
        self._nodes = nodes
        self._lengths = np.array([node.size for node in nodes], dtype=np.int64)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        return _SequencePlan(self._nodes, which, positions % self._lengths[which])


@dataclass(frozen=True, slots=True)
class _SequencePlan(InMemoryPlan):
    nodes: Sequence[SequenceSource]
    which: Int64s
    rows: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        return _SequencePlan(self.nodes, part_of(self.which, start, stop), self.rows[start:stop])

    def read(self) -> list[Any]:
        rows = self.rows.tolist()
        if self.which.size == 1:
            return self.nodes[int(self.which[0])].items(rows)
        out: list[Any] = [None] * len(rows)
        for i in np.unique(self.which):
            at = np.flatnonzero(self.which == i).tolist()
            for place, item in zip(at, self.nodes[int(i)].items([rows[place] for place in at]), strict=True):
                out[place] = item
        return out

    def origins(self) -> Origins:
        places = tuple(node.place for node in self.nodes)
        return Origins(places, places, np.broadcast_to(self.which, self.rows.size), self.rows)

    def locate(self) -> list[Any]:
        owners = np.broadcast_to(self.which, self.rows.size).tolist()
        return [
            Location(self.nodes[i].place, row, 0, 0)
            for i, row in zip(owners, self.rows.tolist(), strict=True)
        ]
