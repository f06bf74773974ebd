"""Folders with tar files beside other files of data: which of both are the dataset."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.storage.compression import uncompressed_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_tar", "of_one_kind"]

_DESCRIPTIONS = frozenset({"index.json", "sizes.json", "meta.json"})
"""The names of files that describe shards: the index of wids, and those that other tools keep."""


def is_tar(name: str) -> bool:
    """Return True if a file is an archive by its name, compressed or not."""
    return uncompressed_name(name.lower()).endswith(".tar")


def of_one_kind(names: Sequence[str], format_name: str | None = None) -> Sequence[str]:
    """Return the tar files of a folder, or its other files of data.

    Files beside tar files are facts about the shards if each has the name of a numbered shard at its
    beginning, or describes all of them; the tar files are the dataset then. Else they are a list of what is
    in the tar files, a manifest say, and are the dataset themselves.

    Args:
        names: the files of known suffixes.
        format_name: the format that the user named.

    Example:
        >>> of_one_kind(["0.tar", "0_stats.json", "1.tar"]), of_one_kind(["audio_0.tar", "cuts.jsonl"])
        (['0.tar', '1.tar'], ['cuts.jsonl'])
    """
    tars = [name for name in names if is_tar(name)]
    if not tars or len(tars) == len(names):
        return names
    others = [name for name in names if not is_tar(name)]
    if format_name is not None:
        return tars if format_name.partition("-")[0] == "tar" else others
    stems = (os.path.splitext(uncompressed_name(name))[0] for name in tars)
    numbered = tuple(stem for stem in stems if stem[-1:].isdigit())
    beside = all(name.startswith(numbered) or os.path.basename(name) in _DESCRIPTIONS for name in others)
    return tars if beside else others
