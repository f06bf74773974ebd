"""The records that decide which columns a table has: some of a dataset, or the first in a stream."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.display import describe_row
from seekable.nodes.readahead import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.node import Node
    from seekable.writing.write_source import LanedItems

__all__ = ["DatasetPreview", "StreamPreview", "looked_at"]

_FIRST, _SPREAD = 256, 768

_LEAST_ITEMS, _ENOUGH_BYTES = 16, 2 << 20
"""The first items of a stream are made twice, so fewer of them are looked at where they are large."""


def looked_at(records: int) -> NDArray[np.int64]:
    """Return the rows that a schema is inferred from: all of 1,024, or the first 256 and 768 at even steps.

    Example:
        >>> rows = looked_at(1_000_000)
        >>> len(rows), rows[255:258].tolist(), rows[-1].item()
        (1024, [255, 1556, 2858], 999999)
    """
    if records <= _FIRST + _SPREAD:
        return np.arange(records, dtype=np.int64)
    steps = np.arange(1, _SPREAD + 1, dtype=object)
    spread = _FIRST - 1 + (records - _FIRST) * steps // _SPREAD
    return np.concatenate([np.arange(_FIRST, dtype=np.int64), spread.astype(np.int64)])


@dataclass(frozen=True, slots=True)
class DatasetPreview:
    """Up to 1,024 records of a dataset, from the first to the last."""

    dataset: Node
    records: int
    """The number of records of the dataset."""

    @property
    def is_empty(self) -> bool:
        """True if the dataset has no records."""
        return self.records == 0

    @property
    def is_all(self) -> bool:
        """True if all records of the dataset are looked at."""
        return self.records <= _FIRST + _SPREAD

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the dataset, as its sources declare them."""
        return self.dataset.declared()

    def read(self) -> Iterator[tuple[Sequence[Any], Callable[[int], str]]]:
        """Yield the records of the rows that `looked_at` returns."""
        rows = looked_at(self.records)
        for first, records in read_rows(self.dataset, rows):

            def name(place: int, first: int = first) -> str:
                return describe_row(self.dataset, int(rows[first + place]))

            yield records, name


@dataclass(frozen=True, slots=True)
class StreamPreview:
    """The first items of a stream: 1,024, or fewer if they have 2 MiB, but at least 16."""

    items: LanedItems

    @property
    def is_empty(self) -> bool:
        """True if no lane has an item."""
        return not any(True for lane in range(self.items.lanes) for _ in self.items.run(lane, None))

    @property
    def is_all(self) -> bool:
        """False: a stream may have more items."""
        return False

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns of the items, as the sources of the stream declare them."""
        return self.items.declared()

    def read(self) -> Iterator[tuple[Sequence[Any], Callable[[int], str]]]:
        """Yield the items one by one, in the order of slots."""
        lanes = {lane: iter(self.items.run(lane, None)) for lane in range(self.items.lanes)}
        size = 0
        for number, (lane, (token, item)) in enumerate(islice(_in_turn(lanes), _FIRST + _SPREAD)):
            if number >= _LEAST_ITEMS and size >= _ENOUGH_BYTES:
                return
            size += _bytes(item)

            def name(_: int, lane: int = lane, token: Any = token) -> str:
                return self.items.named(lane, token)

            yield [item], name


def _bytes(value: Any) -> int:
    """Return about the number of bytes of a value in columns."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return 8


def _in_turn(lanes: dict[int, Iterator[tuple[Any, Any]]]) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Yield the items of lanes in turn, each after its lane, until all lanes have ended."""
    left = list(lanes)
    while left:
        for lane in list(left):
            pair = next(lanes[lane], None)
            if pair is None:
                left.remove(lane)
            else:
                yield lane, pair
