"""Zip: tuples of the records of several datasets at the same position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.bases import ElementwiseNode
from seekable.nodes.compile import CompiledGraph, GatheredPlan
from seekable.nodes.graph import HOLE, JointPlan, Plan, Reader, held
from seekable.nodes.node import Node, RecordNode
from seekable.order.arrays import present

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Taking


__all__ = ["Zip"]

_ONLY_ROOT = np.zeros(1, dtype=np.int64)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Zip(ElementwiseNode, RecordNode):
    """Position ``p`` is the tuple of the parts' records at ``p``, or a hole if one of them is a hole."""

    parts: tuple[Node, ...]

    kind: ClassVar[str] = "zip"

    def __post_init__(self) -> None:
        """Raise InvalidArgument for parts of unequal lengths."""
        sizes = [part.size for part in self.parts]
        if len(set(sizes)) > 1:
            lengths = ", ".join("endless" if size is None else f"{size:,}" for size in sizes)
            message = f"zip() needs datasets of one length (got {lengths}): cut them with take(n)"
            raise InvalidArgument(message)

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts, in their order."""
        return self.parts

    @property
    def size(self) -> int | None:
        """The number of records of an epoch, equal to each part's."""
        return self.parts[0].size

    @cached
    def steady(self) -> bool:
        """True if every part is steady."""
        return all(part.steady for part in self.parts)

    @property
    def blocks(self) -> Int64s:
        """The blocks of the first part."""
        return self.parts[0].blocks

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return an empty dict: the parts alone decide the records."""
        return {}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Zip:
        """Return the node with these arguments over its parts."""
        return cls(children)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``zip``."""
        return f"zip([{', '.join(children)}])"

    def taking(self, old: Node, go: Taking) -> Node | None:
        """Return the old pairs over the records of these parts; None if there were more or fewer parts."""
        if not isinstance(old, Zip) or len(old.parts) != len(self.parts):
            return None
        return Zip(tuple(map(go, old.parts, self.parts)))

    @classmethod
    def reader(cls, nodes: Sequence[Zip]) -> Reader:
        """Return a reader that plans each part of each node separately."""
        return _ZipReader(nodes)

    def record(self, position: int) -> Any:
        """Read one record of each part."""
        record = tuple(part.record(position) for part in self.parts)
        return HOLE if _has_hole(record) else record


class _ZipReader(Reader):
    def __init__(self, nodes: Sequence[Zip]) -> None:
        self._parts = [[CompiledGraph([part]) for part in node.parts] for node in nodes]

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        if which.size == 1:
            return self._zipped(int(which[0]), positions)
        places = [(i, np.flatnonzero(which == i)) for i in present(which)]
        return GatheredPlan(positions.size, tuple((at, self._zipped(i, positions[at])) for i, at in places))

    def _zipped(self, node: int, positions: Int64s) -> Plan:
        return _ZipPlan(tuple(part.plan(_ONLY_ROOT, positions) for part in self._parts[node]))


@dataclass(frozen=True, slots=True)
class _ZipPlan(JointPlan):
    columns: tuple[Plan, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def slice(self, start: int, stop: int) -> Plan:
        return _ZipPlan(tuple(column.slice(start, stop) for column in self.columns))

    def read(self) -> list[Any]:
        with held(self):
            records = zip(*[column.read() for column in self.columns], strict=True)
        return [HOLE if _has_hole(record) else record for record in records]

    def locate(self) -> list[Any]:
        return list(zip(*(column.locate() for column in self.columns), strict=True))

    def left_out(self) -> NDArray[np.bool_] | None:
        found = [left_out for each in self.columns if (left_out := each.left_out()) is not None]
        return np.logical_or.reduce(found) if found else None

    @property
    def below(self) -> tuple[Plan, ...]:
        return self.columns


def _has_hole(record: tuple[Any, ...]) -> bool:
    # ``HOLE in record`` would compare the hole with arrays by ``==``.
    return any(part is HOLE for part in record)
