"""The methods that write a dataset or a stream to files: ``write`` for any format, and one for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from seekable._arguments import explains_keywords
from seekable._lazy import lazy
from seekable._other_words import STORAGE
from seekable.formats.table import format_to_write, writer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.formats.file_format import FileFormat
    from seekable.parallel.progress import ProgressChoice
    from seekable.storage.access import Storage
    from seekable.writing import write as writing
    from seekable.writing.manifest import Written
    from seekable.writing.write_source import WriteSource

    class TokenStoreOptions(Protocol):
        """The part of ``sk.formats.TokenStore`` that type checkers know here."""

        @property
        def rows_per_file(self) -> int | None: ...

        @property
        def idx(self) -> bool: ...

        @property
        def sample_size(self) -> int | None: ...

    TokenStore = TokenStoreOptions
else:
    writing = lazy("seekable.writing.write")

__all__ = ["ELSEWHERE_OF_TOKENS", "WriteMethods"]

ELSEWHERE_OF_TOKENS = {
    **{
        name: f"store=sk.formats.TokenStore({name}=...)"
        for name in ("bos", "engine", "parts", "align", "dtype", "idx", "sample_size", "rows_per_file")
    },
    "aux": "store=sk.formats.TokenStore(align=...)",
    "key": "column=",
    "chat": "tokenizer=sk.Chat(tokenizer)",
    "mask": "tokenizer=sk.Chat(tokenizer, mask=...)",
    **STORAGE,
}
"""Where a value goes that people give to ``write_tokens`` and to ``sk.tokenize`` themselves."""


class WriteMethods(ABC):
    """Methods that write epoch 0 of a dataset, or all items of a stream, to files."""

    __slots__ = ()

    @abstractmethod
    def _to_write(self, call: str) -> WriteSource:
        """Return what is to be written.

        Args:
            call: the call that writes it, for error messages.

        Raises:
            EndlessDataset: there is no end.
            NotResumable: a stage of a stream cannot go on from a state.
        """

    @explains_keywords(STORAGE)
    def write(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        format: str | FileFormat,  # noqa: A002 - its name wherever formats are named
        *,
        rows_per_file: int | None = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, in a format.

        ``write_parquet`` says what holds for all formats. ``ds.write(folder, "parquet")`` is the same as
        ``ds.write_parquet(folder)``, which has the options of this format, too.

        Args:
            folder: a folder without other data files, which is made if it does not exist; or one file by the
                suffix of the format; or the address of either.
            format: ``"jsonl"``, ``"parquet"``, ``"tar"`` or ``"tokens"``; or a ``FileFormat``:
                ``sk.formats.Tar.writer(compression="gz")``, or one of your own.
            rows_per_file: the records of each file; as many as the format has by default, if left out.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage: as in ``write_parquet``.

        Raises:
            InvalidArgument: there is no such format, or as in ``write_parquet``.
            WrongType: ``format`` is neither a name nor a format, or a record does not fit the format.
            EndlessDataset, NotResumable, StateMismatch, MissingDependency, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence([{"n": 1}, {"n": 2}]).write(folder, "jsonl")
            ...     list(sk.open(folder))
            [{'n': 1}, {'n': 2}]
        """
        form = format_to_write(format)
        return writing.write(
            self._to_write(f"write_{form.name}()"),
            folder,
            form,
            rows_per_file=rows_per_file,
            policy=writing.checked_policy(resume=resume, overwrite=overwrite, check_code=check_code),
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )

    @explains_keywords(STORAGE)
    def write_parquet(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        rows_per_file: int | None = None,
        row_group_rows: int = 8_192,
        compression: str | None = "zstd",
        schema: Any = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, as Parquet files or as one file.

        Records are dicts. ``sk.open`` of the folder gives the same records in the same order, of a stream in
        the order of slots. Holes are left out, and counted. Each file appears whole or not at all, and its
        bytes do not depend on the number of processes. After a kill, the same call goes on: files of the same
        pipeline and arguments are kept, others are refused. Each lane of a stream goes on from its state at
        the end of its last finished part. Of several processes that call it at once one writes and the others
        wait.

        Without a schema, up to 1,024 records decide what each column holds: from the first to the last of a
        dataset, the first ones of a stream. Columns of Parquet and Arrow files keep their types, if nothing
        between changes the records. A record that does not fit later is an error. A column that a record
        lacks becomes None.

        Args:
            folder: a folder without other data files, which is made if it does not exist; or a path that
                ends in ``.parquet``: then all records become this one file. Or the address of either in a
                store, such as ``s3://bucket/folder``: each file is written to the local cache folder, and put
                into the store when it is whole.
            rows_per_file: the records of each file, ``part-00000-of-00012.parquet`` and so on; 100,000 if
                left out, and refused for one file. Of a stream, the slots of each file,
                ``part-00000.parquet`` and so on: as many rows, or fewer where lanes have ended.
            row_group_rows: the most rows of a row group, which also ends at 64 MiB.
            compression: ``"zstd"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4"`` or None.
            schema: a ``pyarrow.Schema``: the columns and their types.
            resume: False to write files anew that the same call has written before.
            overwrite: True to remove files that another call wrote there, or to replace any one file; other
                files of a folder are never removed.
            check_code: False to go on even if the code of a function without ``version=`` has changed.
            jobs: the number of processes; 1 for this one alone. By default more are started if that pays. A
                stream has work for as many as it has lanes.
            executor: any ``concurrent.futures.Executor`` whose workers can write the folder.
            progress: a function that is called with the progress; False for none. By default a bar on a
                terminal.
            storage: how the store is reached, ``sk.Storage(options=...)``, if the folder is an address.

        Raises:
            EndlessDataset: there is no end: give ``stream(epochs=1)``, or ``take(n)``.
            NotResumable: a stage of a stream cannot go on from a state; the message says what to do.
            InvalidArgument: an argument breaks a rule, the folder holds other data, or a value is of a type
                that Parquet lacks.
            WrongType: a record is not a dict, or does not fit into the columns.
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
            >>> texts = sk.from_sequence([{"text": "to be"}, {"text": "or not"}]).stream(lanes=2, epochs=1)
            >>> words = texts.flatten(lambda record: [{"word": word} for word in record["text"].split()])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = words.write_parquet(folder, jobs=1)
            ...     [record["word"] for record in sk.open(folder)], os.path.basename(written.paths[0])
            (['to', 'or', 'be', 'not'], 'part-00000.parquet')
        """
        form = writer("parquet")(row_group_rows=row_group_rows, compression=compression, schema=schema)
        return self.write(
            folder,
            form,
            rows_per_file=rows_per_file,
            resume=resume,
            overwrite=overwrite,
            check_code=check_code,
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )

    @explains_keywords(STORAGE)
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
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, as JSON lines: in several files, or in one.

        All else is as in ``write_parquet``.

        Tuples become lists, numbers and arrays of numpy those of Python. A value that JSON lacks is refused:
        bytes, dates, NaN, names that are not strings.

        Args:
            folder: a folder, or a file by its suffix: ``.jsonl``, ``.jsonl.gz`` or ``.jsonl.zst``.
            rows_per_file: the records of each file, ``part-00000-of-00012.jsonl`` and so on; of a stream its
                slots, ``part-00000.jsonl`` and so on.
            compression: ``"gz"`` or ``"zst"``, which both can be read from any place; None for none. Of one
                file the suffix says it.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage: as in ``write_parquet``.

        Raises:
            WrongType: a record holds a value that JSON lacks.
            MissingDependency: zstandard is not installed.
            InvalidArgument, EndlessDataset, NotResumable, StateMismatch, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence([{"n": 1}, {"n": 2}]).write_jsonl(folder)
            ...     list(sk.open(folder))
            [{'n': 1}, {'n': 2}]
            >>> numbers = sk.from_sequence(range(6)).stream(lanes=3, epochs=1).filter(lambda n: n % 2 == 0)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = numbers.write_jsonl(folder, jobs=1)
            ...     list(sk.open(folder)) == list(numbers), written.rows
            (True, 3)
        """
        return self.write(
            folder,
            writer("jsonl")(compression=compression),
            rows_per_file=rows_per_file,
            resume=resume,
            overwrite=overwrite,
            check_code=check_code,
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )

    @explains_keywords(STORAGE)
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
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, as tar files for WebDataset.

        All else is as in ``write_parquet``.

        A record is a dict, and becomes one sample: a member ``KEY.FIELD`` for each field, in their order. The
        key is ``record["__key__"]``, or ``000000012`` for record 12 where it has none; in each file of a
        stream these numbers count on from its first slot. Other fields that begin with an underscore are left
        out, and so is None, but for JSON. Bytes are written as they are, and other values as the field says:
        text as UTF-8, numbers and JSON as text, arrays of ``npy``. The bytes of the files depend on the
        records alone: no time, no user, and no PAX header unless a name has more than 100 bytes or is not
        ASCII. The files are indexed.

        Args:
            folder: a folder, or a file by its suffix: ``.tar``, ``.tar.gz``, ``.tgz`` or ``.tar.zst``.
            rows_per_file: the records of each file, ``part-00000-of-00012.tar`` and so on; of a stream its
                slots, ``part-00000.tar`` and so on.
            compression: ``"gz"`` or ``"zst"``, as in ``write_jsonl``. Most other readers with random access
                take plain files alone.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage: as in ``write_parquet``.

        Raises:
            WrongType: a record is not a sample: its key has a dot after the last slash or is not a plain
                relative path, a value does not fit to its field, or two records in a row have the same key.
            MissingDependency: zstandard is not installed.
            InvalidArgument, EndlessDataset, NotResumable, StateMismatch, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import tarfile, tempfile, seekable as sk
            >>> texts = sk.from_sequence(["one", "two"])
            >>> samples = texts.map(lambda text: {"__key__": f"number/{text}", "txt": text})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = samples.write_tar(f"{folder}/out")
            ...     with tarfile.open(written.paths[0]) as file:
            ...         file.getnames()
            ['number/one.txt', 'number/two.txt']
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = samples.stream(lanes=2, epochs=1).write_tar(f"{folder}/out")
            ...     with tarfile.open(written.paths[0]) as file:
            ...         file.getnames()
            ['number/one.txt', 'number/two.txt']
        """
        return self.write(
            folder,
            writer("tar")(compression=compression),
            rows_per_file=rows_per_file,
            resume=resume,
            overwrite=overwrite,
            check_code=check_code,
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )

    @explains_keywords(STORAGE)
    def write_shar(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        fields: Mapping[str, str],
        *,
        shard_size: int = 1000,
        compress_jsonl: bool = False,
        create_index: bool = True,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, as a Shar folder; they are Lhotse's cuts.

        All else is as in ``write_parquet``. What a cut is, and what the files hold, is as in
        ``sk.SharWriter``: for each shard ``cuts.000000.jsonl``, a file for each field, such as
        ``recording.000000.tar``, and Lhotse's ``.idx`` beside each. The files of a shard appear when all of
        them are whole, the cuts last.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            fields: the fields to write, each with its kind: ``{"recording": "flac"}``.
            shard_size: the records of a shard; of a stream its slots: as many cuts, or fewer where lanes have
                ended.
            compress_jsonl: True to compress JSON lines with gzip.
            create_index: False to write no ``.idx`` files.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage: as in ``write_parquet``.

        Raises:
            WrongType: a record is not a cut, or a payload does not fit to its manifest; the message has the
                id and the field.
            MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
            InvalidArgument, EndlessDataset, NotResumable, StateMismatch, AccessDenied, OSError: as in
                ``write_parquet``.

        Example:
            >>> import numpy as np, os, tempfile, seekable as sk
            >>> def cut(number):
            ...     tone = np.sin(np.arange(800) * (number + 1) / 9)
            ...     return {"id": f"tone-{number}", "recording": {"data": (tone, 8000)}}
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = sk.from_sequence(range(5)).map(cut).write_shar(folder, {"recording": "wav"})
            ...     written.rows, [os.path.basename(path) for path in written.paths]
            (5, ['cuts.000000.jsonl'])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     cuts = sk.from_sequence(range(5)).stream(epochs=1).map(cut)
            ...     written = cuts.write_shar(folder, {"recording": "wav"}, jobs=1)
            ...     written.rows, [os.path.basename(path) for path in written.paths]
            (5, ['cuts.000000.jsonl'])
        """
        form = writer("shar")(
            fields, shard_size=shard_size, compress_jsonl=compress_jsonl, create_index=create_index
        )
        return self.write(
            folder,
            form,
            resume=resume,
            overwrite=overwrite,
            check_code=check_code,
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )

    @explains_keywords(ELSEWHERE_OF_TOKENS)
    def write_tokens(  # noqa: PLR0913 - the one public place that owns these defaults
        self,
        folder: str | os.PathLike[str],
        *,
        tokenizer: Any = None,
        column: str | None = None,
        eos: str | int | None = None,
        store: TokenStore | None = None,
        resume: bool = True,
        overwrite: bool = False,
        check_code: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
        storage: Storage | None = None,
    ) -> Written:
        """Write the records of epoch 0, or all items of a stream, as a token store.

        ``sk.open`` of the folder reads it. Each record is a document: a list of ids, or with a tokenizer a
        text. All else is as in ``write_parquet``; the same call goes on where a killed one ended.

        For each part there are ``part-000000.bin``, the ids of all documents one after another without a
        header, ``part-000000.lengths``, the number of tokens of each document as uint32, ``part-000000.NAME``
        for each array beside them, ``part-000000.sources``, the file and the row that each document comes
        from, and ``part-000000.facts``, counts and digests. ``tokens.json`` describes all of them and is
        written last: a folder without it is not finished. Of a stream it is not kept where the documents come
        from.

        Args:
            folder: a folder without other data, which is made if it does not exist.
            tokenizer: the path of a ``tokenizer.json``, a ``tokenizers.Tokenizer``, a tokenizer of
                transformers, a ``tiktoken.Encoding``, ``"tiktoken:NAME"``, or a function of a text that
                returns ids; None for records that have ids.
            column: with a tokenizer, the column of the texts, "text" if left out; without one that of the
                lists or arrays of ids, "tokens".
            eos: the id, or with a tokenizer the token, after each document; none if left out.
            store: what few calls need, a ``sk.formats.TokenStore``: ``bos``, ``engine``, the arrays beside
                the tokens (``align``), ``dtype``, Megatron's ``idx``, ``rows_per_file``.
            resume: as in ``write_parquet``.
            overwrite: as in ``write_parquet``.
            check_code: as in ``write_parquet``.
            jobs: as in ``write_parquet``.
            executor: as in ``write_parquet``.
            progress: as in ``write_parquet``.
            storage: as in ``write_parquet``.

        Raises:
            WrongType: a record is not a document, an id does not fit into the dtype, or an array of
                ``store.align`` has not one number for each id.
            InvalidArgument: two arguments contradict each other, or the folder holds other data.
            StateMismatch: the folder is of another pipeline, another tokenizer or other arguments.
            EndlessDataset, NotResumable, AccessDenied, OSError: as in ``write_parquet``.

        Example:
            >>> import tempfile, numpy as np, seekable as sk
            >>> ds = sk.from_sequence([{"tokens": [5, 6, 7]}, {"tokens": [9]}])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = ds.write_tokens(folder, eos=0)
            ...     np.fromfile(written.paths[0], "uint16").tolist()
            [5, 6, 7, 0, 9, 0]
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     written = ds.stream(epochs=1).write_tokens(folder, eos=0, jobs=1)
            ...     np.fromfile(written.paths[0], "uint32").tolist()
            [5, 6, 7, 0, 9, 0]
        """
        form = writer("tokens")(tokenizer=tokenizer, column=column, eos=eos, store=store)
        return self.write(
            folder,
            form,
            resume=resume,
            overwrite=overwrite,
            check_code=check_code,
            jobs=jobs,
            executor=executor,
            progress=progress,
            storage=storage,
        )
