"""The data files that a source names, on this machine or in stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import xxhash

from seekable.storage import listing
from seekable.storage.far import far
from seekable.storage.listing import FoundFiles, has_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.storage.listing import Arrange, Asked, Inspect

__all__ = ["find_files", "sampled_files"]

_OF_SPEC = "spec"

_SAMPLED = 64
"""The number of files of a sample."""

_SAMPLE_KEY = 0x5EEC_AB1E
"""The key of the permutation of names; another one would be another sample."""


def find_files(
    asked: Asked,
    *,
    suffixes: Iterable[str],
    inspect: Inspect | None = None,
    arrange: Arrange | None = None,
    kind: str = _OF_SPEC,
) -> tuple[FoundFiles, ...]:
    """Return the data files of a source; see `seekable.storage.listing.find_files`.

    Args:
        asked: the path, folder, glob, address or list.
        suffixes: how names of data files in a folder end, in lower case, dot included.
        inspect: returns the files that are never data.
        arrange: returns the data files of a folder.
        kind: a text that differs where ``inspect`` and ``arrange`` choose otherwise: the name of a format,
            or ``PLAIN`` without one.

    Raises:
        DataNotFound: there is no such file or folder, or no data file in it.
        AccessDenied: it may not be listed.
        Unreachable: a store does not answer.
        UnsupportedFormat: a folder or a glob of a web server, which lists nothing.
        WrongType: the source is neither a path nor a list of paths.
    """
    if has_addresses(asked):
        return far().find(asked, suffixes=suffixes, inspect=inspect, arrange=arrange, kind=kind)
    return listing.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange)


def sampled_files(found: Iterable[FoundFiles]) -> tuple[FoundFiles, ...]:
    """Return the first 64 files of a keyed permutation of the names, in the order in which they are found.

    The permutation orders names by a keyed digest. So files that are added later change the sample only where
    they are in it themselves, and a copy of the data elsewhere has the same sample.

    Args:
        found: the files; 64 of them or fewer are all in the sample.

    Example:
        >>> from seekable.storage.listing import FoundFiles
        >>> names = tuple(f"{number:03}.jsonl" for number in range(1000))
        >>> (sample,) = sampled_files([FoundFiles("/data", names)])
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
