"""Folders of files of tokens: the evidence that a folder is one, and which of its files are data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.formats.tokens.families import head_of
from seekable.formats.tokens.megatron import MAGIC
from seekable.formats.tokens.olmo import CSV_SUFFIX, is_mask
from seekable.formats.tokens.tntidx import MAGIC as OLD_MAGIC

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["TOKEN_SUFFIXES", "holds_tokens", "token_names"]

TOKEN_SUFFIXES = (".bin", ".ds", ".npy", ".safetensors")
"""The ends of the names of files of tokens, in lower case."""


def holds_tokens(folder: str, names: Collection[str]) -> bool:
    """Return True if a folder is a dataset of tokens without doubt.

    Args:
        folder: the path of the folder.
        names: the names of its files.
    """
    known = set(names)
    if any(name.endswith(".ds") and f"{name}.index" in known for name in known):
        return True
    if any(name.endswith(".npy") and f"{name[:-4]}{CSV_SUFFIX}" in known for name in known):
        return True
    pairs = (name for name in sorted(known) if name.endswith(".bin") and f"{name[:-4]}.idx" in known)
    first = next(pairs, None)
    return first is not None and head_of(os.path.join(folder, f"{first[:-4]}.idx")).startswith(
        (MAGIC, OLD_MAGIC)
    )


def token_names(folder: str, names: Sequence[str]) -> Sequence[str]:
    """Return which files of a folder are documents, and not arrays that belong to the tokens of others.

    Args:
        folder: the path of the folder.
        names: the names of its files that end in one of `TOKEN_SUFFIXES`, in natural order.
    """
    return [name for name in names if not is_mask(os.path.join(folder, name))]
