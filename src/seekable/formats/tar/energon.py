"""Samples in tar files that other tools describe: Energon by ``.nv-meta/``, and wids by a list of shards.

``.info.json`` (older: ``.info.yaml``) has the number of samples of each shard, in the order of the dataset.
``split.yaml`` has for each split a list of shards, which may have braces, and under ``exclude`` what is left
out of all splits: shards, and samples as ``shard/key``. Neither is code. ``dataset.yaml`` names Python code
that makes samples of fields: it is never read.

A list of wids, ``wids:shards/index.json``, names tar files in its order, with the samples of each.
"""

from __future__ import annotations

import itertools
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import numpy as np

from seekable._log import LOG
from seekable._optional import optional
from seekable.errors import (
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KeyNotFound,
    MissingDependency,
    UnsupportedFormat,
)
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim
from seekable.formats.look import find_files
from seekable.formats.refusals import refuse_unopened
from seekable.formats.tar.sample_source import SampleSource
from seekable.index.digest import key_hash
from seekable.nodes.select import Select
from seekable.storage import addresses, paths, trust
from seekable.storage.addresses import shown
from seekable.storage.file_names import expanded
from seekable.storage.listing import FoundFiles
from seekable.storage.trust import check_below, named_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.formats.look import Look
    from seekable.nodes.node import Node

__all__ = [
    "META",
    "NOT_READ",
    "EnergonDataset",
    "EnergonSplit",
    "EnergonSplitFiles",
    "WidsFiles",
    "energon_claim",
    "read_energon",
    "splits_in_words",
    "wids_claim",
]


yaml: Any = optional("yaml", extra="energon")


META = ".nv-meta"
"""The folder of the description, in the folder of the data."""

NOT_READ = "dataset.yaml"
"""The file of the description that says how samples are made of fields, in Python."""

_COUNTS = (".info.json", ".info.yaml")
_SPLITS = "split.yaml"
_OUTSIDE = "Or move the tar file there, or open the tar files themselves, as a list of their paths"


@dataclass(frozen=True, slots=True)
class EnergonSplit:
    """The shards of one split."""

    counts: Mapping[str, int]
    """The number of samples of each shard by its name, in the order of the dataset."""

    excluded: Mapping[str, frozenset[str]]
    """The keys of the samples that are left out, by the name of their shard."""


@dataclass(frozen=True, slots=True)
class EnergonDataset:
    """The shards and the splits of a dataset of Energon, as its files in ``.nv-meta`` describe them."""

    folder: str
    """The folder of the data."""

    counts: Mapping[str, int]
    """The number of samples of each shard by its name, in the order of the dataset."""

    splits: Mapping[str, tuple[str, ...]]
    """The names of the shards of each split."""

    exclude: tuple[str, ...]
    """What is left out of all splits: shards, and samples as ``shard/key``."""

    def split(self, name: str, allow: tuple[str, ...] = ()) -> EnergonSplit:
        """Return the shards of a split; ``allow`` has other folders that they may lie in.

        Raises:
            DataNotFound: there is no such split, or it has no shard.
            UnsupportedFormat: a shard is not in the list of counts, or does not lie below the folder, or an
                exclusion is of no shard.
        """
        if name not in self.splits:
            message = f"{self.folder!r} has no split {name!r}; there is {splits_in_words(self)}"
            raise DataNotFound(message)
        wanted, path = self.splits[name], _path(self.folder, _SPLITS)
        if unknown := [shard for shard in wanted if shard not in self.counts]:
            _refuse(path, f"the split {name!r} has the shard {unknown[0]!r}, of which there is no count")
        shards, keys = self._exclusions(path)
        for shard in wanted:
            check_below(shard, [shown(self.folder)], by=repr(path), way_out=_OUTSIDE, allow=allow)
        chosen = set(wanted) - shards
        if not chosen:
            message = f"the split {name!r} of {self.folder!r} has no shard that is not excluded"
            raise DataNotFound(message)
        counts = {shard: count for shard, count in self.counts.items() if shard in chosen}
        return EnergonSplit(counts, {shard: frozenset(keys[shard]) for shard in counts if shard in keys})

    def _exclusions(self, path: str) -> tuple[set[str], dict[str, set[str]]]:
        """Return the shards that are left out, and the keys that are, by shard."""
        shards: set[str] = set()
        keys: dict[str, set[str]] = {}
        for text in self.exclude:
            if text in self.counts:
                shards.add(text)
                continue
            # Names of shards and keys may both have slashes.
            ends = [at for at, character in enumerate(text) if character == "/" and text[:at] in self.counts]
            if not ends:
                _refuse(path, f"{text!r} under exclude is no shard and no shard/key")
            keys.setdefault(text[: ends[-1]], set()).add(text[ends[-1] + 1 :])
        return shards, keys


def splits_in_words(dataset: EnergonDataset) -> str:
    """Return the names of the splits that have shards, for messages."""
    return ", ".join(repr(name) for name, shards in dataset.splits.items() if shards) or "none"


def read_energon(folder: str) -> EnergonDataset:
    """Return the description of a dataset.

    Raises:
        DataNotFound: the folder is not a dataset of Energon.
        AccessDenied: this user may not read a file of the description.
        MissingDependency: pyyaml is not installed.
        UnsupportedFormat: a file of the description is not what it must be.
    """
    there: list[str] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        there = paths.list_folder(os.path.join(folder, META))
    name = next((name for name in _COUNTS if name in there), None)
    if name is None or _SPLITS not in there:
        missing = _SPLITS if name else " or ".join(_COUNTS)
        message = (
            f"{folder!r} is no prepared dataset of Energon: there is no {missing} in "
            f"{os.path.join(folder, META)!r}. Its tar files are opened as {os.path.join(folder, '*.tar')!r}"
        )
        raise DataNotFound(message)
    counts = _checked_counts(_path(folder, name), _document(folder, name).get("shard_counts"))
    path, document = _path(folder, _SPLITS), _document(folder, _SPLITS)
    parts = document.get("split_parts")
    if not isinstance(parts, dict):
        _refuse(path, "it has no split_parts")
    splits = {str(split): _shards(path, f"split_parts of {split}", some) for split, some in parts.items()}
    return EnergonDataset(folder, counts, splits, _shards(path, "exclude", document.get("exclude")))


def _path(folder: str, name: str) -> str:
    return os.path.join(folder, META, name)


def _document(folder: str, name: str) -> dict[Any, Any]:
    path = _path(folder, name)
    data = paths.read_bytes(path)
    parse = json.loads if name.endswith(".json") else yaml.safe_load
    try:
        found = parse(data)
    except MissingDependency:
        raise
    except Exception as error:  # noqa: BLE001 - of pyyaml, which may not be there to name its own
        _refuse(path, f"it cannot be parsed: {' '.join(str(error).split())}")
    if not isinstance(found, dict):
        _refuse(path, f"it holds no mapping: {found!r:.100}")
    return found


def _checked_counts(path: str, found: object) -> dict[str, int]:
    if not isinstance(found, dict) or not found:
        _refuse(path, "it has no shard_counts")
    for name, count in found.items():
        if not isinstance(name, str) or type(count) is not int or count < 0:
            _refuse(path, f"shard_counts has {name!r}: {count!r}, which is no number of samples")
    return found


def _shards(path: str, what: str, found: object) -> tuple[str, ...]:
    """Return the texts of a list, with their braces expanded."""
    texts = [] if found is None else found
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        _refuse(path, f"{what} is no list of names: {found!r:.100}")
    return tuple(shard for text in texts for shard in expanded(text))


def _refuse(path: str, found: str) -> NoReturn:
    message = f"{path!r}: {found}. Write it again with `energon prepare`, or open the tar files themselves"
    raise UnsupportedFormat(message)


_SCHEME = "energon:"


@dataclass(frozen=True, slots=True)
class EnergonSplitFiles:
    """A split of a dataset of Energon."""

    text: str
    """The spec, as the user wrote it."""

    folder: str
    """The absolute path of the folder of the dataset."""

    split: str | None
    """The name of the split; None for the only one."""

    allow: tuple[str, ...] = ()
    """The folders and files, besides the folder of the dataset, that its list may name."""

    def found(self) -> tuple[FoundFiles, ...]:
        """Return the shards of the split, in the order of the dataset.

        Raises:
            DataNotFound: there is no such dataset, split or shard.
            InvalidArgument: the spec has no split, and there are several.
            UnsupportedFormat: the description of the dataset is damaged.
        """
        if paths.is_file(path := os.path.join(self.folder, META, NOT_READ)):
            LOG.info(
                f"{path!r} is not read: it says in Python how Energon makes samples. Records have the fields "
                f"of the tar files"
            )
        shards = self._split().counts
        paths_of = [named_path(shard, self.folder) for shard in shards]
        if all(path.startswith(os.path.join(self.folder, "")) for path in paths_of):
            return (FoundFiles(self.folder, tuple(shards)),)
        return tuple(
            FoundFiles(folder, tuple(map(os.path.basename, files)))
            for folder, files in itertools.groupby(paths_of, os.path.dirname)
        )

    def kept(self, source: Node) -> Node:
        """Return the samples of the split, without the excluded ones.

        Args:
            source: the source of all samples of the shards.

        Raises:
            IndexStale: a shard has another number of samples than its description says.
            KeyNotFound: an excluded sample is not there.
        """
        assert isinstance(source, SampleSource)
        split = self._split()
        for (shard, count), records in zip(split.counts.items(), source.files.records.tolist(), strict=True):
            if records != count:
                message = (
                    f"{os.path.join(self.folder, shard)!r} has {records:,} samples, and the list of counts "
                    f"in {META} says {count:,}: the shard was changed or is damaged. Put the old file back, "
                    f"or run `energon prepare` again"
                )
                raise IndexStale(message)
        excluded = [
            row
            for file, shard in enumerate(split.counts)
            if shard in split.excluded
            for row in self._rows(source, file, shard, split.excluded[shard])
        ]
        return Select(source, np.delete(np.arange(source.size), excluded)) if excluded else source

    def _rows(self, source: SampleSource, file: int, shard: str, keys: frozenset[str]) -> Iterator[int]:
        """Yield the rows of the excluded samples of one shard."""
        rows = np.arange(source.files.starts[file], source.files.starts[file + 1])
        hashes = source.key_hashes(rows)
        for key in sorted(keys):
            same = rows[hashes == np.uint64(key_hash(key))].tolist()
            found = [row for row in same if source.key_at(row) == key]
            if not found:
                message = (
                    f"{shard}/{key} is excluded from {self.folder!r}, and the shard has no sample of this "
                    f"key: correct {os.path.join(META, 'split.yaml')!r}"
                )
                raise KeyNotFound(message)
            yield from found

    def _split(self) -> EnergonSplit:
        """Return the shards of the split.

        Raises:
            InvalidArgument: the spec has no split, and there are several.
        """
        dataset = read_energon(self.folder)
        if self.split is not None:
            return dataset.split(self.split, self.allow)
        named = [name for name, shards in dataset.splits.items() if shards]
        if len(named) == 1:
            return dataset.split(named[0], self.allow)
        message = (
            f"{self.text!r} names no split, and there is {splits_in_words(dataset)}: write "
            f"{f'{_SCHEME}{self.folder}:SPLIT'!r}"
        )
        raise InvalidArgument(message)


def energon_claim(look: Look) -> Claim:
    """Return the shards of a split: ``energon:DIR:SPLIT``, or ``energon:DIR`` if there is only one.

    Raises:
        DataNotFound: there is no such folder, dataset, split or shard.
        InvalidArgument: the spec has no folder, or the user gave another format.
        UnsupportedFormat: the description of the dataset is damaged.
    """
    split = _split_files(look)
    return Claim(format=format_of_spec(look, "tar"), found=split.found(), detail=split)


def _split_files(look: Look) -> EnergonSplitFiles:
    text, rest = look.path, look.rest
    if not rest or rest.startswith(":"):
        message = f"{text!r} is not complete: the form is {_SCHEME}DIR:SPLIT"
        raise InvalidArgument(message)
    folder, _, split = rest.rpartition(":")
    for path, name in ((rest, None), (folder, split)):
        located = paths.absolute(os.path.expanduser(path))
        if path and paths.is_folder(located):
            if name == "":
                message = f"{text!r} is not complete: the form is {_SCHEME}DIR:SPLIT"
                raise InvalidArgument(message)
            return EnergonSplitFiles(text, located, name, look.allow)
    message = f"{text!r} names no folder that is there: {(folder or rest)!r}. The form is {_SCHEME}DIR:SPLIT"
    raise DataNotFound(message)


_WIDS = "wids:"

_KIND = "wids-shard-index-v1"

_PATTERN_MARKS = "*[{"
"""What makes a pattern of a name, which could match other files, also outside of the folder."""

_OUTSIDE_OF_WIDS = "Or open the tar files themselves, as a list of their paths"


class _WidsShard(msgspec.Struct, frozen=True):
    url: str
    nsamples: int


class _List(msgspec.Struct, frozen=True):
    """The document of a list; the checksums in it are not compared."""

    kind: str = msgspec.field(name="__kind__", default="")
    base: str | None = None
    shardlist: list[_WidsShard] = []


@dataclass(frozen=True, slots=True)
class WidsFiles:
    """The shards of a list of wids."""

    path: str
    """The absolute path of the list."""

    allow: tuple[str, ...] = ()
    """The folders and files, besides the folder of the list, that it may name."""

    def found(self) -> tuple[FoundFiles, ...]:
        """Return the shards in the order of the list.

        Raises:
            DataNotFound: the list or a shard is not there.
            UnsupportedFormat: it is not a list of wids, or a shard does not lie below its folder.
        """
        found, folder = self._list(), os.path.dirname(self.path)
        shards = []
        for shard in found.shardlist:
            url = f"{found.base.rstrip('/')}/{shard.url}" if found.base else shard.url
            refuse_unopened(url)
            trust.check_below(
                addresses.shown(url),
                [addresses.shown(folder)],
                by=repr(self.path),
                way_out=_OUTSIDE_OF_WIDS,
                allow=self.allow,
            )
            path = trust.named_path(url, folder)
            if any(mark in url for mark in _PATTERN_MARKS) and not os.path.isfile(path):
                self._refuse(f"it names {url!r}, and a list names files and no patterns of names")
            shards.append(path)
        return find_files(shards, suffixes=())

    def kept(self, source: Node) -> Node:
        """Return the samples of the shards, after a check of their numbers.

        Raises:
            IndexStale: a shard has another number of samples than the list says.
        """
        assert isinstance(source, SampleSource)
        for file, (shard, records) in enumerate(
            zip(self._list().shardlist, source.files.records.tolist(), strict=True)
        ):
            if records != shard.nsamples:
                message = (
                    f"{source.files.path(file)!r} has {records:,} samples, and {self.path!r} says "
                    f"{shard.nsamples:,}: the shard was changed or is damaged. Put the old file back, or "
                    f"make the list again"
                )
                raise IndexStale(message)
        return source

    def _list(self) -> _List:
        paths.status(self.path)
        try:
            found = msgspec.json.decode(paths.read_bytes(self.path), type=_List)
        except (ValueError, RecursionError) as error:
            self._refuse(str(error))
        if found.kind != _KIND or not found.shardlist:
            self._refuse(f"its __kind__ is {found.kind!r}, with {len(found.shardlist)} shards")
        return found

    def _refuse(self, why: str) -> NoReturn:
        message = (
            f"{self.path!r} is no list of shards of wids ({_KIND}): {why}. Open the tar files themselves"
        )
        raise UnsupportedFormat(message)


def wids_claim(look: Look) -> Claim:
    """Return the shards of a list of wids.

    Raises:
        InvalidArgument: the spec has no path, or the user gave another format.
        DataNotFound: the list or a shard is not there.
        UnsupportedFormat: it is not a list of wids, or a shard does not lie below its folder.
    """
    if not look.rest:
        message = f"{look.path!r} is not complete: the form is {_WIDS}PATH, as in 'wids:shards/index.json'"
        raise InvalidArgument(message)
    listed = WidsFiles(paths.absolute(os.path.expanduser(look.rest)), look.allow)
    form = format_of_spec(look, "tar")
    return Claim(format=form, found=listed.found(), detail=listed)
