"""The opening of a checked source: its files are found and indexed, and the node that reads them is built."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, final

from seekable._lazy import lazy
from seekable._log import LOG
from seekable.dataset.dataset import Dataset
from seekable.dataset.source_kinds import has_spec, may_be_shar, shown_source, spec_of_tokens
from seekable.errors import DuplicateKeys, InvalidArgument
from seekable.formats.finding import sampled_files
from seekable.formats.registry import find_data, format_named, format_of_all, refuse_copies
from seekable.index.surveyor import is_table_indexer
from seekable.nodes.keys.key import SAMPLE_KEY, Keys, entry_key
from seekable.parallel.progress import progress_or_bar

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from seekable.dataset import specs
    from seekable.formats.contract import Format as FormatValue
    from seekable.formats.registry import Format
    from seekable.formats.shar import shar_spec
    from seekable.formats.shar.discovery import SharFiles
    from seekable.formats.source_options import SourceOptions
    from seekable.formats.tar import other_fields, sibling_archives
    from seekable.index import key_files
    from seekable.index.fileset import FileSet
    from seekable.index.opening import Indexing
    from seekable.nodes.columns import hive_folders
    from seekable.nodes.columns import partitions as partition_columns
    from seekable.nodes.keys import key_index
    from seekable.nodes.keys.key import KeyOf
    from seekable.parallel import map_ranges
    from seekable.storage.listing import Asked, FoundFiles
else:
    shar_spec = lazy("seekable.formats.shar.shar_spec")
    sibling_archives = lazy("seekable.formats.tar.sibling_archives")
    specs = lazy("seekable.dataset.specs")
    key_files = lazy("seekable.index.key_files")
    hive_folders = lazy("seekable.nodes.columns.hive_folders")
    partition_columns = lazy("seekable.nodes.columns.partitions")
    key_index = lazy("seekable.nodes.keys.key_index")
    other_fields = lazy("seekable.formats.tar.other_fields")
    map_ranges = lazy("seekable.parallel.map_ranges")

__all__ = ["Opening"]


@final
@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments of ``sk.open`` but the source, checked."""

    options: SourceOptions
    """Those that say how records are read."""

    indexing: Indexing
    """Those that say how files are indexed."""

    format_name: str | None
    format_value: FormatValue | None
    """The format that the user gave as a value; then there is no name."""

    key: KeyOf | None
    is_sampled: bool
    """True to take the sample of ``Index(sampled=True)`` instead of all files."""

    @property
    def partitions(self) -> Literal["hive"] | None:
        """The option of formats whose records are dicts."""
        found: Literal["hive"] | None = getattr(self.format_value, "partitions", None)
        return found

    def dataset(self, source: Asked | Mapping[str, Asked]) -> Dataset:
        """Return a dataset over the files of a source.

        Args:
            source: the source, checked, with the addresses under which its files are named.

        Raises:
            SeekableError: as ``sk.open``.
        """
        options, indexing, index_dir = self.options, self.indexing, self.indexing.index_dir
        value, partitions = self.format_value, self.partitions
        is_spec = has_spec(source)
        format_name = self.format_name if value is None or is_spec else value.name_for(source)
        if (
            may_be_shar(source)
            and (found_shar := shar_spec.shar_files(source, format_name=format_name)) is not None
        ):
            return self._of_shar(found_shar)
        if isinstance(source, Mapping):
            return self._of_siblings(source)
        spec = specs.spec_of(source) if is_spec else spec_of_tokens(source, format_name, options)
        if spec is None:
            found = find_data(source, format_name=format_name)
            form = format_of_all(found) if format_name is None else format_named(format_name)
            found = sampled_files(found) if self.is_sampled else found
        else:
            self._refuse_sample()
            spec.check(options)
            found, form = spec.files(format_name, index_dir=index_dir)
            options = spec.narrowed(options, form)
        form = self._resolved(form, options, found)
        build = form.source(options)
        key = _chosen_key(form, self.key, options.columns, partitions)
        if partitions is not None:
            _check_dicts(form, options)
        refuse_copies(found)
        with progress_or_bar(indexing.progress) as shown:
            if spec is not None:
                spec.prepare_index(found, form, index_dir=index_dir, progress=shown)
            scanner = form.scanner if spec is None else spec.scanner(form)
            files = replace(indexing, progress=shown).files(found, scanner)
        files = files.limited(options.most_open_files, keeps_maps=not is_table_indexer(scanner))
        node = build(files) if partitions is None else _without_keys(form, options, files)
        if key is not None:
            node = _with_keys(node, key, indexing)
        if spec is not None:
            node = spec.kept(node)
        elif form.name == "jsonl" and len(files) > 1 and (said := other_fields.other_fields(node)):
            LOG.warning("%s", said)
        if partitions is not None:
            node = partition_columns.partitioned(node, hive_folders.key_types(files), options.columns)
        return Dataset(node)

    def _resolved(self, form: Format, options: SourceOptions, found: Sequence[FoundFiles]) -> Format:
        """Return the format with all that decides where records start; see ``Format.resolved``.

        Raises:
            InvalidArgument: options are given that are for other data.
        """
        self._check_value(form.name)
        if (suffix := getattr(self.format_value, "suffix", None)) is not None:
            message = f"suffix= is for a dict of archives, and this is other data (got {suffix!r}): drop it"
            raise InvalidArgument(message)
        return form.resolved(options, found)

    def _check_value(self, name: str) -> None:
        if self.format_value is not None:
            self.format_value.check(name, self.options.shown)

    def _of_shar(self, found: SharFiles) -> Dataset:
        self._check_value("shar")
        self._refuse_sample()
        opening = shar_spec.SharOpening(found, self.key, self.indexing)
        return Dataset(opening.source(self.options, with_keys=_with_keys))

    def _of_siblings(self, archives: Mapping[str, Asked]) -> Dataset:
        self._check_value("tar")
        self._refuse_sample()
        suffix = getattr(self.format_value, "suffix", None)
        return sibling_archives.open_siblings(archives, self._side, self.options, suffix=suffix, key=self.key)

    def _side(self, source: Asked) -> Dataset:
        """Return the dataset of one side of sibling archives, whose payloads are bytes."""
        options = replace(
            self.options, shown=shown_source(source), decode="bytes", columns=None, missing=None
        )
        value: Any = self.format_value
        value = None if value is None else replace(value, suffix=None)
        return replace(self, options=options, format_value=value).dataset(source)

    def _refuse_sample(self) -> None:
        """Refuse a sample of files that belong together.

        Raises:
            InvalidArgument: a sample is asked for.
        """
        if self.is_sampled:
            message = (
                f"Index(sampled=True) opens some files of a folder, a glob or a list, and the files of "
                f"{self.options.shown:.200} belong together: leave it out, or name the files"
            )
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
        warnings.warn(key_index.duplicates_message(node, keys), DuplicateKeys, stacklevel=5)
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


def _check_dicts(form: Format, options: SourceOptions) -> None:
    """Check that folders can be columns.

    Raises:
        InvalidArgument: records are no dicts.
    """
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
