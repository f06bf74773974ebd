"""Maps: a function of each record, with or without randomness, or of many records at once.

The randomness of an item is PCG64 (O'Neill, 2014) started at a 128-bit hash of (seed, canonical JSON of the
item's position or token), so it depends on nothing that came before.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import xxhash

from seekable._cached import cached
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.bases import EachRecordNode, UnaryPlan, UnaryReader
from seekable.nodes.display import add_place
from seekable.nodes.graph import HOLE
from seekable.order.arrays import present
from seekable.state.canonical import canonical_json
from seekable.state.functions import describe_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.nodes.graph import Reader
    from seekable.nodes.node import Node

__all__ = ["ItemRandomness", "Map", "MapBatches"]

_INCREMENT = 0x5851F42D4C957F2D14057B7EF767814F
"""The increment of PCG64; any odd number is valid."""


class ItemRandomness:
    """A random generator that is seeded anew for each item; one thread at a time may use it.

    Example:
        >>> random = ItemRandomness(3)
        >>> first = random.rng(7).random()
        >>> random.rng(8).random() != first, random.rng(7).random() == first
        (True, True)
    """

    __slots__ = ("_bits", "_fields", "_rng", "_seed", "_state")

    def __init__(self, seed: int) -> None:
        """Create the generator of one seed, ``0 <= seed < 2**64``."""
        self._seed = seed
        self._bits = np.random.PCG64(0)
        self._rng = np.random.Generator(self._bits)
        self._fields: dict[str, int] = {"state": 0, "inc": _INCREMENT}
        self._state: dict[str, Any] = {
            "bit_generator": "PCG64",
            "state": self._fields,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def rng(self, token: Any) -> np.random.Generator:
        """Return the generator, set to the start of the item's stream; valid until the next call."""
        text = b"%d" % token if type(token) is int else canonical_json(token)
        self._fields["state"] = xxhash.xxh3_128_intdigest(text, self._seed)
        self._bits.state = self._state  # type: ignore[assignment]  # numpy takes any dict of these keys
        return self._rng


@final
@dataclass(frozen=True, eq=False, repr=False)
class Map(EachRecordNode):
    """``fn(record)``, or ``fn(record, rng)`` where a seed is given, at each position; a hole stays one."""

    child: Node
    fn: Callable[..., Any]
    seed: int | None
    version: str | int | None

    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        """Raise an error for a function without a name that a description can hold."""
        describe_function(self.fn, self.version)

    @property
    def steady(self) -> bool:
        """True if the child is steady and there is no seed; a seed draws anew in each epoch."""
        return self.child.steady and self.seed is None

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the name of the function, and the seed."""
        seed = {} if self.seed is None else {"seed": self.seed}
        return {"fn": describe_function(self.fn, self.version), **seed}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``map``."""
        seed = "" if self.seed is None else f", rng=True, seed={self.seed}"
        return f"{children[0]}.map({describe_function(self.fn, self.version)['name']}{seed})"

    @classmethod
    def reader(cls, nodes: Sequence[Map]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _MapPlan)

    def record(self, position: int) -> Any:
        """Read one record and return the function's result."""
        record = self.child.record(position)
        if record is HOLE:
            return record
        try:
            if self.seed is None:
                return self.fn(record)
            return self.fn(record, self.randomness.rng(position))
        except Exception as error:
            add_place(error, f"the function of {self!r}", self, position)
            raise

    @property
    def randomness(self) -> ItemRandomness:
        """The random generator of this thread."""
        local = self._local
        if not hasattr(local, "randomness"):
            assert self.seed is not None
            local.randomness = ItemRandomness(self.seed)
        randomness: ItemRandomness = local.randomness
        return randomness

    @cached
    def _local(self) -> threading.local:
        return threading.local()


@final
class _MapPlan(UnaryPlan):
    """Calls the function of each record's node."""

    def read(self) -> list[Any]:
        records = self.child.read()
        if self.which.size == 1:
            self._call(self.nodes[int(self.which[0])], range(len(records)), records)
        else:
            for i in present(self.which):
                self._call(self.nodes[i], np.flatnonzero(self.which == i).tolist(), records)
        return records

    def _call(self, node: Map, at: Sequence[int], records: list[Any]) -> None:
        """Replace the records at some indices by the results of the node's function."""
        fn = node.fn
        i = -1
        try:
            if node.seed is None:
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        records[i] = fn(record)
            else:
                rng = node.randomness.rng
                positions = self.positions.tolist()
                for i in at:
                    record = records[i]
                    if record is not HOLE:
                        records[i] = fn(record, rng(positions[i]))
        except Exception as error:
            add_place(error, f"the function of {node!r}", node, int(self.positions[i]))
            raise


@final
@dataclass(frozen=True, eq=False, repr=False)
class MapBatches(EachRecordNode):
    """``fn(records)``, called with up to ``at_once`` records without holes, returns as many."""

    child: Node
    fn: Callable[[list[Any]], Any]
    at_once: int
    version: str | int | None

    kind: ClassVar[str] = "map_batches"

    def __post_init__(self) -> None:
        """Raise an error for a function without a name that a description can hold."""
        describe_function(self.fn, self.version)

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the name of the function; the number of records in a call has no effect on them."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``map_batches``."""
        name = describe_function(self.fn, self.version)["name"]
        return f"{children[0]}.map_batches({name}, size={self.at_once})"

    @classmethod
    def reader(cls, nodes: Sequence[MapBatches]) -> Reader:
        """Return a reader that plans the children of all nodes together."""
        return UnaryReader(nodes, _MapBatchesPlan)

    def record(self, position: int) -> Any:
        """Read one record and call the function with a list of that one."""
        record = self.child.record(position)
        return record if record is HOLE else self.called([record])[0]

    def called(self, records: list[Any]) -> list[Any]:
        """Call the function and check that it returns as many records."""
        made = self.fn(records)
        name = describe_function(self.fn, self.version)["name"]
        try:
            count = len(made)
        except TypeError:
            message = f"{name} must return a list of records (got {type(made).__name__})"
            raise WrongType(message) from None
        if isinstance(made, dict) or count != len(records):
            message = (
                f"{name} must return a list of as many records as it is given, {len(records)} "
                f"(got a {type(made).__name__} of {count})"
            )
            raise InvalidArgument(message)
        return list(made)


@final
class _MapBatchesPlan(UnaryPlan):
    """Calls the functions with the records of each node."""

    def read(self) -> list[Any]:
        records = self.child.read()
        owners = np.broadcast_to(self.which, len(self))
        there = np.array([record is not HOLE for record in records], dtype=np.bool_)
        for i in np.unique(owners):
            node = self.nodes[int(i)]
            places = np.flatnonzero((owners == i) & there)
            for first in range(0, places.size, node.at_once):
                at = places[first : first + node.at_once].tolist()
                for place, record in zip(at, node.called([records[place] for place in at]), strict=True):
                    records[place] = record
        return records
