"""The shards of a split of a dataset of Energon, ``energon:DIR:SPLIT``, without the excluded samples."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._log import LOG
from seekable.errors import DataNotFound, IndexStale, InvalidArgument, KeyNotFound
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim
from seekable.formats.tar.energon import META, NOT_READ, read_energon, splits_in_words
from seekable.formats.tar.sample_source import SampleSource
from seekable.index.digest import key_hash
from seekable.nodes.select import Select
from seekable.storage import paths
from seekable.storage.listing import FoundFiles
from seekable.storage.trust import named_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.look import Look
    from seekable.formats.tar.energon import EnergonSplit
    from seekable.nodes.node import Node

__all__ = ["EnergonSplitFiles", "energon_claim"]

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
