"""The function ``open``: it indexes files and returns a dataset over them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from seekable._arguments import checked_count
from seekable._lazy import lazy
from seekable.dataset.dataset import Dataset
from seekable.dataset.source_kinds import has_spec, may_be_shar, shown_source, spec_of_tokens
from seekable.errors import DuplicateKeys, InvalidArgument
from seekable.formats.registry import find_data, format_named, format_of_all, refuse_copies
from seekable.formats.source_options import SourceOptions
from seekable.index.opening import Indexing
from seekable.nodes.keys.key import SAMPLE_KEY, Keys, entry_key
from seekable.parallel.progress import progress_or_bar
from seekable.storage.listing import checked_asked
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from seekable.dataset import shar, sibling_archives, specs
    from seekable.formats.decoding import Decode
    from seekable.formats.fields.field_decoder import AskedDecoder
    from seekable.formats.registry import Format
    from seekable.formats.source_options import OnError
    from seekable.index.fileset import FileSet
    from seekable.index.keys import hashes, keyed
    from seekable.kaldi.files.pipes import Pipes
    from seekable.kaldi.holders.holder import Holder
    from seekable.nodes.columns import hive_folders
    from seekable.nodes.columns import partitions as partition_columns
    from seekable.nodes.keys import key_index
    from seekable.nodes.keys.key import KeyOf
    from seekable.parallel import map_ranges
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import Asked
else:
    shar = lazy("seekable.dataset.shar")
    sibling_archives = lazy("seekable.dataset.sibling_archives")
    specs = lazy("seekable.dataset.specs")
    hashes = lazy("seekable.index.keys.hashes")
    keyed = lazy("seekable.index.keys.keyed")
    hive_folders = lazy("seekable.nodes.columns.hive_folders")
    partition_columns = lazy("seekable.nodes.columns.partitions")
    key_index = lazy("seekable.nodes.keys.key_index")
    map_ranges = lazy("seekable.parallel.map_ranges")

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
) -> Dataset:
    r"""Return a dataset over files, after indexing those that are new or changed.

    The index lies in ``.seekable`` beside the data; where that folder cannot be written, in the user's cache
    folder. A second call costs one stat a file.

    Args:
        source: a path, a folder (its data files by known suffix, in natural order), a glob, or a list of
            those; or ``hf:REPO:SPLIT:COLUMN``, the data files of a split on the Hugging Face Hub (all
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
            used least recently is closed for the next one. The index takes none of them.
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

    Raises:
        DataNotFound: there is no such file, repository or split, or no data file in the folder.
        Unreachable: it is on the Hub, which cannot be reached, and not on this machine.
        CorruptTable: it is a data directory of Kaldi, and its tables do not go together.
        UnsupportedFormat: a suffix is not known, there is more than one format, a file is not what its name
            says or lies beside its compressed copy, a ``.zst`` has no frames that it could be entered at,
            columns of tables do not go together, or it is a folder of another tool, a spec or an address that
            is not read.
        WrongType: the source is neither a path nor a list of paths.
        BadKey: a record has no key.

    Warns:
        DuplicateKeys: some records have the same key.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
        ...     ds = sk.open(folder)
        ...     len(ds), ds[1], ds.locate(1).offset
        (2, {'id': 1}, 10)
    """
    _check_suffix(source, suffix)
    is_shar = may_be_shar(source)
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
        most_open_files=checked_count("max_open_files", max_open_files, least=1),
    )
    indexing = Indexing(index_dir, jobs, executor, progress)
    if is_shar and (found_shar := shar.shar_files(source, format_name=format)) is not None:
        options.refuse_those_of_tokens("a Shar")
        opening = shar.SharOpening(found_shar, key, indexing)
        return Dataset(opening.source(options, with_keys=_with_keys, partitions=partitions))
    if isinstance(source, Mapping):
        options.refuse_those_of_tokens("tar")
        open_one = partial(open, format=format, index_dir=index_dir, jobs=jobs, executor=executor)
        open_one = partial(open_one, progress=progress, partitions=partitions)
        return sibling_archives.open_siblings(source, open_one, options, suffix=suffix, key=key)
    spec = specs.spec_of(source) if has_spec(source) else spec_of_tokens(source, format, options)
    if spec is None:
        found = find_data(source, format_name=format)
        form = format_of_all(found) if format is None else format_named(format)
    else:
        spec.check(options)
        found, form = spec.files(format, index_dir=index_dir)
        options = spec.narrowed(options, form)
    form = form.resolved(options, found)
    build = form.source(options)
    key = _chosen_key(form, key, columns, partitions)
    if partitions is not None:
        _check_partitions(partitions, form, options)
    refuse_copies(found)
    with progress_or_bar(progress) as shown:
        if spec is not None:
            spec.prepare_index(found, form, index_dir=index_dir, progress=shown)
        scanner = form.scanner if spec is None else spec.scanner(form)
        files = replace(indexing, progress=shown).files(found, scanner)
    files = files.limited(options.most_open_files)
    node = build(files) if partitions is None else _without_keys(form, options, files)
    if key is not None:
        node = _with_keys(node, key, indexing)
    if spec is not None:
        node = spec.kept(node)
    if partitions is not None:
        node = partition_columns.partitioned(node, hive_folders.key_types(files), options.columns)
    return Dataset(node)


def _check_suffix(source: object, suffix: object) -> None:
    if suffix is not None and (not isinstance(source, Mapping) or "cuts" in source):
        message = f"suffix= is for a dict of archives, and this is other data (got {suffix!r}): drop it"
        raise InvalidArgument(message)


def _chosen_key(
    form: Format, key: KeyOf | None, columns: Sequence[str] | None, partitions: object
) -> KeyOf | None:
    """Return the definition of keys: that of the user, or of a format whose records always have one.

    Raises:
        InvalidArgument: the keys of the format cannot be defined otherwise.
    """
    if form.holder is not None:
        return _key_of_entries(key, partitions)
    if key is None and form.key and (form.has_keys or columns is None or form.key in columns):
        return form.key
    return key


def _with_keys(node: Any, key: KeyOf, indexing: Indexing) -> Any:
    """Return a source with the index of its keys, which is built if it does not exist.

    Raises:
        BadKey: a record has no key.

    Warns:
        DuplicateKeys: some records have the same key.
    """
    keys = _found_keys(node.files, key, indexing.index_dir)
    if keys is None:
        using = map_ranges.execution_options(indexing.jobs, indexing.executor, at_once=False)
        keys = key_index.open_keys(
            node, key, index_dir=indexing.index_dir, using=using, progress=indexing.progress
        )
    if keys.index.duplicates:
        warnings.warn(key_index.duplicates_message(node, keys), DuplicateKeys, stacklevel=3)
    return replace(node, keys=keys)


def _key_of_entries(key: object, partitions: object) -> KeyOf:
    """Return the definition of the keys of Kaldi's tables.

    Raises:
        InvalidArgument: the user defines another one, or folders are to be columns.
    """
    for name, given in (("key", key), ("partitions", partitions)):
        if given is not None:
            message = (
                f"{name}= is for records that are dicts, and those of Kaldi's tables are pairs of a key and "
                f"an object: leave it out (got {given!r})"
            )
            raise InvalidArgument(message)
    return entry_key


def _check_partitions(partitions: object, form: Format, options: SourceOptions) -> None:
    """Check that folders can be columns.

    Raises:
        InvalidArgument: ``partitions`` is not known, or records are no dicts.
    """
    if partitions != "hive":
        message = f'partitions must be "hive", or left out (got {partitions!r})'
        raise InvalidArgument(message)
    decode = form.decode if options.decode is None else options.decode
    if decode in ("text", "bytes") and options.column is None and not form.has_keys:
        message = (
            f"partitions= adds columns, so records must be dicts, and decode={decode!r} makes none: open "
            f"lines of text as 'txt:PATH:COLUMN'"
        )
        raise InvalidArgument(message)


def _without_keys(form: Format, options: SourceOptions, files: FileSet) -> Any:
    """Return the source of files whose folders are columns too, for the columns that the files have.

    Raises:
        InvalidArgument: neither files nor folders have a column that the user named.
    """
    whole = form.source(replace(options, columns=None))(files)
    if options.columns is None:
        return whole
    declared, keys = whole.declared() or {}, hive_folders.key_types(files)
    if unknown := [name for name in options.columns if name not in declared and name not in keys]:
        there = ", ".join(map(repr, [*declared, *keys])) or "none"
        message = f"no file has a column {unknown[0]!r}, and no folder is one; there are {there}"
        raise InvalidArgument(message)
    return form.source(replace(options, columns=[name for name in options.columns if name in declared]))(
        files
    )


def _found_keys(files: FileSet, key: KeyOf, index_dir: str | os.PathLike[str] | None) -> Keys | None:
    """Return the keys that records have themselves, None if they are not indexed; it loads little code."""
    if key is entry_key:
        made = keyed.keys_of_entries(files.entry(0).format)
    elif key == SAMPLE_KEY and files.word_counts().any():
        made = keyed.keys_of_samples(files.entry(0).format)
    else:
        return None
    wanted = keyed.Keyed.of(files, made)
    for folder in hashes.places(files, index_dir=index_dir):
        if index := hashes.read_keys(folder, wanted):
            return Keys(key, index)
    return None
