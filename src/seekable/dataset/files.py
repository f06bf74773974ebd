"""The methods of a dataset that write its records, or the pipeline itself, to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable._lazy import lazy
from seekable.dataset.face import Face

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.dataset.pipeline import pipeline_file
    from seekable.formats.lines import jsonl_writer
    from seekable.formats.shar import shar_format
    from seekable.formats.tables import parquet_writer
    from seekable.formats.tar import tar_writer
    from seekable.parallel.progress import ProgressHook
    from seekable.writing import earlier_files, write
    from seekable.writing.manifest import Written
else:
    earlier_files = lazy("seekable.writing.earlier_files")
    pipeline_file = lazy("seekable.dataset.pipeline.pipeline_file")
    jsonl_writer = lazy("seekable.formats.lines.jsonl_writer")
    parquet_writer = lazy("seekable.formats.tables.parquet_writer")
    shar_format = lazy("seekable.formats.shar.shar_format")
    tar_writer = lazy("seekable.formats.tar.tar_writer")
    write = lazy("seekable.writing.write")

__all__ = ["Files"]

_ROW_GROUP_ROWS = 8_192
"""The most rows of a row group by default: as many as the largest block of a windowed shuffle has."""

_SHARD_SIZE = 1000


class Files(Face):
    """Methods that write the records of epoch 0, or the pipeline itself, to files."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> None:
        """Write the pipeline to a JSON file, from which ``sk.load_dataset`` makes it again.

        The file has the nodes with their arguments, the data files by name and digest, and the names of
        functions and sequences. It has no code and no records. Rows that a filter, a selection or a join has
        chosen are written beside it: of ``pipeline.json`` to the folder ``pipeline.rows``, 8 bytes a row. All
        files appear whole or not at all, the pipeline file last.

        Args:
            path: the file; one that is there is replaced. Its row files stay, as a copy of it may need them.
                Its path, or its address in a store.
            storage_options: the options of the store, as of ``sk.open``, if the path is an address.

        Raises:
            InvalidArgument: a value cannot be written.
            IndexStale, CorruptState: the rows of a filter are gone, or have changed.
            OSError: the folder cannot be written, or the disk is full.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "a.txt").write_text("one")
            ...     sk.open(folder).map(str.upper).save(f"{folder}/pipeline.json")
            ...     ds = sk.load_dataset(f"{folder}/pipeline.json", functions={"upper": str.upper})
            ...     ds[0]
            'ONE'
        """
        pipeline_file.write_pipeline(self._node, path, storage_options)

    def write_parquet(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int | None = None,
        row_group_rows: int = _ROW_GROUP_ROWS,
        compression: str | None = "zstd",
        schema: Any = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Written:
        """Write the records of epoch 0, which are dicts, as Parquet files of a folder, or as one file.

        ``sk.open`` of the folder gives the same records in the same order. Holes are left out, and counted.
        Each file appears whole or not at all. After a kill, the same call goes on: files of the same pipeline
        and arguments are kept, others are refused. Of several processes that call it at once one writes and
        the others wait.

        Without a schema, up to 1,024 records from the first to the last decide what each column holds; a
        record that does not fit later is an error. A column that a record lacks becomes None.

        Args:
            folder: a folder without other data files, which is made if it does not exist; or a path that
                ends in ``.parquet``: then all records become this one file. Or the address of either in a
                store, such as ``s3://bucket/folder``: each file is written to the local cache folder, and put
                into the store when it is whole.
            rows_per_file: the records of each file, ``part-00000-of-00012.parquet`` and so on; 100,000 if
                left out, and refused for one file.
            row_group_rows: the most rows of a row group, which also ends at 64 MiB.
            compression: ``"zstd"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4"`` or None.
            schema: a ``pyarrow.Schema``: the columns and their types.
            resume: False to write files anew that the same call has written before.
            overwrite: True to remove files that another call wrote there, or to replace any one file; other
                files of a folder are never removed.
            check_code: False to go on even if the code of a function without ``version=`` has changed.
            jobs: the number of processes; 1 for this one alone. By default more are started if that pays.
            executor: any ``concurrent.futures.Executor`` whose workers can write the folder.
            progress: called with the progress; by default a bar on a terminal.
            storage_options: the options of the store, as of ``sk.open``, if the folder is an address.

        Raises:
            EndlessDataset: the dataset has no length.
            InvalidArgument: an argument breaks a rule, the folder holds other data, or a value is of a type
                that Parquet lacks.
            WrongType: a record is no dict, or does not fit into the columns.
            StateMismatch: the files in the folder are of another pipeline, or of other arguments.
            MissingDependency: pyarrow is not installed.
            AccessDenied: the folder cannot be written.
            OSError: the disk is full; finished files are kept.

        Example:
            >>> import os, tempfile, seekable as sk
            >>> squares = sk.from_sequence(range(250)).map(lambda n: {"n": n, "square": n * n})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = squares.shuffle(seed=1).write_parquet(folder, rows_per_file=100, jobs=1)
            ...     written.rows, [os.path.basename(path) for path in written.paths][:1]
            (250, ['part-00000-of-00003.parquet'])
        """
        rows = checked_count("row_group_rows", row_group_rows, least=1)
        return write.write(
            self._node,
            folder,
            parquet_writer.parquet(schema, compression=compression, row_group_rows=rows),
            rows_per_file=rows_per_file,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
        )

    def write_jsonl(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int | None = None,
        compression: str | None = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Written:
        """Write the records of epoch 0 as files of JSON lines, or as one file.

        All else is as in ``write_parquet``.

        Tuples become lists, numbers and arrays of numpy those of Python. A value that JSON lacks is refused:
        bytes, dates, NaN, names that are no strings.

        Args:
            folder: a folder, or a file by its suffix: ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.zst``.
            rows_per_file: the records of each file, ``part-00000-of-00012.jsonl`` and so on.
            compression: ``"gz"`` or ``"zst"``, which both can be read from any place; None for none. Of one
                file the suffix says it.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage_options: as in ``write_parquet``.

        Raises:
            WrongType: a record holds a value that JSON lacks.
            MissingDependency: zstandard is not installed.
            InvalidArgument, EndlessDataset, StateMismatch, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence([{"n": 1}, {"n": 2}]).write_jsonl(folder)
            ...     list(sk.open(folder))
            [{'n': 1}, {'n': 2}]
        """
        return write.write(
            self._node,
            folder,
            jsonl_writer.json_lines(compression),
            rows_per_file=rows_per_file,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
        )

    def write_tar(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int | None = None,
        compression: str | None = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Written:
        """Write the records of epoch 0 as tar files in the form of WebDataset, or as one file.

        All else is as in ``write_parquet``.

        A record is a dict, and becomes one sample: a member ``KEY.FIELD`` for each field, in their order. The
        key is ``record["__key__"]``, or ``000000012`` for record 12 where it has none. Other fields that
        begin with an underscore are left out, and so is None, but for JSON. Bytes are written as they are,
        and other values as the field says: text as UTF-8, numbers and JSON as text, arrays of ``npy``.
        The bytes of the files depend on the records alone: no time, no user, and no PAX header unless a name
        has more than 100 bytes or is not ASCII. The files are indexed.

        Args:
            folder: a folder, or a file by its suffix: ``.tar``, ``.tar.gz``, ``.tgz`` or ``.tar.zst``.
            rows_per_file: the records of each file, ``part-00000-of-00012.tar`` and so on.
            compression: ``"gz"`` or ``"zst"``, as in ``write_jsonl``. Most other readers with random access
                take plain files alone.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage_options: as in ``write_parquet``.

        Raises:
            WrongType: a record is no sample: its key has a dot behind the last slash or is no plain relative
                path, a value does not fit to its field, or two records in a row have the same key.
            MissingDependency: zstandard is not installed.
            InvalidArgument, EndlessDataset, StateMismatch, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import tarfile, tempfile, seekable as sk
            >>> texts = sk.from_sequence(["one", "two"])
            >>> samples = texts.map(lambda text: {"__key__": f"number/{text}", "txt": text})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = samples.write_tar(f"{folder}/out")
            ...     with tarfile.open(written.paths[0]) as file:
            ...         file.getnames()
            ['number/one.txt', 'number/two.txt']
        """
        written = write.write(
            self._node,
            folder,
            tar_writer.tar(compression),
            rows_per_file=rows_per_file,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
        )
        return tar_writer.indexed(folder, written, jobs=jobs, executor=executor)

    def write_shar(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        fields: Mapping[str, str],
        *,
        shard_size: int = _SHARD_SIZE,
        compress_jsonl: bool = False,
        create_index: bool = True,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressHook | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Written:
        """Write the records of epoch 0, which are cuts of Lhotse, as a Shar folder.

        All else is as in ``write_parquet``. What a cut is, and what the files hold, is as in
        ``sk.SharWriter``: for each shard ``cuts.000000.jsonl``, a file for each field, such as
        ``recording.000000.tar``, and Lhotse's ``.idx`` beside each. The files of a shard appear when all of
        them are whole, the cuts last.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            fields: the fields to write, each with its kind: ``{"recording": "flac"}``.
            shard_size: the records of a shard.
            compress_jsonl: True to compress JSON lines with gzip.
            create_index: False to write no ``.idx`` files.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage_options: as in ``write_parquet``.

        Raises:
            WrongType: a record is no cut, or a payload does not fit to its manifest; the message has the id
                and the field.
            MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
            InvalidArgument, EndlessDataset, StateMismatch, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import numpy as np, os, tempfile, seekable as sk
            >>> def cut(number):
            ...     tone = np.sin(np.arange(800) * (number + 1) / 9)
            ...     return {"id": f"tone-{number}", "recording": {"data": (tone, 8000)}}
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence(range(5)).map(cut).write_shar(folder, {"recording": "wav"})
            ...     written.rows, [os.path.basename(path) for path in written.paths]
            (5, ['cuts.000000.jsonl'])
        """
        size = checked_count("shard_size", shard_size, least=1)
        return write.write(
            self._node,
            folder,
            shar_format.shar(fields, compress_jsonl=compress_jsonl, create_index=create_index),
            rows_per_file=size,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
        )
