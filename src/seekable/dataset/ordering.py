"""The methods of a dataset that order, cut or map its records; each returns another dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from seekable._arguments import AT_ONCE, checked_count, checked_epoch, checked_flag, checked_seed
from seekable.dataset.face import Face
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.epoch import Epoch
from seekable.nodes.interleave import Interleave
from seekable.nodes.map import Map, MapBatches
from seekable.nodes.repeat import Repeat
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.slice import sliced, spaced
from seekable.nodes.windowed import WindowedShuffle

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ordering"]


class Ordering(Face):
    """Methods that order, cut or map records; each returns a new dataset and leaves this one as it is."""

    __slots__ = ()

    def shuffle(
        self,
        seed: int,
        *,
        window: int | None = None,
        lanes: int | None = None,
        fixed: bool = False,
        block_rows: int | None = None,
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
            block_rows: the most rows of a block, if not 1,024; only with a window. Blocks of the files are
                joined while they fit, and longer ones are cut. Over an object store a block should be 1 MB or
                more, because it is fetched by one request.

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
            for name, value in (("lanes", lanes), ("block_rows", block_rows)):
                if value is not None:
                    message = f"{name}= is for shuffle(window=), which keeps a lane's reads near"
                    raise InvalidArgument(f"{message} (got {name}={value!r})")
            return self._over(Shuffle(self._node, seed, fixed))
        window = checked_count("window", window, least=1)
        lanes = checked_count("lanes", 1 if lanes is None else lanes, least=1, below=AT_ONCE)
        block_rows = None if block_rows is None else checked_count("block_rows", block_rows, least=1)
        return self._over(WindowedShuffle(self._node, seed, window, lanes, fixed, block_rows))

    def __add__(self, other: Self) -> Self:
        """Return ``sk.concat([self, other])``: the records of this dataset, then those of another.

        Raises:
            WrongType: ``other`` is no Dataset.
            EndlessDataset: one of them has no end.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab") + sk.from_sequence("cd"))
            ['a', 'b', 'c', 'd']
        """
        if not isinstance(other, Face):
            message = f"a Dataset + takes another Dataset (got a {type(other).__name__}): "
            raise WrongType(message + "wrap a list in sk.from_sequence; a stream takes dataset.stream()")
        return self._over(Concat((self._node, other.node)))

    def interleave(self, *, lanes: int) -> Self:
        """Return the natural order cut into equal runs, one for each lane, that are dealt out in turn.

        Args:
            lanes: the number of runs; row ``r`` is the next row of run ``r % lanes``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("aaabbb").interleave(lanes=2))
            ['a', 'b', 'a', 'b', 'a', 'b']
        """
        return self._over(Interleave(self._node, checked_count("lanes", lanes, least=1, below=AT_ONCE)))

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
        return self._over(MapBatches(self._node, fn, size, version))

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
