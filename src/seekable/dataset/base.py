"""The public face of every dataset."""

from __future__ import annotations

import operator
import os
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from seekable._arguments import checked_count, checked_epoch, out_of_range
from seekable._cached import cached
from seekable.dataset.fluent import Fluent
from seekable.dataset.fluent_batches import Columnar
from seekable.dataset.fluent_columns import ColumnTools
from seekable.dataset.fluent_rows import RowTools
from seekable.dataset.fluent_writing import Writing
from seekable.dataset.position import Position, checked_places, checked_position
from seekable.dataset.show import explained, expression
from seekable.errors import EndlessDataset, InvalidArgument, OutOfRange, WrongType
from seekable.nodes.compile import Forest
from seekable.nodes.contract import Node, Within
from seekable.nodes.keys.key import asked_key
from seekable.nodes.keys.lookup import Lookup
from seekable.nodes.readahead import Ahead
from seekable.state.canonical import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.contract import Plan

__all__ = ["Dataset", "known_size", "must_be_steady"]

_AHEAD = 4096
"""Positions whose order is resolved in one go."""

_AT_ONCE = 64
"""Records that plain iteration reads in one go."""

_ONLY_ROOT = np.zeros(1, dtype=np.int64)


class Dataset(Node, Fluent, RowTools, ColumnTools, Columnar, Writing):
    """A function from positions to records; position ``p`` is row ``p % n`` of epoch ``p // n``.

    Datasets are immutable descriptions: combining them reads nothing, and they may be shared by threads,
    forked, pickled and iterated over several times at once. They come from ``seekable.open`` and
    ``seekable.from_sequence``.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(["a", "b", "c", "d"]).shuffle(seed=1)
        >>> len(ds), sorted(ds), ds[[0, 1]] == [ds[0], ds[1]]
        (4, ['a', 'b', 'c', 'd'], True)
    """

    def __len__(self) -> int:
        """Return the number of records of an epoch.

        Raises:
            EndlessDataset: the dataset has no end (a TypeError, as of other things without a length).
        """
        return known_size(self, "len()")

    def __bool__(self) -> bool:
        """Return whether there is any record."""
        return self.size != 0

    def __iter__(self) -> Iterator[Any]:
        """Yield the records of epoch 0 once."""
        start = 0
        while self.size is None or start < self.size:
            stop = start + _AHEAD if self.size is None else min(start + _AHEAD, self.size)
            plan = self.plan(np.arange(start, stop, dtype=np.int64))
            ahead = Ahead(plan)
            for first in range(0, stop - start, _AT_ONCE):
                last = min(first + _AT_ONCE, stop - start)
                ahead.read_to(last)
                yield from plan.slice(first, last).read()
            start = stop

    def __getitem__(self, rows: Any) -> Any:
        """Return a record, a list of records in the order asked, or the Dataset of a slice.

        Of tables that are decoded as ``"numpy"`` or ``"arrow"`` a list of rows gives a dict of arrays, or a
        record batch.

        Args:
            rows: a row of epoch 0, ``-n <= row < n``; a list, tuple or array of those; or a slice. A
                ``Position``, or a list or tuple of those, means records of any epoch.

        Raises:
            OutOfRange: a row that the dataset does not have (an IndexError).
            CorruptRecord: a record that cannot be decoded.
            IndexStale: the file changed since it was indexed.
        """
        # Plain integers first: single records are asked for one by one.
        size = self.size
        if type(rows) is int and size is not None and 0 <= rows < size:
            return self.record(rows)
        if isinstance(rows, slice):
            return self._sliced(rows)
        if isinstance(rows, list | tuple | np.ndarray):
            return self.batch_at(checked_places(rows, self.size))
        return self.record(self._row(rows))

    def __getitems__(self, rows: Sequence[int]) -> list[Any]:
        """Return the records of some rows of epoch 0, or positions: the name that PyTorch's loaders call."""
        records: list[Any] = self.batch_at(checked_places(rows, self.size))
        return records

    _getitems = __getitems__

    def fetch(self, positions: NDArray[np.int64]) -> list[Any]:
        """Return the records at some positions, 0 or more each, of any epochs, in the order asked."""
        return self.plan(positions).read()

    def plan(self, positions: NDArray[np.int64]) -> Plan:
        """Return what to read for some positions; nothing is read yet."""
        return self._forest.plan(_ONLY_ROOT, positions)

    def locate(self, rows: Any) -> Any:
        """Return where a row of epoch 0 lies, or a list of rows.

        Returns:
            A ``Location`` (absolute path, row in the file, byte offset, length without the line end); of a
            batch a list of them, of a zip a tuple.

        Raises:
            OutOfRange: a row that the dataset does not have.
        """
        if isinstance(rows, list | tuple | np.ndarray):
            return self.plan(checked_places(rows, self.size)).locate()
        return self.plan(np.array([self._row(rows)], dtype=np.int64)).locate()[0]

    def find(self, path: str | os.PathLike[str], row: int, *, epoch: int = 0) -> list[int]:
        """Return the sorted positions at which a row of a file comes in an epoch.

        The order is inverted, not searched: the cost does not grow with the number of records.

        Args:
            path: the file.
            row: the record's number in the file, from 0.
            epoch: the epoch of this dataset; of an endless one, the epoch of the source.

        Returns:
            The absolute positions; those of epoch ``e`` lie from ``e * n`` on.
        """
        row = checked_count("row", row, least=0)
        epoch = checked_epoch(epoch, self.size)
        stop = None if self.size is None else (epoch + 1) * self.size
        start = 0 if self.size is None else epoch * self.size
        place = os.fspath(path)
        place = place if place.startswith(("<", "hf://")) else os.path.abspath(place)
        found = self.find_within(lambda leaf: leaf.rows_of(place, row), Within(start, stop, epoch))
        return [int(position) for position in found]

    def key(self, key: Any) -> Any:
        """Return the record that has a key, or a list of records for a list of keys, in their order.

        The sources know their keys from ``sk.open(..., key=)``, and every node between must have the same
        rows in every epoch: map, concat, zip, filter, split, select and the like. Where the record comes
        several times (``select`` may repeat rows), it is the first of them.

        Args:
            key: a str or an int, which are different keys, or a list of those.

        Raises:
            KeyNotFound: no record of the dataset has the key (a KeyError).
            AmbiguousKey: several records have it (a KeyError).
            InvalidArgument: no source was opened with keys, or rows differ from epoch to epoch.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     lines = '{"id": "x", "n": 1}', '{"id": "y", "n": 2}'
            ...     _ = pathlib.Path(folder, "a.jsonl").write_text(chr(10).join(lines))
            ...     ds = sk.open(folder, key="id").map(lambda record: record["n"])
            ...     ds.key("y"), ds.key(["y", "x"])
            (2, [2, 1])
        """
        if isinstance(key, list | tuple | np.ndarray):
            positions = [self._lookup.position(asked_key(each)) for each in key]
            return self.fetch(np.array(positions, dtype=np.int64))
        return self._lookup.record(asked_key(key))

    @cached
    def _lookup(self) -> Lookup:
        must_be_steady(self, "key()")
        return Lookup(self, known_size(self, "key()"))

    @cached
    def fingerprint(self) -> str:
        """The digest of everything that decides the dataset's records and their order."""
        return fingerprint_of(self.describe(None))

    def fingerprint_at(self, position: int) -> str:
        """Return the digest of what decides the records before a position.

        It differs from ``fingerprint`` only where a mixture's schedule changes weights later than that.
        """
        if not self.scheduled:
            return self.fingerprint
        stage = self.stage(position)
        if stage not in self._staged:
            self._staged[stage] = fingerprint_of(self.describe(position))
        return self._staged[stage]

    def explain(self) -> str:
        """Return the pipeline as a tree: each node with its arguments, records and files."""
        return "\n".join(explained(self))

    def __repr__(self) -> str:
        """Show the number of records and the expression that makes the dataset."""
        records = "endless" if self.size is None else f"{self.size:,} record{'s' * (self.size != 1)}"
        return f"<Dataset, {records}: {expression(self)}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the description alone: no handles, offsets or anything that was compiled."""
        assert is_dataclass(self)
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached
    def _forest(self) -> Forest:
        return Forest([self])

    @cached
    def _staged(self) -> dict[tuple[str, ...], str]:
        return {}

    def _sliced(self, rows: slice) -> Dataset:
        if self.size is not None:
            return self.sliced(range(*rows.indices(self.size)))
        start = 0 if rows.start is None else operator.index(rows.start)
        stop = None if rows.stop is None else operator.index(rows.stop)
        step = 1 if rows.step is None else operator.index(rows.step)
        if start < 0 or step < 1 or (stop is not None and stop < 0):
            message = f"a slice of an endless dataset counts from its start, forwards (got {rows})"
            raise InvalidArgument(message)
        if stop is None:
            return self.skip(start) if step == 1 else self.sliced_endless(start, step)
        return self.sliced(range(start, max(start, stop), step))

    def _row(self, row: SupportsIndex) -> int:
        if type(row) is Position:
            return checked_position(row)
        try:
            number = operator.index(row)
        except TypeError:
            message = f"a row is an integer, a list of them or a slice (got {row!r}: {type(row).__name__})"
            raise WrongType(message) from None
        size = self.size
        if number >= 0 and (size is None or number < size):
            return number
        if size is not None and -size <= number < 0:
            return number + size
        raise OutOfRange(out_of_range(number, size))


def known_size(dataset: Node, wanted_by: str) -> int:
    """Return the records of an epoch, where something needs to know it.

    Raises:
        EndlessDataset: there is no end; the message names what asked and the way out.
    """
    if dataset.size is None:
        message = f"{wanted_by} needs a length, and this dataset is endless: cut it with take(k) first"
        raise EndlessDataset(message)
    return dataset.size


def must_be_steady(dataset: Node, wanted_by: str) -> None:
    """Refuse a dataset whose rows are not the same record in every epoch.

    Raises:
        InvalidArgument: they are not; the message names what asked and the way out.
    """
    if not dataset.steady:
        message = (
            f"{wanted_by} needs rows that are the same record in every epoch, and here they are not: "
            f"put it before shuffle, mix and map(rng=True)"
        )
        raise InvalidArgument(message)
