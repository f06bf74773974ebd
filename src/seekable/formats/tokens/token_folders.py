"""Folders of files of tokens: the evidence that a folder is one, and which of its files are data."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from seekable.formats.tokens.families import head_of
from seekable.formats.tokens.megatron import MAGIC
from seekable.formats.tokens.olmo import CSV_SUFFIX, is_mask
from seekable.formats.tokens.tntidx import MAGIC as OLD_MAGIC

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["TOKEN_SUFFIXES", "suffixes_of_tokens", "token_names"]

TOKEN_SUFFIXES = (".bin", ".ds", ".npy", ".safetensors")
"""The ends of the names of files of tokens, in lower case."""


_ORDERS = re.compile(
    r".*(_indexmap_.*_idx|[-_](document|sample|shuffle|dataset|dataset_sample)_(index|indices))\.npy"
)
"""The names of the arrays that Megatron and GPT-NeoX keep, often beside tokens, for the order of samples."""


def suffixes_of_tokens(folder: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the ends of the names of files with tokens, if a folder is a dataset of tokens without doubt.

    Args:
        folder: the path of the folder.
        names: the names of its files.
    """
    known = set(names)
    if any(name.endswith(".ds") and f"{name}.index" in known for name in known):
        return (".ds",)
    if any(name.endswith(".npy") and f"{name[:-4]}{CSV_SUFFIX}" in known for name in known):
        return (".npy",)
    pairs = (name for name in sorted(known) if name.endswith(".bin") and f"{name[:-4]}.idx" in known)
    first = next(pairs, None)
    if first is None:
        return ()
    head = head_of(os.path.join(folder, f"{first[:-4]}.idx"))
    return (".bin",) if head.startswith((MAGIC, OLD_MAGIC)) else ()


def token_names(folder: str, names: Sequence[str]) -> Sequence[str]:
    """Return which files of a folder are documents: not label masks, and no orders of samples.

    Args:
        folder: the path of the folder.
        names: the names of its files that end in one of `TOKEN_SUFFIXES`, in natural order.
    """
    return [name for name in names if not (_ORDERS.fullmatch(name) or is_mask(os.path.join(folder, name)))]
