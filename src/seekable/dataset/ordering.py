"""The methods of a dataset that order, cut, map or choose its records; each returns another dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from seekable._arguments import (
    AT_ONCE,
    checked_count,
    checked_epoch,
    checked_flag,
    checked_fraction,
    checked_seed,
    explains_keywords,
    row_array,
)
from seekable._lazy import lazy
from seekable._other_words import FILTER, MAP, SHUFFLE
from seekable.dataset.face import Face
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.graph import known_size
from seekable.nodes.node import node_of
from seekable.nodes.shuffle import Shuffle

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from seekable.nodes import batch as batch_node
    from seekable.nodes import concat as concat_node
    from seekable.nodes import epoch as epoch_node
    from seekable.nodes import evaluated, rows_to_exclude, without_last
    from seekable.nodes import filter as filter_node
    from seekable.nodes import flatten as flatten_node
    from seekable.nodes import interleave as interleave_node
    from seekable.nodes import map as map_node
    from seekable.nodes import repeat as repeat_node
    from seekable.nodes import select as select_node
    from seekable.nodes import slice as slice_node
    from seekable.nodes import sort as sort_node
    from seekable.nodes import split as split_node
    from seekable.nodes import windowed as windowed_node
    from seekable.nodes import without as without_node
    from seekable.nodes.columns import names as column_names
    from seekable.nodes.columns import rename
    from seekable.parallel.progress import ProgressChoice
else:
    column_names = lazy("seekable.nodes.columns.names")
    rename = lazy("seekable.nodes.columns.rename")
    evaluated = lazy("seekable.nodes.evaluated")
    batch_node = lazy("seekable.nodes.batch")
    concat_node = lazy("seekable.nodes.concat")
    epoch_node = lazy("seekable.nodes.epoch")
    interleave_node = lazy("seekable.nodes.interleave")
    map_node = lazy("seekable.nodes.map")
    repeat_node = lazy("seekable.nodes.repeat")
    select_node = lazy("seekable.nodes.select")
    slice_node = lazy("seekable.nodes.slice")
    windowed_node = lazy("seekable.nodes.windowed")
    filter_node = lazy("seekable.nodes.filter")
    flatten_node = lazy("seekable.nodes.flatten")
    sort_node = lazy("seekable.nodes.sort")
    rows_to_exclude = lazy("seekable.nodes.rows_to_exclude")
    split_node = lazy("seekable.nodes.split")
    without_node = lazy("seekable.nodes.without")
    without_last = lazy("seekable.nodes.without_last")

__all__ = ["RowMethods"]


class RowMethods(Face):
    """Methods for the rows of a dataset; each returns a new dataset and leaves this one as it is."""

    __slots__ = ()

    @explains_keywords(SHUFFLE)
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
        return self._over(windowed_node.WindowedShuffle(self._node, seed, window, lanes, fixed, block_rows))

    def without(
        self, what: rows_to_exclude.Excludes, *, fill: Literal["replace", "hole"] = "replace"
    ) -> Self:
        """Return the dataset without some records; all others stay at their positions, in every epoch.

        In the place of a record comes another one of the same source, chosen as it was: one that passed the
        same filter, and is of the same split. In an epoch replacements are distinct, and in each epoch they
        are others: a kept record comes once or twice. Where ``k`` records are left out and fewer, ``K``, are
        kept, it comes between ``1 + k // K`` and ``1 + ceil(k / K)`` times. A replacement is a random read.

        ``filter``, ``split``, ``sort``, ``sample``, ``flatten`` and ``pack`` may come before or after it: the
        result is the same. No record is read, unless keys are given.

        Args:
            what: Locations as of ``locate``, or ``(path, row)`` pairs, whose paths are absolute or as below
                the folder that was opened; keys of a dataset that was opened with ``key=``; a dict of the
                names of a mixture's sources and row numbers, counted before a shuffle; a dataset over the
                same files; or the path of a file of JSON lines with ``path`` and ``row``.
            fill: ``"hole"`` for ``sk.HOLE`` in the place of a record, which batches and streams leave out.

        Raises:
            WrongType: ``what`` is nothing of these.
            DataNotFound: there is no such file in the dataset, or no such file of rows.
            OutOfRange: a file has no such row.
            KeyNotFound: no record has a key.
            InvalidArgument: nothing would be kept of a source, or records are tuples of ``zip`` whose parts
                were shuffled apart.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence("abcdef", version=1).shuffle(seed=1)
            >>> clean = ds.without([ds.locate(2)])
            >>> "".join(ds), "".join(clean), "".join(clean.epoch(1))
            ('afebdc', 'afabdc', 'fdaabc')
        """
        if fill not in ("replace", "hole"):
            message = f"fill must be 'replace' or 'hole' (got {fill!r})"
            raise InvalidArgument(message)
        rows = rows_to_exclude.excluded_rows(self._node, what)
        return self._over(without_node.excluded(self._node, rows, fill=fill))

    def __add__(self, other: Self) -> Self:
        """Return ``sk.concat([self, other])``: the records of this dataset, then those of another.

        Raises:
            WrongType: ``other`` is not a Dataset.
            EndlessDataset: one of them has no end.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab") + sk.from_sequence("cd"))
            ['a', 'b', 'c', 'd']
        """
        if not isinstance(other, Face):
            message = f"a Dataset + takes another Dataset (got a {type(other).__name__}): "
            raise WrongType(message + "wrap a list in sk.from_sequence; a stream takes dataset.stream()")
        return self._over(concat_node.Concat((self._node, node_of(other))))

    def interleave(self, *, lanes: int) -> Self:
        """Return the natural order cut into equal runs, one for each lane, that are dealt out in turn.

        Args:
            lanes: the number of runs; row ``r`` is the next row of run ``r % lanes``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("aaabbb").interleave(lanes=2))
            ['a', 'b', 'a', 'b', 'a', 'b']
        """
        return self._over(
            interleave_node.Interleave(self._node, checked_count("lanes", lanes, least=1, below=AT_ONCE))
        )

    @explains_keywords(MAP)
    def map(
        self,
        fn: Callable[..., Any],
        *,
        column: str | None = None,
        rng: bool = False,
        seed: int | None = None,
        version: str | int | None = None,
    ) -> Self:
        """Return ``fn(record)`` for each record, or the record with one more column.

        Args:
            fn: called when a record is read. It enters the fingerprint by qualified name, not by its code.
            column: put what ``fn`` returns into this column, beside or in place of those that the record has.
                The function is not called where no one uses the column.
            rng: call ``fn(record, rng)`` with a ``numpy.random.Generator`` that is keyed by the seed and the
                record's position, and valid only during the call.
            seed: required with ``rng``, refused without.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["a", "b"]).map(str.upper))
            ['A', 'B']
            >>> sk.from_sequence([{"id": 7}]).map(lambda record: record["id"] + 1, column="next")[0]
            {'id': 7, 'next': 8}
        """
        if rng != (seed is not None):
            message = f"map(rng=True) needs seed=, and only then takes it (got rng={rng!r}, seed={seed!r})"
            raise InvalidArgument(message)
        if column is not None:
            if rng:
                message = (
                    f"map(column=) goes without rng=True: put the column in the function (got {column!r})"
                )
                raise InvalidArgument(message)
            column = column_names.checked_name("map(column=)", column)
            return self._over(rename.Computed(self._node, column, fn, None, version))
        return self._over(map_node.Map(self._node, fn, None if seed is None else checked_seed(seed), version))

    def map_batches(
        self,
        fn: Callable[[list[Any]], Any],
        *,
        size: int = 256,
        column: str | None = None,
        version: str | int | None = None,
    ) -> Self:
        """Return the records that ``fn(list of records)`` returns, as many as it is given.

        Args:
            fn: called with up to ``size`` records; the result for a record must not depend on the others.
            size: the most records in a call.
            column: put the values that ``fn`` returns into this column of the records, as in ``map``.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence([1, 2, 3]).map_batches(lambda xs: [x * 10 for x in xs]))
            [10, 20, 30]
        """
        size = checked_count("size", size, least=1)
        if column is not None:
            column = column_names.checked_name("map_batches(column=)", column)
            return self._over(rename.Computed(self._node, column, fn, size, version))
        return self._over(map_node.MapBatches(self._node, fn, size, version))

    def take(self, n: int) -> Self:
        """Return the first ``n`` rows of each epoch; for an endless dataset, epochs of ``n`` records.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").take(2))
            ['a', 'b']
        """
        n = checked_count("n", n, least=0)
        size = self._node.size
        return self._over(slice_node.sliced(self._node, range(n if size is None else min(n, size))))

    def skip(self, n: int) -> Self:
        """Return all but the first ``n`` rows of each epoch; of an endless dataset, all but the first ``n``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").skip(2))
            ['c']
        """
        return self._over(slice_node.spaced(self._node, checked_count("n", n, least=0), 1))

    def shard(self, i: int, *, of: int) -> Self:
        """Return shard ``i`` of ``of`` shards: rows ``i``, ``i + of``, ``i + 2 * of`` ... of each epoch.

        Raises:
            InvalidArgument: ``of`` is below 1, or ``i`` is not at least 0 and below ``of``.
            WrongType: ``i`` or ``of`` is not an integer.

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
        return self._over(slice_node.spaced(self._node, i, of))

    def repeat(self, n: int) -> Self:
        """Return ``n`` epochs, one after another, as one.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab").repeat(2))
            ['a', 'b', 'a', 'b']
        """
        return self._over(repeat_node.Repeat(self._node, checked_count("n", n, least=1)))

    def batch(self, k: int) -> Self:
        """Return lists of ``k`` consecutive records; the last one of an epoch may be short.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").batch(2))
            [['a', 'b'], ['c']]
        """
        return self._over(batch_node.Batch(self._node, checked_count("k", k, least=1)))

    def epoch(self, e: int) -> Self:
        """Return the view of one epoch: every epoch of the view is epoch ``e``.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence(range(100)).shuffle(seed=1)
            >>> list(ds.epoch(0)) == list(ds), list(ds.epoch(1)) == list(ds)
            (True, False)
        """
        return self._over(epoch_node.Epoch(self._node, checked_epoch(e, self._node.size)))

    @explains_keywords(FILTER)
    def filter(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        columns: Iterable[str] | None = None,
        where: Any = None,
        files: str | Sequence[str] | None = None,
        limit: int | None = None,
        size: int | None = None,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
    ) -> Self:
        """Return the rows whose records pass; every record is read now, once.

        The kept rows lie in a memory-mapped file: a temporary one, or with ``save`` one that later runs and
        other processes open without reading records. Of several processes at once one filters, others wait.

        Args:
            fn: returns True for the records to keep. It may be called in other processes and in any order.
            columns: the columns of the records that ``fn`` is called with; nothing else is read for it, so an
                image beside a number is neither read nor decoded. A record has those of them that it has.
            where: conditions on columns, ``[("lang", "==", "de"), ("n", "<", 9)]``, all of which must hold,
                or lists of those, one of which must. Operators are ``==``, ``!=``, ``<``, ``<=``, ``>``,
                ``>=``, ``in``, ``not in``, ``is null`` and ``is not null``; a missing column is null, and
                null passes nothing but ``is null``. Only these columns are read, and of tables no rows that
                statistics rule out.
            files: a pattern of files, or several: ``"*2024*"`` is compared with names below the folder that
                was opened, ``"/data/*"`` with whole paths. No record is read.
            limit: the most rows to keep: the first. Reading stops there.
            size: call ``fn`` with lists of up to so many records instead; it returns for each, whatever the
                others, True to keep it.
            save: a file for the kept rows, ``"kept.u64"``; the description of the dataset they are rows of is
                put beside it, in ``"kept.u64.json"``.
            version: stands for the function's code, to be changed with it; else a digest of code, constants,
                defaults and closure does.
            jobs: the number of processes; 1 for this one alone. By default more are started if that pays.
            executor: any ``concurrent.futures.Executor`` to filter with instead.
            progress: a function that is called as it goes on; False for none. By default a bar on a terminal.

        Raises:
            InvalidArgument: the rows are not the same in every epoch, or ``save`` names something else.
            MissingColumn: no record has a column that is named in `where` or `columns`.
            WrongType: a condition compares values of different kinds, such as a number and a text.
            StateMismatch: the saved rows are those of another dataset or function.
            CorruptState: the saved rows are damaged.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(10)).filter(lambda number: number % 3 == 0))
            [0, 3, 6, 9]
            >>> list(sk.from_sequence([{"n": 1}, {"n": 5}]).filter(where=[("n", ">", 2)]))
            [{'n': 5}]
            >>> list(sk.from_sequence(range(6)).filter(lambda numbers: [n > 3 for n in numbers], size=256))
            [4, 5]
        """
        chosen = filter_node.choice(
            fn,
            where=where,
            files=files,
            limit=limit,
            version=version,
            columns=columns,
            together=None if size is None else checked_count("size", size, least=1),
        )
        running = evaluated.EvaluationOptions(save, jobs, executor, progress)
        below, left_out = without_last.set_aside(self._node, "filter()")
        return self._over(left_out(filter_node.filtered(below, chosen, running)))

    def flatten(
        self,
        fn: Callable[[Any], Iterable[Any]] | None = None,
        *,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
    ) -> Self:
        """Return the items of ``fn(record)`` for each record, in their order; every record is read now, once.

        Only the row of each item is kept, 8 bytes an item, in a memory-mapped file as in ``filter``. To read
        an item, its record is read and ``fn`` called again; once for items of a record that are read together
        or one after another. ``locate`` and ``find`` lead to the record; ``key`` to its first item.

        Args:
            fn: returns the items of a record, none, one or several; the same items for the same record each
                time. It may be called in other processes and in any order. Without a function the records
                themselves are lists of items. It enters the fingerprint by qualified name. A hole is an item.
            save: as in ``filter``.
            version: enters the fingerprint, and stands for the function's code in ``save``.
            jobs: as in ``filter``.
            executor: as in ``filter``.
            progress: as in ``filter``.

        Raises:
            InvalidArgument: the rows are not the same in every epoch, or ``save`` names something else.
            StateMismatch: the saved rows are those of another dataset or function.
            CorruptState: the saved rows are damaged.
            WrongType: ``fn`` returned something that is not iterable.
            BadValue: when an item is read: ``fn`` returns another number of items than it did here.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence(["to be", "", "or not"]).flatten(str.split)
            >>> len(words), words[3], words.locate(3).row
            (4, 'not', 2)
        """
        running = evaluated.EvaluationOptions(save, jobs, executor, progress)
        below, left_out = without_last.set_aside(self._node, "flatten()")
        return self._over(left_out(flatten_node.flattened(below, fn, version, running)))

    def sort(
        self,
        by: str | Callable[[Any], Any],
        *,
        reverse: bool = False,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
    ) -> Self:
        """Return the records in the order of a key; every record is read now, once.

        The order is kept as the rows of ``filter`` are: 8 bytes a record in a memory-mapped file. Records
        with equal keys stay in their order, so to sort by two keys, sort by the second, then by the first.
        Records whose key is NaN come last, after them those whose key is None, and after them holes, also in
        reverse. Sorting takes 12 bytes of memory a record, and temporary files of up to 32 bytes a record and
        the bytes of keys that are texts.

        Args:
            by: a column, or a function of the record. Keys are numbers, texts, bytes, dates, times or
                durations, all of one kind; integers and floats are compared exactly, texts as Python does.
            reverse: True for the largest key first.
            save: as in ``filter``.
            version: stands for the function's code in ``save``, to be changed with it.
            jobs: as in ``filter``; the order is the same for any number.
            executor: as in ``filter``.
            progress: as in ``filter``.

        Raises:
            InvalidArgument: the rows are not the same in every epoch, or ``save`` names something else.
            MissingColumn: a record has no column of this name.
            WrongType: keys are of several kinds, or of one that has no order; the file and the row are named.
            StateMismatch: the saved order is that of another dataset or function.
            CorruptState: the saved order is damaged.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["ccc", "a", "bb", "d"]).sort(len))
            ['a', 'd', 'bb', 'ccc']
            >>> list(sk.from_sequence([{"n": 1}, {"n": None}, {"n": 5}]).sort("n", reverse=True))
            [{'n': 5}, {'n': 1}, {'n': None}]
        """
        running = evaluated.EvaluationOptions(save, jobs, executor, progress)
        reverse = checked_flag("reverse", reverse)
        below, left_out = without_last.set_aside(self._node, "sort()")
        return self._over(
            left_out(sort_node.sorted_by(below, by, reverse=reverse, version=version, running=running))
        )

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Self:
        """Return the given rows in the given order; rows may repeat, and negative ones count from the end.

        Raises:
            WrongType: ``rows`` is not a flat list of integers.
            OutOfRange: a row that the dataset does not have.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").select([2, 0, 2]))
            ['c', 'a', 'c']
        """
        return self._over(select_node.Select(self._node, row_array(rows)))

    def sample(self, n: int | None = None, *, fraction: float | None = None, seed: int) -> Self:
        """Return some distinct rows, drawn once, in the order that they have here.

        Args:
            n: the number of rows, at most the number of records.
            fraction: instead of ``n``: the share of all rows, from 0 to 1. The number of rows is rounded, a
                half to the even number.
            seed: ``0 <= seed < 2**64``. The same seed and number of records give the same rows anywhere.

        Raises:
            InvalidArgument: there are fewer than ``n`` rows, or they are not the same in every epoch; or not
                just one of ``n`` and ``fraction`` is given.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(1000)).sample(4, seed=7))
            [44, 195, 325, 515]
            >>> len(sk.from_sequence(range(1000)).sample(fraction=0.25, seed=7))
            250
        """
        if (n is None) == (fraction is None):
            message = f"sample() takes either n or fraction= (got n={n!r}, fraction={fraction!r})"
            raise InvalidArgument(message)
        if fraction is not None:
            size = known_size(self._node, "sample(fraction=)")
            count = round(checked_fraction("fraction", fraction) * size)
        else:
            count = checked_count("n", n, least=0)
        below, left_out = without_last.set_aside(self._node, "sample()")
        return self._over(left_out(select_node.Sample(below, count, checked_seed(seed))))

    def split(
        self,
        shares: Mapping[Any, float | None],
        *,
        seed: int,
        by: str | Callable[[Any], Any] | None = None,
        stable: bool = False,
    ) -> dict[Any, Self]:
        """Deal the rows to named parts of exact sizes, each in ascending order; each row is in one part.

        The sizes are the shares of all rows, rounded by largest remainder. A part also has about its share of
        every 1,000 rows. No memory is needed.

        Args:
            shares: the share of each part; they sum to 1. Or the number of rows of each part, as integers
                that do not sum to 1. The part whose value is None gets the rest. If numbers of rows leave a
                rest and no part has None, the rest is a part whose name is None.
            seed: ``0 <= seed < 2**64``.
            by: a column, or a function of the record: each of its values is split by these shares by itself,
                by largest remainder. All records are read now. Only with shares.
            stable: True for parts between which appended rows never move an old one. Each part then has its
                share of every whole block of 1,000 rows, rounded to a row, and of a last short block what its
                permutation gives: so the sizes are not exact. Only with shares.

        Raises:
            InvalidArgument: the shares break a rule, or the rows are not the same in every epoch.

        Example:
            >>> import seekable as sk
            >>> parts = sk.from_sequence(range(10)).split({"train": 0.9, "test": 0.1}, seed=0)
            >>> {name: len(part) for name, part in parts.items()}
            {'train': 9, 'test': 1}
            >>> parts = sk.from_sequence(range(800)).split({"train": None, "test": 500}, seed=0)
            >>> {name: len(part) for name, part in parts.items()}
            {'train': 300, 'test': 500}
        """
        seed, stable = checked_seed(seed), checked_flag("stable", stable)
        below, left_out = without_last.set_aside(self._node, "split()")
        if by is not None:
            nodes = split_node.stratified(below, shares, seed, by=by, stable=stable)
        else:
            deal = split_node.stable_split if stable else split_node.split
            nodes = deal(below, shares, seed)
        return {name: self._over(left_out(node)) for name, node in nodes.items()}
