"""The methods of a dataset that choose and order its records; each returns another dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from seekable._arguments import checked_count, checked_epoch, checked_flag, checked_seed
from seekable._lazy import lazy
from seekable.dataset.face import Face
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.batch import Batch
from seekable.nodes.epoch import Epoch
from seekable.nodes.interleave import Interleave
from seekable.nodes.map import Map
from seekable.nodes.repeat import Repeat
from seekable.nodes.select import Sample, Select
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import sliced, spaced
from seekable.nodes.split import split
from seekable.nodes.windowed import WindowedShuffle

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable.nodes import filter as filter_node
    from seekable.nodes import filter_rows, map_batches, stratified
    from seekable.parallel.progress import ProgressHook
else:
    filter_node = lazy("seekable.nodes.filter")
    filter_rows = lazy("seekable.nodes.filter_rows")
    map_batches = lazy("seekable.nodes.map_batches")
    stratified = lazy("seekable.nodes.stratified")

__all__ = ["Ordering"]


class Ordering(Face):
    """Methods that choose and order records; each returns a new dataset and leaves this one as it is."""

    __slots__ = ()

    def shuffle(
        self, seed: int, *, window: int | None = None, lanes: int | None = None, fixed: bool = False
    ) -> Self:
        """Return the records in a random order, a new permutation in each epoch, computed as rows are read.

        With a ``window`` the permutation is a local one, for data that does not stay in memory: blocks of
        rows that are cheap to read together are permuted and dealt to ``lanes``, and each lane reads its rows
        in an order that is random within a few blocks at a time.

        Args:
            seed: ``0 <= seed < 2**64``. The same seed and length give the same order anywhere; with a window,
                the same blocks and lanes too.
            window: the number of blocks that a lane reads within at a time; None for the whole dataset.
                Blocks are runs of 1,024 rows that do not cross files.
            lanes: the number of lanes, 1 if left out; only with a window. Row ``r`` is in lane ``r % lanes``;
                as many ranks can share the lanes without reading each other's blocks.
            fixed: True to give every epoch the order of epoch 0; the rows are then steady.

        Raises:
            InvalidArgument: an argument breaks a rule.
            EndlessDataset: the dataset has no length.

        Warns:
            CacheTooSmall: the windows of all lanes hold more bytes than stay in memory.

        Example:
            >>> import seekable as sk
            >>> sorted(sk.from_sequence(range(5)).shuffle(seed=7))
            [0, 1, 2, 3, 4]
            >>> local = sk.from_sequence(range(100_000)).shuffle(seed=7, window=4, lanes=2)
            >>> len({row // 1024 for row in local[:4096:2]}) <= 4
            True
        """
        seed, fixed = checked_seed(seed), checked_flag("fixed", fixed)
        if window is None:
            if lanes is not None:
                message = "lanes= is for shuffle(window=), which keeps a lane's reads near"
                raise InvalidArgument(f"{message} (got lanes={lanes!r})")
            return self._over(Shuffle(self._node, seed, fixed))
        window = checked_count("window", window, least=1)
        lanes = checked_count("lanes", 1 if lanes is None else lanes, least=1)
        return self._over(WindowedShuffle(self._node, seed, window, lanes, fixed))

    def interleave(self, *, lanes: int) -> Self:
        """Return the natural order cut into equal runs, one for each lane, that are dealt out in turn.

        Args:
            lanes: the number of runs; row ``r`` is the next row of run ``r % lanes``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("aaabbb").interleave(lanes=2))
            ['a', 'b', 'a', 'b', 'a', 'b']
        """
        return self._over(Interleave(self._node, checked_count("lanes", lanes, least=1)))

    def map(
        self,
        fn: Callable[..., Any],
        *,
        rng: bool = False,
        seed: int | None = None,
        version: str | int | None = None,
    ) -> Self:
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
        if rng != (seed is not None):
            message = f"map(rng=True) needs seed=, and only then takes it (got rng={rng!r}, seed={seed!r})"
            raise InvalidArgument(message)
        return self._over(Map(self._node, fn, None if seed is None else checked_seed(seed), version))

    def map_batches(
        self, fn: Callable[[list[Any]], Any], *, size: int = 256, version: str | int | None = None
    ) -> Self:
        """Return the records that ``fn(list of records)`` returns, as many as it is given.

        Args:
            fn: called with up to ``size`` records; the result for a record must not depend on the others.
            size: the most records in a call.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence([1, 2, 3]).map_batches(lambda xs: [x * 10 for x in xs]))
            [10, 20, 30]
        """
        size = checked_count("size", size, least=1)
        return self._over(map_batches.MapBatches(self._node, fn, size, version))

    def filter(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        where: Any = None,
        files: str | Sequence[str] | None = None,
        limit: int | None = None,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
    ) -> Self:
        """Return the rows whose records pass; every record is read now, once.

        The kept rows lie in a memory-mapped file: a temporary one, or with ``save`` one that later runs and
        other processes open without reading records. Of several processes at once one filters, others wait.

        Args:
            fn: returns True for the records to keep. It may be called in other processes and in any order.
            where: conditions on columns, ``[("lang", "==", "de"), ("n", "<", 9)]``, all of which must hold,
                or lists of those, one of which must. Operators are ``==``, ``!=``, ``<``, ``<=``, ``>``,
                ``>=``, ``in``, ``not in``, ``is null`` and ``is not null``; a missing column is null, and
                null passes nothing but ``is null``. Only these columns are read, and of tables no rows that
                statistics rule out.
            files: a pattern of files, or several: ``"*2024*"`` is compared with names below the folder that
                was opened, ``"/data/*"`` with whole paths. No record is read.
            limit: the most rows to keep: the first. Reading stops there.
            save: a file for the kept rows, ``"kept.u64"``; the description of the dataset they are rows of is
                put beside it, in ``"kept.u64.json"``.
            version: stands for the function's code, to be changed with it; else a digest of code, constants,
                defaults and closure does.
            jobs: the number of processes; 1 for this one alone. By default more are started if that pays.
            executor: any ``concurrent.futures.Executor`` to filter with instead.
            progress: called as it goes on; by default a bar on a terminal.

        Raises:
            InvalidArgument: the rows are not the same in every epoch, or ``save`` names something else.
            MissingColumn: there is no column of the name in a condition.
            WrongType: a condition compares values of different kinds, such as a number and a text.
            StateMismatch: the saved rows are those of another dataset or function.
            CorruptState: the saved rows are damaged.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(10)).filter(lambda number: number % 3 == 0))
            [0, 3, 6, 9]
            >>> list(sk.from_sequence([{"n": 1}, {"n": 5}]).filter(where=[("n", ">", 2)]))
            [{'n': 5}]
        """
        chosen = filter_rows.choice(fn, where=where, files=files, limit=limit, version=version)
        kept = filter_node.filtered(
            self._node, chosen, save=save, jobs=jobs, executor=executor, progress=progress
        )
        return self._over(kept)

    def filter_batches(
        self,
        fn: Callable[[list[Any]], Any],
        *,
        size: int = 256,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        progress: ProgressHook | None = None,
    ) -> Self:
        """Return the rows that a function of many records passes; all else is as in ``filter``.

        Args:
            fn: called with up to ``size`` records; returns for each, whatever the others, True to keep it.
            size: the most records in a call.
            save: as in ``filter``.
            version: as in ``filter``.
            jobs: as in ``filter``.
            progress: as in ``filter``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(6)).filter_batches(lambda numbers: [n > 3 for n in numbers]))
            [4, 5]
        """
        chosen = filter_rows.choice(fn, together=checked_count("size", size, least=1), version=version)
        kept = filter_node.filtered(
            self._node, chosen, save=save, jobs=jobs, executor=None, progress=progress
        )
        return self._over(kept)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Self:
        """Return the given rows in the given order; rows may repeat, and negative ones count from the end.

        Raises:
            WrongType: ``rows`` is no flat list of integers.
            OutOfRange: a row that the dataset does not have.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").select([2, 0, 2]))
            ['c', 'a', 'c']
        """
        return self._over(Select(self._node, np.asarray(rows)))

    def take(self, n: int) -> Self:
        """Return the first ``n`` rows of each epoch; of an endless dataset, epochs of ``n`` records.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").take(2))
            ['a', 'b']
        """
        n = checked_count("n", n, least=0)
        size = self._node.size
        return self._over(sliced(self._node, range(n if size is None else min(n, size))))

    def limit(self, n: int) -> Self:
        """Return the first ``n`` rows of each epoch, as ``take``; ``filter(limit=)`` reads less for that.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").limit(2))
            ['a', 'b']
        """
        return self.take(n)

    def skip(self, n: int) -> Self:
        """Return all but the first ``n`` rows of each epoch; of an endless dataset, all but the first ``n``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").skip(2))
            ['c']
        """
        return self._over(spaced(self._node, checked_count("n", n, least=0), 1))

    def shard(self, i: int, *, of: int) -> Self:
        """Return shard ``i`` of ``of`` shards: rows ``i``, ``i + of``, ``i + 2 * of`` ... of each epoch.

        Raises:
            InvalidArgument: ``of`` is below 1, or ``i`` is not at least 0 and below ``of``.
            WrongType: ``i`` or ``of`` is no integer.

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
        return self._over(spaced(self._node, i, of))

    def sample(self, n: int, *, seed: int) -> Self:
        """Return ``n`` distinct rows, drawn once, in the order that they have here.

        Args:
            n: the number of rows, at most the number of records.
            seed: ``0 <= seed < 2**64``. The same seed and number of records give the same rows anywhere.

        Raises:
            InvalidArgument: there are fewer than ``n`` rows, or they are not the same in every epoch.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(1000)).sample(4, seed=7))
            [44, 195, 325, 515]
        """
        return self._over(Sample(self._node, checked_count("n", n, least=0), checked_seed(seed)))

    def merge(self, other: Self) -> Self:
        """Return the rows of this dataset, then those of another that are not among them.

        Two rows are the same if they are the same row of the same file; no record is read.

        Raises:
            WrongType: ``other`` is no Dataset.
            InvalidArgument: rows are not the same in every epoch, or records are made of several.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence("abcdef")
            >>> list(ds[:3].merge(ds[1:5]))
            ['a', 'b', 'c', 'd', 'e']
        """
        if not isinstance(other, Face):
            message = f"merge() takes a Dataset (got a {type(other).__name__}): wrap it in sk.from_sequence"
            raise WrongType(message)
        return self._over(filter_node.merged(self._node, other.node))

    def repeat(self, n: int) -> Self:
        """Return ``n`` epochs, one after another, as one.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab").repeat(2))
            ['a', 'b', 'a', 'b']
        """
        return self._over(Repeat(self._node, checked_count("n", n, least=1)))

    def batch(self, k: int) -> Self:
        """Return lists of ``k`` consecutive records; the last one of an epoch may be short.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").batch(2))
            [['a', 'b'], ['c']]
        """
        return self._over(Batch(self._node, checked_count("k", k, least=1)))

    def epoch(self, e: int) -> Self:
        """Return the view of one epoch: every epoch of the view is epoch ``e``.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence(range(100)).shuffle(seed=1)
            >>> list(ds.epoch(0)) == list(ds), list(ds.epoch(1)) == list(ds)
            (True, False)
        """
        return self._over(Epoch(self._node, checked_epoch(e, self._node.size)))

    def split(
        self, shares: Mapping[str, float], *, seed: int, by: str | Callable[[Any], Any] | None = None
    ) -> dict[str, Self]:
        """Deal the rows to named parts, each in ascending order.

        Rows are dealt inside blocks of 1,000, so appended data never moves an old row to another part; a part
        has exactly its share of every whole block.

        Args:
            shares: the share of each part; they sum to 1.
            seed: ``0 <= seed < 2**64``.
            by: a column, or a function of the record: each of its values is split by these shares by itself.
                All records are read now.

        Raises:
            InvalidArgument: the shares break a rule, or the rows are not the same in every epoch.

        Example:
            >>> import seekable as sk
            >>> parts = sk.from_sequence(range(10_000)).split({"train": 0.9, "test": 0.1}, seed=0)
            >>> {name: len(part) for name, part in parts.items()}
            {'train': 9000, 'test': 1000}
        """
        seed = checked_seed(seed)
        if by is not None:
            nodes = stratified.stratified(self._node, shares, seed, by)
            return {name: self._over(node) for name, node in nodes.items()}
        return {name: self._over(node) for name, node in split(self._node, shares, seed).items()}
