"""Evaluation of many nodes at once: positions are routed down to the nodes that read, which plan the reading.

All nodes that can be reached through routed nodes are numbered when a graph is compiled, and one router or
reader is made for each class of them. Routing is a loop over levels: all positions that are at routed nodes
of one class move on together, until every position is at a node that reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.graph import Graph, JointPlan, Origins, Plan, Read, Reader, Routed, Router, gathered, held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s


__all__ = ["CompiledGraph", "GatheredPlan"]


class CompiledGraph:
    """A compiled form of the graphs below some nodes, which plans any of their positions."""

    def __init__(self, roots: Sequence[Graph]) -> None:
        """Number the nodes below the roots and compile each class of them."""
        # Loops and not comprehensions, each of which would be a call on the way to a first record.
        numbers: dict[int, int] = {}
        nodes: list[Graph] = []
        members: dict[type[Graph], list[Graph]] = {}
        kind_numbers: dict[type[Graph], int] = {}
        kinds, local, below, pending = list[int](), list[int](), list[tuple[Graph, ...]](), list(roots)
        while pending:
            node = pending.pop()
            if id(node) in numbers:
                continue
            numbers[id(node)] = len(nodes)
            nodes.append(node)
            group = members.setdefault(type(node), [])
            kinds.append(kind_numbers.setdefault(type(node), len(kind_numbers)))
            local.append(len(group))
            group.append(node)
            below.append(node.children if isinstance(node, Routed) else ())
            pending.extend(below[-1])
        children, first_child = list[int](), [0]
        for each in below:
            for child in each:
                children.append(numbers[id(child)])
            first_child.append(len(children))
        self._routers: dict[int, Router] = {}
        self._readers: dict[int, Reader] = {}
        for kind, group in members.items():
            if issubclass(kind, Routed):
                self._routers[kind_numbers[kind]] = kind.router(group)
            else:
                assert issubclass(kind, Read)
                self._readers[kind_numbers[kind]] = kind.reader(group)
        self._roots = np.array([*map(numbers.__getitem__, map(id, roots))], dtype=np.int64)
        self._kind, self._local = np.array(kinds, dtype=np.int64), np.array(local, dtype=np.int64)
        self._children, self._first_child = np.array(children, dtype=np.int64), np.array(first_child)

    def plan(self, which: Int64s, positions: Int64s) -> Plan:
        """Return the plan that reads each position from the root with the index in ``which``."""
        if not positions.size:
            return GatheredPlan(0, ())
        ids, positions = self._route(self._roots[which], positions)
        kinds = self._kind[ids]
        present = np.flatnonzero(np.bincount(kinds))
        if present.size <= 1:
            return self._readers[int(kinds[0])].plan(self._local[ids], positions)
        parts = []
        for kind in present:
            at = np.flatnonzero(kinds == kind)
            parts.append((at, self._readers[int(kind)].plan(self._local[ids[at]], positions[at])))
        return GatheredPlan(positions.size, tuple(parts))

    def _route(self, ids: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        while True:
            kinds = self._kind[ids]
            present = np.flatnonzero(np.bincount(kinds)).tolist()
            if len(present) == 1:
                if present[0] not in self._routers:
                    return ids, positions
                ids, positions = self._step(present[0], ids, positions)
                continue
            routed = self._routers.keys() & present
            if not routed:
                return ids, positions
            positions = positions.copy()
            for kind in routed:
                at = np.flatnonzero(kinds == kind)
                ids[at], positions[at] = self._step(kind, ids[at], positions[at])

    def _step(self, kind: int, ids: Int64s, positions: Int64s) -> tuple[Int64s, Int64s]:
        slots, positions = self._routers[kind].route(self._local[ids], positions)
        return self._children[self._first_child[ids] + slots], positions


@dataclass(frozen=True, slots=True)
class GatheredPlan(JointPlan):
    """Plans of several readers, and the indices of their records in the requested order."""

    size: int
    parts: tuple[tuple[NDArray[np.intp], Plan], ...]

    def __len__(self) -> int:
        """Return the number of records of all parts."""
        return self.size

    def slice(self, start: int, stop: int) -> Plan:
        """Return the gathered plan of a slice of the positions."""
        parts = []
        for at, plan in self.parts:
            first, last = np.searchsorted(at, (start, stop))
            if first < last:
                parts.append((at[first:last] - start, plan.slice(int(first), int(last))))
        return GatheredPlan(stop - start, tuple(parts))

    def read(self) -> list[Any]:
        """Read the records of each part into their places."""
        with held(self):
            return self._gather([plan.read() for _, plan in self.parts])

    def locate(self) -> list[Any]:
        """Return the locations of the records of all parts, in the requested order."""
        return self._gather([plan.locate() for _, plan in self.parts])

    def origins(self) -> Origins:
        """Return the origins of the records of all parts, in the requested order."""
        return gathered(self.size, [(at, plan.origins()) for at, plan in self.parts])

    def left_out(self) -> NDArray[np.bool_] | None:
        """Return which records of all parts are holes because they were left out."""
        found = [(at, left_out) for at, plan in self.parts if (left_out := plan.left_out()) is not None]
        if not found:
            return None
        out = np.zeros(self.size, dtype=np.bool_)
        for at, left_out in found:
            out[at] = left_out
        return out

    def arrays(self) -> dict[str, Any] | None:
        """Return the columns of all parts, if all have the same ones, with values of one shape."""
        parts: list[tuple[NDArray[np.intp], dict[str, Any]]] = []
        with held(self):
            for at, plan in self.parts:
                columns = plan.arrays()
                if columns is None or (parts and columns.keys() != parts[0][1].keys()):
                    return None
                parts.append((at, columns))
        names = parts[0][1] if parts else {}
        out = {name: _column(self.size, [(at, columns[name]) for at, columns in parts]) for name in names}
        return None if not out or any(column is None for column in out.values()) else out

    @property
    def below(self) -> list[Plan]:
        """The plans of all parts."""
        return [plan for _, plan in self.parts]

    def _gather(self, lists: list[list[Any]]) -> list[Any]:
        out: list[Any] = [None] * self.size
        for (at, _), items in zip(self.parts, lists, strict=True):
            for i, item in zip(at.tolist(), items, strict=True):
                out[i] = item
        return out


def _column(size: int, parts: Sequence[tuple[NDArray[np.intp], Any]]) -> Any:
    """Return the values of several parts as one column; None if they do not go together.

    Args:
        size: the number of all values.
        parts: the places of the values of each part, and these values: an array or a list.
    """
    values = [held for _, held in parts]
    if all(isinstance(held, np.ndarray) for held in values):
        if len({(held.shape[1:], held.dtype == bool) for held in values}) > 1:
            return None
        out = np.empty((size, *values[0].shape[1:]), np.result_type(*values))
        for at, held in parts:
            out[at] = held
        return out
    if not all(isinstance(held, list) for held in values):
        return None
    listed: list[Any] = [None] * size
    for at, held in parts:
        for place, value in zip(at.tolist(), held, strict=True):
            listed[place] = value
    return listed
