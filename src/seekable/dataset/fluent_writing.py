"""Writing a dataset, as methods of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from seekable._arguments import checked_count, checked_flag

if TYPE_CHECKING:
    import os
    from concurrent.futures import Executor

    from seekable.dataset.base import Dataset
    from seekable.parallel.progress import ProgressHook
    from seekable.writing.result import Written

__all__ = ["Writing"]

_ROWS_PER_FILE = 100_000
_ROW_GROUP_ROWS = 8_192
"""As many as a block of a windowed shuffle has at most."""


class Writing:
    """What every dataset can be written to; it is read once, in its order."""

    def write_parquet(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int = _ROWS_PER_FILE,
        row_group_rows: int = _ROW_GROUP_ROWS,
        compression: str | None = "zstd",
        schema: Any = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
    ) -> Written:
        """Write the records of epoch 0, which are dicts, as Parquet files of a folder.

        ``sk.open`` of the folder gives the same records in the same order, whatever made them: a shuffle, a
        mixture, functions. Holes are left out, and counted. Each file appears whole or not at all. After a
        kill, the same call goes on: what is there is kept if it is of the same pipeline and arguments, and
        refused otherwise. Several processes that call it at once wait for each other.

        Without a schema, up to 1,024 records from the first to the last say what each column holds; a record
        that does not fit later is an error. Names that a record does not have become None.

        Args:
            folder: where to; it is made if it is not there, and must hold no other data.
            rows_per_file: the records of each file, ``part-00000-of-00012.parquet`` and so on.
            row_group_rows: the most rows of a row group, which also ends at 64 MiB.
            compression: ``"zstd"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4"`` or None.
            schema: a ``pyarrow.Schema``: the columns, and what they hold.
            resume: False to write files anew that the same call has written before.
            overwrite: whether files that another call has written there are removed; others never are.
            check_code: False to go on though a function without ``version=`` has other code than before.
            jobs: how many processes; 1 for none but this one. By default more are started where that pays.
            executor: any ``concurrent.futures.Executor`` that can write the folder, to do it instead.
            progress: called as it goes on; by default a bar on a terminal.

        Raises:
            EndlessDataset: the dataset has no length.
            InvalidArgument: an argument breaks a rule, the folder holds other data, or a value is of a type
                that Parquet lacks.
            WrongType: a record is no dict, or does not fit into the columns.
            StateMismatch: the folder holds what another pipeline wrote, or other arguments.
            MissingDependency: pyarrow is not installed.
            AccessDenied: the folder cannot be written.
            OSError: the disk is full; what is there is kept.

        Example:
            >>> import os, tempfile, seekable as sk
            >>> squares = sk.from_sequence(range(250)).map(lambda n: {"n": n, "square": n * n})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = squares.shuffle(seed=1).write_parquet(folder, rows_per_file=100, jobs=1)
            ...     written.rows, [os.path.basename(path) for path in written.paths][:1]
            (250, ['part-00000-of-00003.parquet'])
        """
        from seekable.writing.parquet import parquet
        from seekable.writing.write import Going, write

        form = parquet(
            schema,
            compression=compression,
            row_group_rows=checked_count("row_group_rows", row_group_rows, least=1),
        )
        return write(
            self._dataset,
            folder,
            form,
            rows_per_file=checked_count("rows_per_file", rows_per_file, least=1),
            going=Going(
                checked_flag("resume", resume),
                checked_flag("overwrite", overwrite),
                checked_flag("check_code", check_code),
            ),
            jobs=jobs,
            executor=executor,
            progress=progress,
        )

    def write_jsonl(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int = _ROWS_PER_FILE,
        compression: str | None = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
    ) -> Written:
        """Write the records of epoch 0 as files of JSON lines; all else is as of ``write_parquet``.

        Tuples become lists, numbers and arrays of numpy those of Python. What JSON lacks is refused: bytes,
        dates, NaN, names that are no strings.

        Args:
            folder: where to; it is made if it is not there, and must hold no other data.
            rows_per_file: the records of each file, ``part-00000-of-00012.jsonl`` and so on.
            compression: ``"gz"`` or ``"zst"``, which both can be read from any place; None for none.
            resume: False to write files anew that the same call has written before.
            overwrite: whether files that another call has written there are removed; others never are.
            check_code: False to go on though a function without ``version=`` has other code than before.
            jobs: how many processes; 1 for none but this one. By default more are started where that pays.
            executor: any ``concurrent.futures.Executor`` that can write the folder, to do it instead.
            progress: called as it goes on; by default a bar on a terminal.

        Raises:
            EndlessDataset: the dataset has no length.
            InvalidArgument: an argument breaks a rule, or the folder holds other data.
            WrongType: a record holds what JSON lacks.
            StateMismatch: the folder holds what another pipeline wrote, or other arguments.
            MissingDependency: zstandard is not installed.
            AccessDenied: the folder cannot be written.
            OSError: the disk is full; what is there is kept.

        Example:
            >>> import tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence([{"n": 1}, {"n": 2}]).write_jsonl(folder)
            ...     list(sk.open(folder))
            [{'n': 1}, {'n': 2}]
        """
        from seekable.writing.jsonl import json_lines
        from seekable.writing.write import Going, write

        return write(
            self._dataset,
            folder,
            json_lines(compression),
            rows_per_file=checked_count("rows_per_file", rows_per_file, least=1),
            going=Going(
                checked_flag("resume", resume),
                checked_flag("overwrite", overwrite),
                checked_flag("check_code", check_code),
            ),
            jobs=jobs,
            executor=executor,
            progress=progress,
        )

    @property
    def _dataset(self) -> Dataset:
        return cast("Dataset", self)
