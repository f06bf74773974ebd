"""Rows chosen as methods: by what is in them, by where they came from, or by chance.

Each method imports what it needs inside: nodes are datasets, so they import this class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from seekable._arguments import checked_count, checked_seed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from seekable.dataset.base import Dataset
    from seekable.parallel.progress import ProgressHook

__all__ = ["RowTools"]


class RowTools:
    """Some of the rows of a dataset, which are the same in every epoch."""

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
    ) -> Dataset:
        """Return the rows whose records pass; they are looked at now, each once.

        The kept rows lie in a file that is memory-mapped: a temporary one, or with ``save`` one that later
        runs and other processes open without looking. Of processes that filter at once, one does and
        the others wait.

        Args:
            fn: returns whether to keep a record. It may be called in other processes, and for records of any
                order.
            where: conditions on columns, ``[("lang", "==", "de"), ("n", "<", 9)]``, all of which must hold,
                or lists of those, one of which must. Operators are ``==``, ``!=``, ``<``, ``<=``, ``>``,
                ``>=``, ``in``, ``not in``, ``is null`` and ``is not null``; a missing column is null, and
                null passes nothing but ``is null``. Only these columns are read, and of tables no rows that
                statistics rule out.
            files: a pattern of files, or several: ``"*2024*"`` is compared with names below the folder that
                was opened, ``"/data/*"`` with whole paths. No record is read.
            limit: how many rows to keep at most: the first. It stops there.
            save: a file for the kept rows, ``"kept.u64"``; what they were kept of is put beside it, in
                ``"kept.u64.json"``.
            version: stands for the function's code, to be changed with what it does. Without it a digest of
                the code, its constants, defaults and closure says whether saved rows are those of ``fn``.
            jobs: how many processes; 1 for none but this one. By default more are started where that pays.
            executor: any ``concurrent.futures.Executor`` to do it in instead.
            progress: called as it goes on; by default a bar on a terminal.

        Raises:
            InvalidArgument: the rows are not the same in every epoch, or ``save`` names something else.
            MissingColumn: there is no column that a condition asks about.
            WrongType: a condition compares values of different kinds, a number and a text say.
            StateMismatch: the saved rows are those of another dataset or function.
            CorruptState: the saved rows are damaged.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence(range(10)).filter(lambda number: number % 3 == 0)
            >>> len(ds), list(ds)
            (4, [0, 3, 6, 9])
            >>> words = sk.from_sequence([{"lang": "de", "n": 1}, {"lang": "fr", "n": 2}])
            >>> list(words.filter(where=[("lang", "in", ["de", "en"]), ("n", ">", 0)]))
            [{'lang': 'de', 'n': 1}]
        """
        from seekable.nodes.filter.choice import choice
        from seekable.nodes.filter.node import filter_rows

        chosen = choice(fn, where=where, files=files, limit=limit, version=version)
        return filter_rows(_dataset(self), chosen, save=save, jobs=jobs, executor=executor, progress=progress)

    def filter_batches(
        self,
        fn: Callable[[list[Any]], Any],
        *,
        size: int = 256,
        save: str | os.PathLike[str] | None = None,
        version: str | int | None = None,
        jobs: int | None = None,
        progress: ProgressHook | None = None,
    ) -> Dataset:
        """Return the rows that a function of many records passes; ``filter`` says the rest.

        Args:
            fn: called with lists of up to ``size`` records; returns for each whether to keep it, which must
                not depend on the others.
            size: the most records in a call.
            save: as of ``filter``.
            version: as of ``filter``.
            jobs: as of ``filter``.
            progress: as of ``filter``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(6)).filter_batches(lambda numbers: [n > 3 for n in numbers]))
            [4, 5]
        """
        from seekable.nodes.filter.choice import choice
        from seekable.nodes.filter.node import filter_rows

        chosen = choice(fn, together=checked_count("size", size, least=1), version=version)
        return filter_rows(_dataset(self), chosen, save=save, jobs=jobs, executor=None, progress=progress)

    def limit(self, n: int) -> Dataset:
        """Return the first ``n`` rows of each epoch: another name of ``take``.

        What is filtered for a few rows is found sooner with ``filter(limit=)``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").limit(2))
            ['a', 'b']
        """
        return _dataset(self).take(n)

    def sample(self, n: int, *, seed: int) -> Dataset:
        """Return ``n`` distinct rows, drawn once and for all, in the order that they have here.

        Args:
            n: how many, and no more than there are.
            seed: ``0 <= seed < 2**64``. The same seed and number of records give the same rows anywhere.

        Raises:
            InvalidArgument: there are too few rows, or they are not the same in every epoch.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(1000)).sample(4, seed=7))
            [44, 195, 325, 515]
        """
        from seekable.nodes.sample import Sample

        return Sample(_dataset(self), checked_count("n", n, least=0), checked_seed(seed))

    def merge(self, other: Dataset) -> Dataset:
        """Return the rows of this dataset, then those of another that are not among them.

        Rows are the same where they are the same row of the same file; what is in them is not compared. Which
        they are is found now, without reading records.

        Raises:
            InvalidArgument: rows are not the same in every epoch, or records are made of several.

        Example:
            >>> import seekable as sk
            >>> ds = sk.from_sequence("abcdef")
            >>> list(ds[:3].merge(ds[1:5]))
            ['a', 'b', 'c', 'd', 'e']
        """
        from seekable.nodes.merge import merged

        return merged(_dataset(self), other)


def _dataset(tools: RowTools) -> Dataset:
    return cast("Dataset", tools)
