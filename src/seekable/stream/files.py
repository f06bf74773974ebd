"""The methods of a stream that write it to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable._lazy import lazy
from seekable.errors import EndlessDataset
from seekable.stream.iterator import check_resumable

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.formats.lines import jsonl_writer
    from seekable.formats.shar import shar_format
    from seekable.formats.tables import parquet_writer
    from seekable.formats.tar import tar_writer
    from seekable.parallel.progress import ProgressHook
    from seekable.stream import lane_items
    from seekable.stream.stage import Stage
    from seekable.writing import earlier_files, write_stream
    from seekable.writing.manifest import Written
else:
    earlier_files = lazy("seekable.writing.earlier_files")
    jsonl_writer = lazy("seekable.formats.lines.jsonl_writer")
    lane_items = lazy("seekable.stream.lane_items")
    parquet_writer = lazy("seekable.formats.tables.parquet_writer")
    shar_format = lazy("seekable.formats.shar.shar_format")
    tar_writer = lazy("seekable.formats.tar.tar_writer")
    write_stream = lazy("seekable.writing.write_stream")

__all__ = ["StreamFiles"]

_ROW_GROUP_ROWS = 8_192
"""The most rows of a row group by default: as many as the largest block of a windowed shuffle has."""

_SHARD_SIZE = 1000


class StreamFiles:
    """Methods that write all items of a stream to files."""

    __slots__ = ()

    stage: Stage

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
        """Write all items, which are dicts, as Parquet files of a folder, or as one file.

        The natural order of the files is that of the slots, so ``sk.open`` of the folder, and any other
        reader, gives the items of the stream in their order. Holes are left out, and counted. Each file
        appears whole or not at all, and its bytes do not depend on the number of processes.

        The lanes share out the work: more processes than lanes have nothing to do. After a kill, the same
        call goes on: finished files are kept, and each lane goes on from its state at the end of its last
        finished part. Of several processes that call it at once one writes and the others wait.

        Without a schema, columns of Parquet and Arrow files keep their types, if all stages pass records on
        as they are. Else the first 1,024 items decide what each column holds. A later item that does not fit
        is an error. A column that an item lacks becomes None.

        Args:
            folder: a folder without other data files, which is made if it does not exist; or a path that
                ends in ``.parquet``: then all items become this one file.
            rows_per_file: the slots of each file, ``part-00000.parquet`` and so on: as many rows, or fewer
                where lanes have ended. 100,000 if left out; refused for one file.
            row_group_rows: the most rows of a row group, which also ends at 64 MiB.
            compression: ``"zstd"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4"`` or None.
            schema: a ``pyarrow.Schema``: the columns and their types.
            resume: False to write files anew that the same call has written before.
            overwrite: True to remove files that another call wrote there, or to replace any one file; other
                files of a folder are never removed.
            check_code: False to go on even if the code of a function without ``version=`` has changed.
            jobs: the number of processes; 1 for this one alone. By default more are started if the work takes
                longer than a second.
            executor: any ``concurrent.futures.Executor`` whose workers can write the folder.
            progress: called with the progress; by default a bar on a terminal.
            storage_options: the options of the store, as of ``sk.open``, if the folder is an address.

        Raises:
            EndlessDataset: the stream has no end: give ``stream(epochs=1)``, or ``take(n)``.
            NotResumable: a stage cannot go on from a state; the message says what to do.
            InvalidArgument: an argument breaks a rule, the folder holds other data, or a value is of a type
                that Parquet lacks.
            WrongType: an item is no dict, or does not fit into the columns.
            StateMismatch: the files there are of another pipeline, or of other arguments.
            MissingDependency: pyarrow is not installed.
            AccessDenied: the folder cannot be written.
            OSError: the disk is full; finished files are kept.

        Example:
            >>> import os, tempfile, seekable as sk
            >>> texts = sk.from_sequence([{"text": "to be"}, {"text": "or not"}]).stream(lanes=2, epochs=1)
            >>> words = texts.flatten(lambda record: [{"word": word} for word in record["text"].split()])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = words.write_parquet(folder, jobs=1)
            ...     [record["word"] for record in sk.open(folder)], os.path.basename(written.paths[0])
            (['to', 'or', 'be', 'not'], 'part-00000.parquet')
        """
        rows = checked_count("row_group_rows", row_group_rows, least=1)
        return write_stream.write_stream(
            self._checked_items("write_parquet()"),
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
        """Write all items as files of JSON lines, or as one file; all else is as in ``write_parquet``.

        Tuples become lists, numbers and arrays of numpy those of Python. A value that JSON lacks is refused:
        bytes, dates, NaN, names that are no strings.

        Args:
            folder: a folder, or a file by its suffix: ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.zst``.
            rows_per_file: the slots of each file, ``part-00000.jsonl`` and so on.
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
            WrongType: an item holds a value that JSON lacks.
            MissingDependency: zstandard is not installed.
            EndlessDataset, NotResumable, InvalidArgument, StateMismatch, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import tempfile, seekable as sk
            >>> numbers = sk.from_sequence(range(6)).stream(lanes=3, epochs=1).filter(lambda n: n % 2 == 0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = numbers.write_jsonl(folder, jobs=1)
            ...     list(sk.open(folder)) == list(numbers), written.rows
            (True, 3)
        """
        return write_stream.write_stream(
            self._checked_items("write_jsonl()"),
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
        """Write all items as tar files in the form of WebDataset, or as one file.

        All else is as in ``write_parquet``.

        An item is a dict, and becomes one sample: a member ``KEY.FIELD`` for each field, in their order. The
        key is ``item["__key__"]``, or a number, ``000000012`` for instance, where it has none: in each file
        numbers count on from its first slot. Other fields that begin with an underscore are left out, and so
        is None, but for JSON. Bytes are written as they are, and other values as the field says: text as
        UTF-8, numbers and JSON as text, arrays of ``npy``. The bytes of the files depend on the items alone:
        no time, no user, and no PAX header unless a name has more than 100 bytes or is not ASCII. The files
        are indexed.

        Args:
            folder: a folder, or a file by its suffix: ``.tar``, ``.tar.gz``, ``.tgz`` or ``.tar.zst``.
            rows_per_file: the slots of each file, ``part-00000.tar`` and so on.
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
            WrongType: an item is no sample: its key has a dot behind the last slash or is no plain relative
                path, a value does not fit to its field, or two items in a row have the same key.
            MissingDependency: zstandard is not installed.
            EndlessDataset, NotResumable, StateMismatch, InvalidArgument, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import tarfile, tempfile, seekable as sk
            >>> texts = sk.from_sequence(["one", "two"]).stream(lanes=2, epochs=1)
            >>> samples = texts.map(lambda text: {"__key__": f"number/{text}", "txt": text})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = samples.write_tar(f"{folder}/out")
            ...     with tarfile.open(written.paths[0]) as file:
            ...         file.getnames()
            ['number/one.txt', 'number/two.txt']
        """
        written = write_stream.write_stream(
            self._checked_items("write_tar()"),
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
        """Write all items, which are cuts of Lhotse, as a Shar folder.

        All else is as in ``write_parquet``. What a cut is, and what the files hold, is as in
        ``sk.SharWriter``: for each shard ``cuts.000000.jsonl``, a file for each field, such as
        ``recording.000000.tar``, and Lhotse's ``.idx`` beside each. The files of a shard appear when all of
        them are whole, the cuts last.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            fields: the fields to write, each with its kind: ``{"recording": "flac"}``.
            shard_size: the slots of a shard: as many cuts, or fewer where lanes have ended.
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
            WrongType: an item is no cut, or a payload does not fit to its manifest; the message has the id
                and the field.
            MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
            EndlessDataset, NotResumable, InvalidArgument, StateMismatch, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import numpy as np, os, tempfile, seekable as sk
            >>> def cut(number):
            ...     tone = np.sin(np.arange(800) * (number + 1) / 9)
            ...     return {"id": f"tone-{number}", "recording": {"data": (tone, 8000)}}
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     cuts = sk.from_sequence(range(5)).stream(epochs=1).map(cut)
            ...     written = cuts.write_shar(folder, {"recording": "wav"}, jobs=1)
            ...     written.rows, [os.path.basename(path) for path in written.paths]
            (5, ['cuts.000000.jsonl'])
        """
        size = checked_count("shard_size", shard_size, least=1)
        return write_stream.write_stream(
            self._checked_items("write_shar()"),
            folder,
            shar_format.shar(fields, compress_jsonl=compress_jsonl, create_index=create_index),
            rows_per_file=size,
            policy=earlier_files.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage_options=storage_options,
        )

    def _checked_items(self, asked_by: str) -> lane_items.StreamItems:
        """Return the items to write.

        Raises:
            EndlessDataset: the stream has no end.
            NotResumable: a stage cannot go on from a state.
        """
        if self.stage.endless:
            message = (
                f"{asked_by} needs a stream that ends, and {self.stage!r} never does: give "
                f"stream(epochs=1), or take(n), which ends after n slots"
            )
            raise EndlessDataset(message)
        check_resumable(self.stage)
        return lane_items.StreamItems(self.stage)
