"""The description of a dataset of Energon, ``.nv-meta/``: its shards, their counts, splits and exclusions.

``.info.json`` (older: ``.info.yaml``) has the number of samples of each shard, in the order of the dataset.
``split.yaml`` has for each split a list of shards, which may have braces, and under ``exclude`` what is left
out of all splits: shards, and samples as ``shard/key``. Neither is code. ``dataset.yaml`` names Python code
that makes samples of fields: it is never read.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from seekable._optional import optional
from seekable.errors import DataNotFound, MissingDependency, UnsupportedFormat
from seekable.storage import paths
from seekable.storage.addresses import shown
from seekable.storage.file_names import expanded
from seekable.storage.trust import check_below

if TYPE_CHECKING:
    from collections.abc import Mapping

yaml: Any = optional("yaml", extra="energon")

__all__ = ["META", "NOT_READ", "EnergonDataset", "EnergonSplit", "read_energon", "splits_in_words"]

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
        DataNotFound: the folder is no dataset of Energon.
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
