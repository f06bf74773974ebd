"""The function ``open``: the format of a source says which files it has; they are indexed, then read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import xxhash
from msgspec import structs

from seekable._arguments import explains_keywords
from seekable._lazy import lazy
from seekable._log import warn_caller
from seekable._other_words import OPEN
from seekable.dataset.dataset import Dataset
from seekable.errors import DuplicateKeys, InvalidArgument, WrongType
from seekable.formats.classify import check_names, classify, refuse_copies
from seekable.formats.contract import Format, Reading
from seekable.index.index_location import Index
from seekable.index.opening import Indexing
from seekable.nodes.display import listed
from seekable.nodes.key import SAMPLE_KEY, Keys, entry_key
from seekable.parallel.progress import progress_or_bar
from seekable.storage.access import Storage
from seekable.storage.far import far
from seekable.storage.listing import FoundFiles, checked_asked, has_addresses
from seekable.storage.trust import checked_allow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.formats.contract import Claim, OnError
    from seekable.index import key_files
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes import key_lookup
    from seekable.nodes.columns import partitions as partition_columns
    from seekable.nodes.files.decoders import AskedDecoder, Decode
    from seekable.nodes.key import KeyOf
    from seekable.nodes.node import Node
    from seekable.parallel import map_ranges
    from seekable.parallel.progress import Progress, ProgressChoice, ProgressHook
    from seekable.storage import addresses
    from seekable.storage.listing import Asked
else:
    addresses = lazy("seekable.storage.addresses")
    key_files = lazy("seekable.index.key_files")
    partition_columns = lazy("seekable.nodes.columns.partitions")
    key_lookup = lazy("seekable.nodes.key_lookup")
    map_ranges = lazy("seekable.parallel.map_ranges")

__all__ = ["open", "shown_source"]

_SAMPLED = 64
"""The number of files of a sample."""

_SAMPLE_KEY = 0x5EEC_AB1E
"""The key of the permutation of names; another one would be another sample."""


class _CountedFiles:
    """A hook for the progress of several builds, whose files are counted on."""

    def __init__(self, hook: ProgressHook | None) -> None:
        self._hook = hook
        self._before = self._done = 0

    def begin(self) -> None:
        """Count on from the files of the build that has ended."""
        self._before += self._done
        self._done = 0

    def __call__(self, progress: Progress) -> None:
        """Pass on the progress of a build, with the files of the builds before it."""
        self._done, before = progress.files_done, self._before
        if self._hook is not None:
            files = before + progress.files
            self._hook(structs.replace(progress, files_done=before + progress.files_done, files=files))


class _Opening:
    """The arguments of ``sk.open`` but the source, checked; see `seekable.formats.contract.Opening`."""

    def __init__(
        self,
        reading: Reading,
        indexing: Indexing,
        given: str | Format | None,
        key: KeyOf | None,
        *,
        is_sampled: bool,
    ) -> None:
        """Hold the arguments.

        Args:
            reading: those that say how records are read.
            indexing: those that say how files are indexed.
            given: the format that the user gave.
            key: the key of records that the user named.
            is_sampled: True to take the sample of ``Index(sampled=True)`` instead of all files.
        """
        self.reading, self.key = reading, key
        self._indexing, self._given, self._is_sampled = indexing, given, is_sampled
        self._progress: _CountedFiles

    def node(self, source: Asked | Mapping[str, Asked]) -> Node:
        """Return the node that reads a source.

        Args:
            source: the source, checked, with the addresses under which its files are named.

        Raises:
            SeekableError: as ``sk.open``.
        """
        claim = classify(
            source,
            self._given,
            shown=self.reading.shown,
            columns=self.reading.columns,
            allow=self.reading.allow,
            index_dir=self._indexing.index_dir,
        )
        if self._is_sampled:
            claim = self._sampled(claim)
        with progress_or_bar(self._indexing.progress) as shown:
            self._progress = _CountedFiles(shown)
            node: Node = claim.format.open(claim, self)
        return node

    def _sampled(self, claim: Claim) -> Claim:
        """Return some files of a claim.

        Raises:
            InvalidArgument: they belong together.
        """
        if claim.together:
            message = (
                f"Index(sampled=True) opens some files of a folder, a glob or a list, and the files of "
                f"{self.reading.shown:.200} belong together: leave it out, or name the files"
            )
            raise InvalidArgument(message)
        return structs.replace(claim, found=_sampled_files(claim.found))

    def side(self, source: Asked, given: str | Format | None) -> Node:
        """Return the node of one of several sources that belong together, whose payloads stay bytes."""
        reading = structs.replace(self.reading, shown=shown_source(source), decode="bytes", columns=None)
        indexing = structs.replace(self._indexing, progress=self._progress)
        return _Opening(reading, indexing, given, None, is_sampled=False).node(source)

    def indexed(self, found: Sequence[FoundFiles], finder: Finder) -> FileSet:
        """Return indexed files. The progress of several calls is counted on."""
        self._progress.begin()
        return structs.replace(self._indexing, progress=self._progress).files(found, finder)

    def records(self, claim: Claim) -> Any:
        """Return the source over a claim's files, indexed, with keys and the columns of folders.

        Raises:
            SeekableError: as ``sk.open``.
        """
        reading, form = self.reading, claim.format.settled(claim.found)
        if claim.columns is not None:
            reading = structs.replace(reading, columns=claim.columns)
        form.check(reading)
        key, is_hive = form.key(self.key, reading), getattr(form, "partitions", None) is not None
        refuse_copies(claim.found)
        finder = form.finder
        check_names(form, finder)
        if claim.before_index is not None:
            index_dir = self._indexing.index_dir
            claim.before_index(claim.found, finder, index_dir=index_dir, progress=self._progress)
        files = self.indexed(claim.found, finder)
        node = self.keyed(_below_folders(form, reading, files) if is_hive else form.leaf(files, reading), key)
        if is_hive:
            node = partition_columns.partitioned(node, partition_columns.key_types(files), reading.columns)
        return node

    def keyed(self, leaf: Any, key: KeyOf | None) -> Any:
        """Return a source with the index of its keys, which is built if it does not exist.

        Raises:
            BadKey: a record has no key.
            InvalidArgument: records of this source have no keys.

        Warns:
            DuplicateKeys: some records have the same key.
        """
        if key is None:
            return leaf
        if "keys" not in leaf.__dataclass_fields__:
            message = (
                f"key= is for records with keys, and documents of tokens have numbers alone (got {key!r})"
            )
            raise InvalidArgument(message)
        indexing = self._indexing
        keys = _found_keys(leaf.files, key, indexing.index_dir)
        if keys is None:
            using = map_ranges.execution_options(indexing.jobs, indexing.executor, at_once=False)
            keys = key_lookup.open_keys(
                leaf, key, index_dir=indexing.index_dir, using=using, progress=indexing.progress
            )
        if keys.index.duplicates:
            warn_caller(key_lookup.duplicates_message(leaf, keys), DuplicateKeys)
        return replace(leaf, keys=keys)


def _sampled_files(found: Iterable[FoundFiles]) -> tuple[FoundFiles, ...]:
    """Return the first 64 files of a keyed permutation of the names, in the order in which they are found.

    The permutation orders names by a keyed digest. So files that are added later change the sample only where
    they are in it themselves, and a copy of the data elsewhere has the same sample.

    Args:
        found: the files; 64 of them or fewer are all in the sample.

    Example:
        >>> from seekable.storage.listing import FoundFiles
        >>> names = tuple(f"{number:03}.jsonl" for number in range(1000))
        >>> (sample,) = _sampled_files([FoundFiles("/data", names)])
        >>> len(sample.names), sample.names[:3]
        (64, ('005.jsonl', '028.jsonl', '045.jsonl'))
    """
    runs = list(found)
    files = dict.fromkeys((run.root, name) for run in runs for name in run.names)
    chosen = set(sorted(files, key=_place_in_permutation)[:_SAMPLED])
    narrowed = (
        FoundFiles(run.root, tuple(name for name in run.names if (run.root, name) in chosen)) for run in runs
    )
    return tuple(run for run in narrowed if run.names)


def _place_in_permutation(file: tuple[str, str]) -> int:
    _, name = file
    return xxhash.xxh3_64_intdigest(os.fsencode(name), seed=_SAMPLE_KEY)


def _below_folders(form: Format, reading: Reading, files: FileSet) -> Any:
    """Return the source of files whose folders are columns too, for the columns that the files have.

    Raises:
        InvalidArgument: neither files nor folders have a column that the user named.
    """
    whole = form.leaf(files, structs.replace(reading, columns=None))
    if reading.columns is None:
        return whole
    declared, keys = whole.declared() or {}, partition_columns.key_types(files)
    if unknown := [name for name in reading.columns if name not in declared and name not in keys]:
        there = ", ".join(map(repr, [*declared, *keys])) or "none"
        message = f"no file has a column {unknown[0]!r}, and no folder is one; there are {there}"
        raise InvalidArgument(message)
    own = [name for name in reading.columns if name in declared]
    return form.leaf(files, structs.replace(reading, columns=own))


def _found_keys(files: FileSet, key: KeyOf, index_dir: str | os.PathLike[str] | None) -> Keys | None:
    """Return the keys that records have themselves, None if they are not indexed; it loads little code."""
    if key is entry_key:
        made = key_files.keys_of_entries(files.entry(0).format)
    elif key == SAMPLE_KEY and files.word_counts().any():
        made = key_files.keys_of_samples(files.entry(0).format)
    else:
        return None
    wanted = key_files.Keyed.of(files, made)
    for folder in key_files.places(files, index_dir=index_dir):
        if index := key_files.read_keys(folder, wanted):
            return Keys(key, index)
    return None


def shown_source(source: Asked | Mapping[str, Asked]) -> str:
    """Return the source as the user would write it in code."""
    if isinstance(source, Mapping):
        return f"{{{', '.join(f'{name!r}: {shown_source(asked)}' for name, asked in source.items())}}}"
    if isinstance(source, str | os.PathLike):
        return repr(_shown_item(os.fspath(source)))
    paths = [_shown_item(os.fspath(path)) for path in source]
    return f"[{listed([repr(path) for path in paths])}]"


def _shown_item(text: str) -> str:
    return addresses.shown_item(text) if "://" in text else text


T = TypeVar("T", Index, Storage)

_OF_FORMATS = {
    **dict.fromkeys(("delimiter", "quote", "encoding"), "Csv"),
    **dict.fromkeys(("group", "splitname", "missing", "concatenated", "suffix", "pairs"), "Tar"),
    **dict.fromkeys(("dtype", "eos", "bos"), "Tokens"),
    **dict.fromkeys(("holder", "pipes", "permissive"), "Kaldi"),
    **dict.fromkeys(("strict", "kind"), "Tables"),
    "pack": "Jsonl",
}
_OF_INDEX = {
    "index_dir": "folder",
    **dict.fromkeys(("folder", "jobs", "executor", "sampled", "publish", "most_bytes", "allow")),
}
_OF_STORAGE = {
    "storage_options": "options",
    **dict.fromkeys(("options", "filesystem", "cache", "pin", "refresh", "max_open_files")),
}
_ELSEWHERE = {
    **{name: f"format=sk.formats.{kind}({name}=...)" for name, kind in _OF_FORMATS.items()},
    **{name: f"index=sk.Index({to or name}=...)" for name, to in _OF_INDEX.items()},
    **{name: f"storage=sk.Storage({to or name}=...)" for name, to in _OF_STORAGE.items()},
    "column": "columns=[...], or for lines of text format=sk.formats.Text(column=...)",
    "field": "columns=[...], or for lines format=sk.formats.Jsonl(field=...)",
    "partitions": "format=sk.formats.Tables(partitions=...), or that of Jsonl, Text, Csv, Tar or Tokens",
    **OPEN,
}
"""Where a value goes that people give to ``open`` itself."""


@explains_keywords(_ELSEWHERE)
def open(  # noqa: PLR0913 - the one public place that owns these defaults
    source: Asked | Mapping[str, Asked],
    *,
    format: str | Format | None = None,  # noqa: A002 - the public name
    decode: Decode | Mapping[str, AskedDecoder] | None = None,
    columns: Sequence[str] | None = None,
    key: KeyOf | None = None,
    errors: OnError | None = None,
    version: str | int | None = None,
    index: Index | None = None,
    storage: Storage | None = None,
    progress: ProgressChoice = None,
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
            With it, a folder that is a dataset of another tool counts as a plain folder. What one format
            alone knows is an option of a value: ``sk.formats.Tar(group="key")``, ``Csv(delimiter="|")``,
            ``Tables(strict=True)``, ``Tokens(dtype="uint16")``, ``Kaldi(holder="matrix")``.
        decode: of lines ``"json"``, ``"text"`` (a str), ``"bytes"``, or a function of a line's bytes, which
            is called when a record is read; of tables ``"python"`` (dicts of Python values), ``"numpy"``
            (dicts of numpy's) or ``"arrow"`` (record batches), of which JSON lines and CSV take the last two
            also, in columns that their first 1,000 records decide; of tar files ``"bytes"``,
            ``"webdataset"``, ``"audio"``, the name of a form of images such as ``"pil"`` or ``"rgb8"``, or a
            dict from fields to names of decoders and functions of bytes; of Shar also ``"lhotse"``, which
            makes cuts of Lhotse. The format's own if left out.
        columns: of tables, of lines that are decoded as columns, of samples of tar files, and of the
            utterances of ``kaldi:DIR``, the names of the columns to read, in the order in which records have
            them; nothing is read of the others.
        key: the key of a record, for ``ds.key``: the name of a field, or a function of the record, which
            gives a str or an int. Keys are read once and written beside the index, 16 bytes a record.
        errors: called with the ``CorruptRecord`` of a record that cannot be decoded; returns what to deliver
            instead, or ``sk.HOLE``, which keeps its position and which a ``Loader`` leaves out of batches. It
            does not enter the fingerprint: a run that stopped at such a record goes on with it.
        version: enters the fingerprint beside the name of a ``decode`` function or a holder; stands for its
            code, and for that of a ``key`` function, where keys are kept.
        index: how files are indexed, and where: `sk.Index`.
        storage: how files are reached: `sk.Storage`.
        progress: a function that is called with the progress of the indexing; False for none. By default a
            bar on a terminal.

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
    checked: Any = (
        {name: checked_asked(asked) for name, asked in source.items()}
        if isinstance(source, Mapping)
        else checked_asked(source)
    )
    how = _checked("index", index, _INDEX)
    reach = _checked("storage", storage, _STORAGE)
    if format is not None and not isinstance(format, str | Format):
        message = f"format must be a name, or a value such as sk.formats.Tar() (got {format!r:.200})"
        raise WrongType(message)
    reading = Reading(
        shown=shown_source(checked),
        decode=decode,
        columns=columns,
        errors=errors,
        version=version,
        allow=checked_allow(how.allow),
        most_open_files=reach.max_open_files,
    )
    indexing = Indexing(
        how.folder,
        how.jobs,
        how.executor,
        progress,
        how.most_bytes,
        how.publish,
        reach.pin == "version",
        reach.max_open_files,
    )
    opening = _Opening(reading, indexing, format, key, is_sampled=how.sampled)
    if not has_addresses(checked) and not reach.is_for_stores:
        return Dataset(opening.node(checked))
    with far().opened(checked, reach, index_dir=how.folder) as renamed:
        return Dataset(opening.node(renamed))


_INDEX, _STORAGE = Index(), Storage()
"""What ``index=`` and ``storage=`` are where they are left out."""


def _checked(name: str, given: T | None, default: T) -> T:
    """Return a value of the class of its default.

    Raises:
        WrongType: it is something else.
    """
    if given is not None and not isinstance(given, type(default)):
        message = f"{name} must be a sk.{type(default).__name__}(...), or left out (got {given!r:.200})"
        raise WrongType(message)
    return default if given is None else given
