"""Nodes made from a description alone: they give the order and the places of records, never records.

`seekable.resume.description` puts them where a pipeline reads files or calls functions. They describe
themselves as what they stand for, so that a rebuilt pipeline has the fingerprint of the described one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.dataset.base import Dataset
from seekable.errors import InvalidArgument
from seekable.nodes.bases import Aligned, Fileless, OverOne
from seekable.nodes.contract import Leaf, OrderNode, Plan, Reader, Router
from seekable.nodes.routers import PassOn
from seekable.nodes.sources.columnar.source import TableSource
from seekable.order.blocks import default_blocks_within
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.nodes.sources.files import FileSource

    Int64s = NDArray[np.int64]

__all__ = ["DescribedMap", "DescribedSource", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """Which row of which file a record is, where its bytes are not known."""

    path: str
    """The file's name relative to the folder that was opened; in angle brackets what is no file."""

    row: int
    """The record's number in that file, from 0."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class DescribedSource(Dataset, Leaf):
    """A source of which only the description is there: each record is its own place.

    With ``files``, the described files found again, a record's place is its ``Location``.
    """

    described: dict[str, Any]
    names: tuple[str, ...]
    records: tuple[int, ...]
    files: FileSource | TableSource | None
    any_order: bool = False
    """Whether nobody asks for the order, so that any blocks will do."""

    kind: ClassVar[str] = "described"

    @property
    def room(self) -> int:
        """What the operating system keeps."""
        return cache_bytes()

    @cached
    def size(self) -> int:
        """The records of all files."""
        return sum(self.records)

    @property
    def blocks(self) -> Int64s:
        """Runs of 1,024 rows, none across two files; of tables their groups.

        Raises:
            InvalidArgument: they are tables, whose groups are not in the description.
        """
        if self.files is not None:
            return self.files.blocks
        if self.described["kind"] == TableSource.kind and not self.any_order:
            message = (
                f"where groups of rows end in files of {self.described['format']!r} is not in the "
                f"description, and a windowed shuffle depends on it: say where the files are with --root, or "
                f"give the pipeline itself, as module:function"
            )
            raise InvalidArgument(message)
        return default_blocks_within(np.array(self.records, dtype=np.int64))

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """What the described source has."""
        return {key: value for key, value in self.described.items() if key != "kind"}

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the description."""
        return dict(self.described)

    def shown(self, children: Sequence[str]) -> str:
        """Return what stands for the source."""
        return f"<{self.described['kind']} of {self.size:,}>"

    @classmethod
    def reader(cls, nodes: Sequence[DescribedSource]) -> Reader:
        """Tell the places of each node by itself."""
        return _DescribedReader(nodes)

    def record(self, position: int) -> Any:
        """Return one place."""
        return self.places(np.array([position % self.size], dtype=np.int64))[0]

    @property
    def keys(self) -> None:
        """None: there is no index of them."""
        return None

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the row in each file of that name, or of that path where the files were found again."""
        if self.files is not None:
            return self.files.rows_of(path, row)
        same = [i for i, name in enumerate(self.names) if path == name or path.endswith(f"/{name}")]
        return [int(self._starts[i]) + row for i in same if row < self.records[i]]

    def places(self, rows: Int64s) -> list[Any]:
        """Return the places of some rows."""
        if self.files is not None:
            return self.files.plan(rows).locate()
        numbers = np.searchsorted(self._starts, rows, side="right") - 1
        return [
            Place(self.names[number], row)
            for number, row in zip(numbers.tolist(), (rows - self._starts[numbers]).tolist(), strict=True)
        ]

    @cached
    def _starts(self) -> Int64s:
        return np.concatenate([[0], np.cumsum(np.array(self.records, dtype=np.int64))[:-1]])


class _DescribedReader(Reader):
    def __init__(self, nodes: Sequence[DescribedSource]) -> None:
        self._nodes = nodes
        self._lengths = np.array([node.size for node in nodes], dtype=np.int64)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        owners = np.broadcast_to(which, positions.size)
        return _DescribedPlan(self._nodes, owners, positions % self._lengths[which])


@dataclass(frozen=True, slots=True)
class _DescribedPlan(Fileless):
    nodes: Sequence[DescribedSource]
    owners: Int64s
    rows: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        return _DescribedPlan(self.nodes, self.owners[start:stop], self.rows[start:stop])

    def read(self) -> list[Any]:
        return self.locate()

    def locate(self) -> list[Any]:
        out: list[Any] = [None] * self.rows.size
        for i in np.unique(self.owners).tolist():
            at = np.flatnonzero(self.owners == i)
            for place, found in zip(at.tolist(), self.nodes[i].places(self.rows[at]), strict=True):
                out[place] = found
        return out


@final
@dataclass(frozen=True, eq=False, repr=False)
class DescribedMap(Dataset, OverOne, Aligned, OrderNode):
    """What is done to records, where only the description is there: positions and places are the child's."""

    child: Dataset
    described: dict[str, Any]

    kind: ClassVar[str] = "described_map"

    @property
    def size(self) -> int | None:
        """As many records as the child has."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """As the child, unless the function draws random numbers."""
        return self.child.steady and "seed" not in self.described

    @property
    def blocks(self) -> Int64s:
        """As the child."""
        return self.child.blocks

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """What the described node has."""
        return {key: value for key, value in self.described.items() if key not in ("kind", "of")}

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the description, over the child's."""
        return {**self.described, "of": [self.child.describe(upto)]}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        function = self.described.get("fn", {"name": "..."})
        return f"{children[0]}.{self.described['kind']}({function['name']})"

    @classmethod
    def router(cls, nodes: Sequence[DescribedMap]) -> Router:
        """Pass positions on."""
        return PassOn()

    def route_one(self, position: int) -> tuple[int, int]:
        """Pass one position on."""
        return 0, position
