"""The combinators as methods, so that a pipeline reads from left to right.

Each method imports its node inside: nodes are datasets, so they import this class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from seekable._arguments import POSITIONS, checked_count, checked_epoch, checked_flag, checked_seed
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.dataset.base import Dataset
    from seekable.stream.stream import Stream

__all__ = ["Fluent"]


class Fluent:
    """What every dataset can be made into; nothing is read, and the dataset itself stays as it is."""

    def shuffle(
        self, seed: int, *, window: int | None = None, lanes: int | None = None, fixed: bool = False
    ) -> Dataset:
        """Return a permutation of the whole dataset, a new one each epoch.

        It takes no memory and no start-up: each row's place is computed when it is asked for. With a
        ``window`` it is a local one, for data that does not stay in memory: blocks of rows that are cheap to
        read together are permuted and dealt to ``lanes``, and each lane reads its rows in an order that is
        random within a few blocks at a time.

        Args:
            seed: ``0 <= seed < 2**64``. The same seed and length give the same order anywhere; with a window,
                the same blocks and lanes too.
            window: how many blocks a lane reads within at a time; None for all of the dataset. Blocks are
                runs of 1,024 rows that do not cross files.
            lanes: how many lanes rows are dealt to, row ``r`` to lane ``r % lanes``: as many ranks can share
                them without reading each other's blocks. 1 if left out; only with a window.
            fixed: whether all epochs have the one order of epoch 0.

        Raises:
            InvalidArgument: an argument breaks a rule.
            EndlessDataset: the dataset has no length.

        Warns:
            CacheTooSmall: the windows of all lanes hold more bytes than stay in memory.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence(range(5)).shuffle(seed=7)
            >>> sorted(ds) == sorted(ds.epoch(1)) == [0, 1, 2, 3, 4]
            True
            >>> local = sk.from_sequence(range(100_000)).shuffle(seed=7, window=4, lanes=2)
            >>> len({row // 1024 for row in local[:4096:2]}) <= 4
            True
        """
        from seekable.nodes.shuffle import Shuffle
        from seekable.nodes.windowed import WindowedShuffle

        seed, fixed = checked_seed(seed), checked_flag("fixed", fixed)
        if window is None:
            if lanes is not None:
                message = (
                    f"lanes= is for shuffle(window=), which keeps a lane's reads near (got lanes={lanes!r})"
                )
                raise InvalidArgument(message)
            return Shuffle(self._self, seed, fixed)
        window = checked_count("window", window, least=1)
        return WindowedShuffle(
            self._self, seed, window, checked_count("lanes", 1 if lanes is None else lanes, least=1), fixed
        )

    def interleave(self, *, lanes: int) -> Dataset:
        """Return the natural order cut into equal runs, one to a lane, that are dealt out in turn.

        So each of several ranks reads files from one end to the other, and not every file in part.

        Args:
            lanes: how many runs; row ``r`` is the next one of run ``r % lanes``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("aaabbb").interleave(lanes=2))
            ['a', 'b', 'a', 'b', 'a', 'b']
        """
        from seekable.nodes.interleave import Interleave

        return Interleave(self._self, checked_count("lanes", lanes, least=1))

    def map(
        self,
        fn: Callable[..., Any],
        *,
        rng: bool = False,
        seed: int | None = None,
        version: str | int | None = None,
    ) -> Dataset:
        """Return ``fn(record)`` for each record.

        Args:
            fn: called when a record is read. It enters the fingerprint by qualified name, not by its code.
            rng: call ``fn(record, rng)`` with a ``numpy.random.Generator`` that is keyed by the seed and the
                record's position, and valid only during the call.
            seed: required with ``rng``, refused without.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["a", "b"]).map(str.upper))
            ['A', 'B']
        """
        from seekable.nodes.map import Map

        if rng != (seed is not None):
            message = f"map(rng=True) needs seed=, and only then takes it (got rng={rng!r}, seed={seed!r})"
            raise InvalidArgument(message)
        return Map(self._self, fn, None if seed is None else checked_seed(seed), version)

    def map_batches(
        self, fn: Callable[[list[Any]], Any], *, size: int = 256, version: str | int | None = None
    ) -> Dataset:
        """Return the records that ``fn(list of records)`` returns, as many as it was given.

        Args:
            fn: called with up to ``size`` records that are read together. What it makes of a record must not
                depend on the others: which ones come together is not part of the order.
            size: the most records in a call.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence([1, 2, 3]).map_batches(lambda xs: [x * 10 for x in xs]))
            [10, 20, 30]
        """
        from seekable.nodes.map_batches import MapBatches

        return MapBatches(self._self, fn, checked_count("size", size, least=1), version)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Dataset:
        """Return the given rows in the given order; rows may repeat, and negative ones count from the end.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").select([2, 0, 2]))
            ['c', 'a', 'c']
        """
        from seekable.nodes.select import Select

        return Select(self._self, cast("NDArray[np.int64]", rows))

    def take(self, n: int) -> Dataset:
        """Return the first ``n`` rows of each epoch; of an endless dataset, epochs of ``n`` records.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").take(2))
            ['a', 'b']
        """
        n = checked_count("n", n, least=0)
        size = self._self.size
        return self.sliced(range(n if size is None else min(n, size)))

    def skip(self, n: int) -> Dataset:
        """Return all but the first ``n`` rows of each epoch; of an endless dataset, of all.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").skip(2))
            ['c']
        """
        n = checked_count("n", n, least=0)
        size = self._self.size
        return self.sliced_endless(n, 1) if size is None else self.sliced(range(min(n, size), size))

    def shard(self, i: int, *, of: int) -> Dataset:
        """Return rows ``i``, ``i + of``, ``i + 2 * of`` and so on of each epoch.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abcde").shard(1, of=2))
            ['b', 'd']
        """
        of = checked_count("of", of, least=1)
        i = checked_count("i", i, least=0)
        if i >= of:
            message = f"i must be below of={of} (got {i})"
            raise InvalidArgument(message)
        size = self._self.size
        return self.sliced_endless(i, of) if size is None else self.sliced(range(i, max(i, size), of))

    def sliced(self, rows: range) -> Dataset:
        """Return the rows of a range, which lie inside an epoch."""
        from seekable.nodes.slice import Slice

        return Slice(self._self, rows.start if rows else 0, rows.step, len(rows))

    def sliced_endless(self, start: int, step: int) -> Dataset:
        """Return every ``step``-th record from ``start`` on, without end."""
        from seekable.nodes.slice import Slice

        return Slice(self._self, start, step, None)

    def repeat(self, n: int) -> Dataset:
        """Return ``n`` epochs, one after another, as one.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab").repeat(2))
            ['a', 'b', 'a', 'b']
        """
        from seekable.nodes.repeat import Repeat

        return Repeat(self._self, checked_count("n", n, least=1))

    def batch(self, k: int) -> Dataset:
        """Return lists of ``k`` consecutive records; the last one of an epoch may be short.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").batch(2))
            [['a', 'b'], ['c']]
        """
        from seekable.nodes.batch import Batch

        return Batch(self._self, checked_count("k", k, least=1))

    def epoch(self, e: int) -> Dataset:
        """Return the view of one epoch: every epoch of the view is epoch ``e``.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence(range(100)).shuffle(seed=1)
            >>> list(ds.epoch(0)) == list(ds), list(ds.epoch(1)) == list(ds)
            (True, False)
        """
        from seekable.nodes.epoch import Epoch

        return Epoch(self._self, checked_epoch(e, self._self.size))

    def split(
        self, shares: Mapping[str, float], *, seed: int, by: str | Callable[[Any], Any] | None = None
    ) -> dict[str, Dataset]:
        """Deal the rows to named parts, each in ascending order.

        Rows are dealt inside blocks of 1,000, so data appended later never moves an old row to another part;
        a part is as large as its share to the row in every whole block.

        Args:
            shares: for each part its share; they sum to 1.
            seed: ``0 <= seed < 2**64``.
            by: a column, or a function of the record, whose values shall each be in all parts by these
                shares. Then the rows of each value are dealt by themselves, and all records are read now.

        Raises:
            InvalidArgument: the shares break a rule, or the rows are not the same in every epoch.

        Example:
            >>> import seekable as sk
            >>> parts = sk.from_sequence(range(10_000)).split({"train": 0.9, "test": 0.1}, seed=0)
            >>> {name: len(part) for name, part in parts.items()}
            {'train': 9000, 'test': 1000}
        """
        from seekable.nodes.split import split
        from seekable.nodes.stratified import stratified

        if by is not None:
            return stratified(self._self, shares, checked_seed(seed), by)
        return split(self._self, shares, checked_seed(seed))

    def stream(self, *, lanes: int | None = None, epochs: int | None = None, start: int = 0) -> Stream:
        """Return the records as a stream: what may filter, flatten, pack and bucket as it goes.

        Lane ``l`` has the rows ``r % lanes == l`` of each epoch, in their order; slot ``s`` of the stream is
        the next item of lane ``s % lanes``. Ranks and workers share out the lanes, so their number is the
        most ranks that can share the stream, and does not change with them.

        Args:
            lanes: how many; those of the dataset's order if left out, mostly 1.
            epochs: after how many epochs it ends; never if left out.
            start: the position of the dataset with which it begins.

        Raises:
            InvalidArgument: an argument breaks a rule, or positions would not fit 64 bits.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(5)).stream(lanes=2, epochs=1).map(lambda n: n * n))
            [0, 1, 4, 9, 16]
        """
        from seekable.stream.source import FromDataset
        from seekable.stream.stream import Stream

        start = checked_count("start", start, least=0)
        epochs = None if epochs is None else checked_count("epochs", epochs, least=0)
        last = start + (epochs or 0) * (self._self.size or 0)
        if last >= POSITIONS:
            message = f"a stream must end before position 2**63 (got start={start}, epochs={epochs})"
            raise InvalidArgument(message)
        lanes = self._self.lanes if lanes is None else checked_count("lanes", lanes, least=1)
        return Stream(FromDataset(self._self, lanes, epochs, start))

    @property
    def _self(self) -> Dataset:
        return cast("Dataset", self)
