"""The opening of a checked source: its format says which files it has, and makes the node that reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable._log import warn_caller
from seekable.dataset.dataset import Dataset
from seekable.errors import DuplicateKeys, InvalidArgument
from seekable.formats.classify import check_names, classify, refuse_copies
from seekable.formats.finding import sampled_files
from seekable.index.surveyor import is_table_indexer
from seekable.nodes.display import listed
from seekable.nodes.key import SAMPLE_KEY, Keys, entry_key
from seekable.parallel.progress import progress_or_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.contract import Claim, Format, Reading
    from seekable.index import key_files
    from seekable.index.fileset import FileSet
    from seekable.index.opening import Indexing
    from seekable.index.surveyor import Finder
    from seekable.nodes import key_lookup
    from seekable.nodes.columns import partitions as partition_columns
    from seekable.nodes.key import KeyOf
    from seekable.nodes.node import Node
    from seekable.parallel import map_ranges
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.storage import addresses
    from seekable.storage.listing import Asked, FoundFiles
else:
    addresses = lazy("seekable.storage.addresses")
    key_files = lazy("seekable.index.key_files")
    partition_columns = lazy("seekable.nodes.columns.partitions")
    key_lookup = lazy("seekable.nodes.key_lookup")
    map_ranges = lazy("seekable.parallel.map_ranges")

__all__ = ["Opening", "shown_source"]


class _Counted:
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
            self._hook(replace(progress, files_done=before + progress.files_done, files=files))


class Opening:
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
        self._progress = _Counted(None)

    def dataset(self, source: Asked | Mapping[str, Asked]) -> Dataset:
        """Return a dataset over the files of a source.

        Args:
            source: the source, checked, with the addresses under which its files are named.

        Raises:
            SeekableError: as ``sk.open``.
        """
        return Dataset(self.node(source))

    def node(self, source: Asked | Mapping[str, Asked]) -> Node:
        """Return the node that reads a source."""
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
            self._progress = _Counted(shown)
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
        return replace(claim, found=sampled_files(claim.found))

    def side(self, source: Asked, given: str | Format | None) -> Node:
        """Return the node of one of several sources that belong together, whose payloads stay bytes."""
        reading = replace(self.reading, shown=shown_source(source), decode="bytes", columns=None)
        indexing = replace(self._indexing, progress=self._progress)
        return Opening(reading, indexing, given, None, is_sampled=False).node(source)

    def indexed(self, found: Sequence[FoundFiles], finder: Finder) -> FileSet:
        """Return indexed files. The progress of several calls is counted on."""
        self._progress.begin()
        return replace(self._indexing, progress=self._progress).files(found, finder)

    def records(self, claim: Claim) -> Any:
        """Return the source of the files of a claim, indexed, with keys and the columns of folders.

        Raises:
            SeekableError: as ``sk.open``.
        """
        reading, form = self.reading, claim.format.settled(claim.found)
        if claim.columns is not None:
            reading = replace(reading, columns=claim.columns)
        form.check(reading)
        key, is_hive = form.key(self.key, reading), getattr(form, "partitions", None) is not None
        refuse_copies(claim.found)
        finder = form.finder
        check_names(form, finder)
        if claim.before_index is not None:
            index_dir = self._indexing.index_dir
            claim.before_index(claim.found, finder, index_dir=index_dir, progress=self._progress)
        files = self.indexed(claim.found, finder)
        files = files.limited(reading.most_open_files, keeps_maps=not is_table_indexer(finder))
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


def _below_folders(form: Format, reading: Reading, files: FileSet) -> Any:
    """Return the source of files whose folders are columns too, for the columns that the files have.

    Raises:
        InvalidArgument: neither files nor folders have a column that the user named.
    """
    whole = form.leaf(files, replace(reading, columns=None))
    if reading.columns is None:
        return whole
    declared, keys = whole.declared() or {}, partition_columns.key_types(files)
    if unknown := [name for name in reading.columns if name not in declared and name not in keys]:
        there = ", ".join(map(repr, [*declared, *keys])) or "none"
        message = f"no file has a column {unknown[0]!r}, and no folder is one; there are {there}"
        raise InvalidArgument(message)
    own = [name for name in reading.columns if name in declared]
    return form.leaf(files, replace(reading, columns=own))


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
