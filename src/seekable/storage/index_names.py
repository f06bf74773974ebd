"""The names of indexes: of our folder, and of the files that other tools keep beside data files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["INDEX_FOLDER", "INDEX_SUFFIX", "without_indexes"]

INDEX_FOLDER = ".seekable"
"""The folder of our index, in the folder of the data: of a published one, in the store too."""

INDEX_SUFFIX = ".idx"
"""The end of the names of Lhotse's and Energon's indexes, behind the whole name of a file: ``a.tar.idx``."""

_PICKLED = ".index"
"""The end of the names that wids gives to pickles, which are never read."""

_ARCHIVE = ".tar"
_SHARDS = "index.json"
"""The name that wids gives to its list of shards."""


def without_indexes(names: set[str]) -> set[str]:
    """Return names of files without those of the indexes beside them.

    Example:
        >>> sorted(without_indexes({"a.jsonl", "a.jsonl.idx", "b.idx", "c.0.tar", "c.0.tar.idx", "c.idx"}))
        ['a.jsonl', 'b.idx', 'c.0.tar']
        >>> sorted(without_indexes({"s/a.tar", "s/a.tar.index", "s/index.json", "index.json"}))
        ['index.json', 's/a.tar']
    """
    return names.difference([name + INDEX_SUFFIX for name in names], _beside_archives(names))


def _beside_archives(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of lists of shards, of pickles of wids, and of DALI's indexes, cut at a dot."""
    for name in names:
        if name.lower().endswith(_ARCHIVE):
            folder, base = os.path.split(name)
            yield os.path.join(folder, _SHARDS)
            yield name + _PICKLED
            yield name[: -len(_ARCHIVE)] + INDEX_SUFFIX
            yield os.path.join(folder, base.partition(".")[0]) + INDEX_SUFFIX
