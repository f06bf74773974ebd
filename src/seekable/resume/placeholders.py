"""Nodes that stand for sources and functions of which there is only a description.

They have the order of what they stand for, and the file and row of each record, but no records. They
describe themselves as what they stand for, so a dataset that `seekable.resume.from_description` rebuilds has
the fingerprint of the described one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode, InMemoryPlan, PassOn, UnaryNode
from seekable.nodes.graph import Plan, Reader, Router
from seekable.nodes.kinds import node_class
from seekable.nodes.node import LeafNode, NamedFiles, Node, OrderNode
from seekable.order.blocks import default_blocks_within
from seekable.storage.memory import cache_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.files.leaf import FilesLeaf


__all__ = ["PlaceholderMap", "PlaceholderSource", "RowRef"]


@dataclass(frozen=True, slots=True)
class RowRef:
    """The file and the row of a record, where its bytes in the file are not known."""

    path: str
    """The name of the file relative to the folder that was opened; in angle brackets for what is no file."""

    row: int
    """The row of the record in that file, from 0."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlaceholderSource(LeafNode):
    """Stands for a described source; each record is its own `RowRef`.

    If the files were found again, the records are their ``Location``.
    """

    described: dict[str, Any]
    """The description of the source that this one stands for."""

    names: tuple[str, ...]
    """The name of each file."""

    records: tuple[int, ...]
    """The number of records in each file."""

    files: FilesLeaf | None = None
    """The described files, if they were found again."""

    any_order: bool = False
    """True if only lengths matter, so that rows of tables may be taken to lie in any blocks."""

    row_files: Mapping[str, str] = field(default_factory=dict)
    """The paths of files of chosen rows in the description, by the digest of these rows."""

    kind: ClassVar[str] = "described"

    @property
    def cache_bytes(self) -> int:
        """The number of bytes of memory that can cache files."""
        return cache_bytes()

    @cached
    def stands_for(self) -> type[Node]:
        """The class of the described node."""
        return node_class(self.described["kind"])

    @property
    def is_source(self) -> bool:
        """True if this stands for a source, and not for a node that chose rows of others by their content."""
        return "of" not in self.described

    @property
    def blocks_known(self) -> bool:
        """True if the files were found again, or blocks follow from the names and lengths of files."""
        kind = self.stands_for
        return self.files is not None or (issubclass(kind, LeafNode) and kind.in_runs)

    @cached
    def size(self) -> int:
        """The number of records in all files."""
        return sum(self.records)

    @property
    def blocks(self) -> Int64s:
        """Runs of 1,024 rows that cross no file; for tables that were found again, their groups.

        Raises:
            InvalidArgument: the source is of tables, whose groups of rows a description does not have.
        """
        if self.files is not None:
            return self.files.blocks
        if not self.blocks_known and not self.any_order:
            message = (
                f"where groups of rows end in files of {self.described['format']!r} is not in the "
                f"description, and a windowed shuffle depends on it: say where the files are with --root, or "
                f"give the pipeline itself, as module:function"
            )
            raise InvalidArgument(message)
        return default_blocks_within(np.array(self.records, dtype=np.int64))

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the arguments of the described source."""
        return {key: value for key, value in self.described.items() if key != "kind"}

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the description of the source that this one stands for."""
        return dict(self.described)

    def shown(self, children: Sequence[str]) -> str:
        """Return the kind and the length in angle brackets."""
        return f"<{self.described['kind']} of {self.size:,}>"

    @classmethod
    def reader(cls, nodes: Sequence[PlaceholderSource]) -> Reader:
        """Return a reader of the file and row of each record."""
        return _PlaceholderReader(nodes)

    def record(self, position: int) -> Any:
        """Return the file and row of one record."""
        return self.row_refs(np.array([position % self.size], dtype=np.int64))[0]

    @property
    def keys(self) -> None:
        """None: keys are of records, and there are none."""
        return None

    def close(self) -> None:
        """Close the files, if they were found again."""
        if self.files is not None:
            self.files.close()

    def rows_of(self, path: str, row: int) -> list[int]:
        """Return the rows of this source that are row ``row`` of a file.

        The file may be named by any path that ends with its name; by its path if the files were found again.
        """
        if self.files is not None:
            return self.files.rows_of(path, row)
        same = [i for i, name in enumerate(self.names) if path == name or path.endswith(f"/{name}")]
        return [int(self._first_rows[i]) + row for i in same if row < self.records[i]]

    def named_files(self) -> NamedFiles:
        """Return the described files; what chose rows by content has one of an unknown name."""
        digests = [file["head_tail"] for file in self.described.get("files", [])] if self.is_source else []
        records = np.array(self.records, dtype=np.int64)
        return NamedFiles(self.names, digests or [""] * len(self.names), records)

    def row_refs(self, rows: Int64s) -> list[Any]:
        """Return the `RowRef` of each row; its ``Location`` if the files were found again."""
        if self.files is not None:
            return self.files.plan(rows).locate()
        numbers = np.searchsorted(self._first_rows, rows, side="right") - 1
        within = rows - self._first_rows[numbers]
        return [
            RowRef(self.names[number], row)
            for number, row in zip(numbers.tolist(), within.tolist(), strict=True)
        ]

    @cached
    def _first_rows(self) -> Int64s:
        """The row of this source with which each file begins."""
        return np.concatenate([[0], np.cumsum(np.array(self.records, dtype=np.int64))[:-1]])


class _PlaceholderReader(Reader):
    def __init__(self, nodes: Sequence[PlaceholderSource]) -> None:
        self._nodes = nodes
        self._lengths = np.array([node.size for node in nodes], dtype=np.int64)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        owners = np.broadcast_to(which, positions.size)
        return _PlaceholderPlan(self._nodes, owners, positions % self._lengths[which])


@dataclass(frozen=True, slots=True)
class _PlaceholderPlan(InMemoryPlan):
    nodes: Sequence[PlaceholderSource]
    owners: Int64s
    rows: Int64s

    def __len__(self) -> int:
        return self.rows.size

    def slice(self, start: int, stop: int) -> Plan:
        return _PlaceholderPlan(self.nodes, self.owners[start:stop], self.rows[start:stop])

    def read(self) -> list[Any]:
        return self.locate()

    def locate(self) -> list[Any]:
        refs: list[Any] = [None] * self.rows.size
        for owner in np.unique(self.owners).tolist():
            own = np.flatnonzero(self.owners == owner)
            for place, ref in zip(own.tolist(), self.nodes[owner].row_refs(self.rows[own]), strict=True):
                refs[place] = ref
        return refs


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlaceholderMap(UnaryNode, ElementwiseNode, OrderNode):
    """Stands for a function over records: positions, files and rows are those of the child."""

    child: Node
    described: dict[str, Any]
    """The description, without the child's."""

    kind: ClassVar[str] = "described_map"
    apart: ClassVar[bool] = True

    @property
    def size(self) -> int | None:
        """The number of records of the child."""
        return self.child.size

    @property
    def steady(self) -> bool:
        """True if the child is steady and the function draws no random numbers."""
        return self.child.steady and "seed" not in self.described

    @property
    def blocks(self) -> Int64s:
        """The blocks of the child."""
        return self.child.blocks

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the arguments of the described node."""
        return {key: value for key, value in self.described.items() if key not in ("kind", "of")}

    def describe(self, upto: int | None) -> dict[str, Any]:
        """Return the description of the node that this one stands for, over that of the child."""
        return {**self.described, "of": [self.child.describe(upto)]}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call with the name of the function."""
        function = self.described.get("fn", {"name": "..."})
        return f"{children[0]}.{self.described['kind']}({function['name']})"

    @classmethod
    def router(cls, nodes: Sequence[PlaceholderMap]) -> Router:
        """Return a router that passes positions on."""
        return PassOn()

    def route_one(self, position: int) -> tuple[int, int]:
        """Return the same position of the child."""
        return 0, position
