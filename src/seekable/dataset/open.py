"""The function ``open``: it indexes files and returns a dataset over them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from seekable._arguments import checked_count, checked_flag
from seekable.dataset.open_source import Opening
from seekable.dataset.source_kinds import shown_source
from seekable.errors import InvalidArgument
from seekable.formats.source_options import SourceOptions
from seekable.index.opening import Indexing
from seekable.storage.asked import checked_asked, has_addresses
from seekable.storage.far import far
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from seekable.dataset.dataset import Dataset
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.source_options import OnError, Pipes
    from seekable.formats.tar.fields.field_decoder import AskedDecoder
    from seekable.nodes.files.decoder import Decode
    from seekable.nodes.keys.key import KeyOf
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.asked import Asked

__all__ = ["open"]


def open(  # noqa: PLR0913 - the one public place that owns these defaults
    source: Asked | Mapping[str, Asked],
    *,
    format: str | None = None,  # noqa: A002 - the public name
    decode: Decode | Mapping[str, AskedDecoder] | None = None,
    version: str | int | None = None,
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    key: KeyOf | None = None,
    errors: OnError | None = None,
    columns: Sequence[str] | None = None,
    strict: bool = False,
    max_open_files: int = MOST_OPEN_FILES,
    partitions: Literal["hive"] | None = None,
    holder: str | Holder | type[Any] | None = None,
    pipes: Pipes = "refuse",
    group: Literal["key"] | None = None,
    splitname: Literal["first", "last"] | None = None,
    missing: Literal["none"] | None = None,
    concatenated: bool = False,
    suffix: str | Mapping[str, str] | None = None,
    dtype: Any = None,
    eos: int | None = None,
    bos: int | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    storage: Any = None,
    cache: int | Literal[False] | None = None,
    pin: Literal["etag", "version"] = "etag",
    refresh: bool = True,
    most_bytes: int | None = None,
    index: Literal["sampled"] | None = None,
    publish: bool = False,
) -> Dataset:
    r"""Return a dataset over files, after indexing those that are new or changed.

    The index lies in ``.seekable`` beside the data; where that folder cannot be written, and for data in a
    store, in the user's cache folder. A second call costs one stat a file, or a listing of the store.

    Args:
        source: a path, a folder (its data files by known suffix, in natural order), a glob, or a list of
            those, on this machine or as addresses of stores: ``s3://BUCKET/KEY``, ``gs://``, ``az://``, and
            ``https://`` without globs and folders; or
            ``hf:REPO:SPLIT:COLUMN``, the data files of a split on the Hugging Face Hub (all
            columns without ``:COLUMN``; ``REPO@REVISION`` for a commit, a branch or a tag, ``CONFIG/SPLIT``
            where a repository has several datasets), ``txt:PATH:COLUMN``, lines as records of one column,
            ``kaldi:DIR``, the utterances of a data directory of Kaldi as dicts of what its tables have,
            ``shar:DIR``, or the folder itself, the cuts of a Shar of Lhotse with their payloads, also a dict
            of the files of ``"cuts"`` and of other fields,
            ``megatron:PREFIX``, the documents of ``PREFIX.bin`` as ``PREFIX.idx`` has them, and
            ``tokens:PATH``, those of any files of tokens, as dicts with an array ``"tokens"``; both may be
            globs or folders,
            ``energon:DIR:SPLIT``, the shards of a split of a dataset of Energon, without excluded samples,
            ``wids:PATH``, the shards that a list of wids names,
            ``x.idxpack`` or ``idxpack:PATH:NUMBER``, the files that a pack of Lhotse's indexes names, or a
            rspecifier of Kaldi over files, ``scp:feats.scp`` or ``ark:feats.*.ark``. Of its options ``p``
            delivers a hole, with a warning, for an entry that cannot be read; the others change nothing.
            Paths may have braces, ``train-{000..099}.tar`` or ``{a,b}/*.tar``; each must exist then.
            A dict of sources, ``{"image": "a/*.tar", "caption": "b/*.tar"}``, is for sibling archives: tar
            files whose samples of one key are one record, shard by shard.
        format: ``"jsonl"``, ``"text"``, ``"parquet"`` and so on; found by the suffix if left out.
            With it, a folder that is a dataset of another tool counts as a plain folder.
        decode: of lines ``"json"``, ``"text"`` (a str), ``"bytes"``, or a function of a line's bytes, which
            is called when a record is read; of tables ``"python"`` (dicts of Python values), ``"numpy"``
            (dicts of numpy's) or ``"arrow"`` (record batches); of tar files ``"bytes"``, ``"webdataset"``,
            ``"audio"``, the name of a form of images such as ``"pil"`` or ``"rgb8"``, or a dict from fields
            to names of decoders and functions of bytes; of Shar also ``"lhotse"``, which makes cuts of
            Lhotse. The format's own if left out.
        version: enters the fingerprint beside the name of a ``decode`` function or a ``holder``; stands for
            its code, and for that of a ``key`` function, where keys are kept.
        index_dir: a folder for indexes, instead of beside the data; also ``SEEKABLE_INDEX_DIR``.
        jobs: how many processes may index; by default one for each processor, and none below 1 GiB.
        executor: any ``concurrent.futures.Executor`` to index with instead.
        progress: called with the progress of the indexing; by default a bar on a terminal.
        key: the key of a record, for ``ds.key``: the name of a field, or a function of the record, which
            gives a str or an int. Keys are read once and written beside the index, 16 bytes a record.
        errors: called with the ``CorruptRecord`` of a record that cannot be decoded; returns what to deliver
            instead, or ``sk.HOLE``, which keeps its position and which a ``Loader`` leaves out of batches. It
            does not enter the fingerprint: a run that stopped at such a record goes on with it.
        columns: of tables, of samples of tar files, and of the utterances of ``kaldi:DIR``, the names of the
            columns to read, in the order in which records have them; nothing is read of the others.
        strict: of tables, whether all files must have the same columns of the same types. Else records have
            the columns of all files, None where a file lacks one, in types that hold all values.
        max_open_files: the most files of this dataset that are open at once, one descriptor each; the file
            used least recently is closed for the next one, and stays mapped for a while unless it is a table.
            The index takes none of them.
        partitions: ``"hive"`` if folders ``year=2024/lang=de/`` are columns of the records below them: int64
            where all values of a key are integers, else str; None for ``__HIVE_DEFAULT_PARTITION__``, and in
            a file that lies in no folder of the key. ``filter(where=)`` opens no file that they rule out. A
            record with another value than its folder's in a column of that name raises ``BadValue``.
        holder: of Kaldi's tables, how the objects are read: a name such as ``"matrix"``, a `kaldi.Holder`, or
            a class with ``Read`` and ``Write``. Found from the first entries if left out. Records are pairs
            of a key and an object, and ``ds.key`` finds a record by its key.
        pipes: ``"allow"`` runs the commands that lines of Kaldi's scripts contain. Commands that only copy or
            decompress a file (``gunzip -c a.gz |``) are done without running them in any case.
        group: of tar files, ``"key"`` if members with one key are one sample wherever they lie in a file;
            else members of a sample follow each other, and an error says where they do not.
        splitname: of tar files, ``"last"`` if the key of a member ends at the last dot of its base name; by
            default at the first, as in WebDataset.
        missing: of tar files, ``"none"`` if a column of ``columns`` that a sample lacks is None, and so are
            the fields of a sample that a sibling archive lacks; by default that is an error.
        concatenated: of tar files, True if a file may be several archives, one behind the other.
        suffix: of sibling archives, what is appended to a field that another archive has too: a text for all
            archives but the first, or a dict by archive.
        dtype: of files of tokens that do not say it, the type of a token, as ``"uint16"``.
        eos: of files of tokens that have no index, the last token of each document. Without ``eos`` and
            ``bos`` such a file is one document. With an index, the documents are counted by it too, and a
            warning says so if the index has others, which are delivered.
        bos: the first token of each document, as in files of llm.c; with ``eos``, a document begins at each
            ``bos`` that follows an ``eos``.
        delimiter: of CSV, the character between fields: by default a comma, in ``.tsv`` a tab.
        quote: of CSV, the character that quotes fields, ``""`` if quotes are characters like others. By
            default ``'"'``; in files with tabs a record of several lines is refused then, if a line of it
            could be a record.
        encoding: of CSV, the encoding, as ``"cp1252"``; by default UTF-8.
        storage_options: of addresses, how the store is reached, by names of obstore: ``endpoint``,
            ``region``, ``anonymous``, ``access_key_id``, ``secret_access_key``, ``timeout`` in seconds,
            ``retries`` and others; what is left out is taken from the environment. They enter neither the
            fingerprint nor the index.
        storage: a file system of fsspec that reads the addresses, for stores that obstore does not read.
        cache: of addresses, the most bytes of a cache on disk that this dataset has for itself, False for
            none. By default it shares the cache of the machine, whose limit is ``SEEKABLE_REMOTE_BYTES``.
        pin: of addresses, ``"version"`` to read the versions that objects have now, in buckets that keep
            versions; a rewrite does not disturb the dataset then. By default it raises ``IndexStale``.
        refresh: of addresses, False to take the listing that the last call kept instead of listing again.
            Nothing is asked of the store then; new files are not seen, and a file that was changed raises
            ``IndexStale`` when it is read.
        most_bytes: of addresses, the most bytes that the call may transfer to index the data; more are
            refused before the first one. By default all are permitted, and more than 1 GiB are announced.
        index: ``"sampled"`` to index and open a sample of the files alone: the first 64 of a keyed
            permutation of the names. Training on the sample can begin while ``seekable index`` indexes the
            rest; the dataset of all files takes its state with ``resume="rows"``.
        publish: of addresses, True to write the index beside the data, into ``.seekable``, where other
            machines find it.

    Raises:
        InvalidArgument: two arguments exclude each other, or the index needs more than ``most_bytes``.
        DataNotFound: there is no such file, repository or split, or no data file in the folder.
        Unreachable: it is in a store or on the Hub, which cannot be reached, and not on this machine.
        CorruptTable: it is a data directory of Kaldi, and its tables do not go together.
        UnsupportedFormat: a suffix is not known, there is more than one format, a file is not what its name
            says or lies beside its compressed copy, a ``.zst`` has no frames that it could be entered at,
            columns of tables do not go together, or it is a folder of another tool, a spec or an address that
            is not read.
        AccessDenied: the data may not be read, or the credentials of a store do not permit it.
        MissingDependency: the data is in a store, and obstore is not installed.
        WrongType: the source is neither a path nor a list of paths.
        BadKey: a record has no key.

    Warns:
        DuplicateKeys: some records have the same key. Other fields in other files of JSON lines are logged.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
        ...     ds = sk.open(folder)
        ...     len(ds), ds[1], ds.locate(1).offset
        (2, {'id': 1}, 10)
    """
    _check_suffix(source, suffix)
    if isinstance(source, Mapping):
        source = {name: checked_asked(asked) for name, asked in source.items()}
    else:
        source = checked_asked(source)
    options = SourceOptions(
        shown=shown_source(source),
        decode=decode,
        version=version,
        errors=errors,
        columns=columns,
        strict=strict,
        holder=holder,
        pipes=pipes,
        group=group,
        splitname=splitname,
        missing=missing,
        concatenated=concatenated,
        dtype=dtype,
        eos=eos,
        bos=bos,
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
        most_open_files=checked_count("max_open_files", max_open_files, least=1),
    )
    most_bytes = None if most_bytes is None else checked_count("most_bytes", most_bytes, least=0)
    publish = checked_flag("publish", publish)
    if index not in (None, "sampled"):
        message = f'index must be "sampled", or left out (got {index!r})'
        raise InvalidArgument(message)
    if pin not in ("etag", "version"):
        message = f'pin must be "etag" or "version" (got {pin!r})'
        raise InvalidArgument(message)
    indexing = Indexing(index_dir, jobs, executor, progress, most_bytes, publish, pin == "version")
    stores = {"storage_options": storage_options, "storage": storage, "cache": cache}
    open_one = partial(open, format=format, index_dir=index_dir, jobs=jobs, executor=executor, **stores)
    open_one = partial(open_one, progress=progress, partitions=partitions, most_bytes=most_bytes)
    open_one = partial(open_one, index=index, publish=publish, pin=pin)
    is_sampled = index is not None
    opening = Opening(options, indexing, format, key, partitions, suffix, open_one, is_sampled)
    if not has_addresses(source) and not any(given is not None for given in stores.values()):
        return opening.dataset(source)
    with far().opened(source, index_dir=index_dir, refresh=refresh, **stores) as renamed:
        return opening.dataset(renamed)


def _check_suffix(source: object, suffix: object) -> None:
    if suffix is not None and (not isinstance(source, Mapping) or "cuts" in source):
        message = f"suffix= is for a dict of archives, and this is other data (got {suffix!r}): drop it"
        raise InvalidArgument(message)
