"""Folders of files of tokens: the evidence that a folder is one, and the files in it that are data.

Some folders have an index of their own, which lists the files of data in the order of their documents. They
are recognised by the name of their index and its content, because the same tools write other data too. In all
other folders the names of the files decide.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptTokens, DataNotFound, InvalidArgument, SeekableError
from seekable.formats.lines import forager
from seekable.formats.look import OtherTool
from seekable.formats.tokens.families import forager_samples, litdata, mds_index
from seekable.formats.tokens.families.indexed_shards import INDEX, index_path, read_index
from seekable.formats.tokens.families.mds import survey_mds
from seekable.formats.tokens.families.megatron import MAGIC
from seekable.formats.tokens.families.olmo import CSV_SUFFIX, is_mask
from seekable.formats.tokens.families.safetensors import survey_safetensors
from seekable.formats.tokens.families.tntidx import MAGIC as OLD_MAGIC
from seekable.formats.tokens.token_file import head_of
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from seekable.formats.look import Folder
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.surveyor import Survey

__all__ = [
    "TOKEN_LISTS",
    "TOKEN_SUFFIXES",
    "listed_tokens",
    "suffixes_of_tokens",
    "survey_listed",
    "token_names",
    "tool_of",
]

TOKEN_LISTS = frozenset({INDEX, forager.INDEX})
"""The names of which one is in each folder of tokens whose own index lists its files."""

TOKEN_SUFFIXES = (".bin", ".ds", ".npy", ".safetensors")
"""The ends of the names of files of tokens, in lower case."""

_ORDERS = re.compile(
    r".*(_indexmap_.*_idx|[-_](document|sample|shuffle|dataset|dataset_sample)_(index|indices))\.npy"
)
"""The names of the arrays that Megatron and GPT-NeoX keep, often beside tokens, for the order of samples."""

_PEEKED_BYTES = 1 << 16


def listed_tokens(folder: str, names: Collection[str]) -> tuple[str, ...] | None:
    """Return the files of tokens of a folder, relative to it; None if no index of tokens names them.

    Args:
        folder: the path of the folder.
        names: the names of the files and folders in it.

    Raises:
        UnsupportedFormat: the folder is of tokens, and damaged, compressed or encrypted.
        DataNotFound: the index names no file.
    """
    files = next((files for is_one, files in _TOOLS if is_one(folder, names)), None)
    if files is None:
        return None
    found = files(folder)
    if not found:
        message = (
            f"the index in the folder {folder!r} names no file: there is nothing in this dataset of tokens"
        )
        raise DataNotFound(message)
    return found


def tool_of(folder: Folder) -> OtherTool | None:
    """Return which dataset of tokens a folder is that is opened as a whole; None for another folder."""
    if _is_listed(folder):
        return OtherTool(
            "a dataset of tokens, of LitData, MDS or Forager", "open it alone, as sk.open('DIR')"
        )
    if _is_paired(folder):
        way_out = "open its tokens as sk.open('megatron:DIR')"
        return OtherTool("an indexed dataset of Megatron or fairseq", way_out)
    if ".ds" in folder.suffixes and folder.has(r".+\.ds\.index"):
        return OtherTool("tokens of datatrove", "open its tokens as sk.open('tokens:DIR')")
    return None


def _is_listed(folder: Folder) -> bool:
    """Return True for files of tokens that an index of LitData, MDS or Forager lists."""
    names = folder.files if forager.INDEX not in folder.inner else {*folder.files, forager.INDEX}
    if TOKEN_LISTS.isdisjoint(names):
        return False
    try:
        return listed_tokens(folder.path, names) is not None
    except SeekableError:
        return True


def _is_paired(folder: Folder) -> bool:
    """Return True for tokens beside their index, as Megatron and fairseq write them."""
    if not folder.suffixes.issuperset((".bin", ".idx")):
        return False
    indexes = (f"{name[:-4]}.idx" for name in sorted(folder.files) if name.endswith(".bin"))
    first = next((name for name in indexes if name in folder.files), "")
    return folder.head(first).startswith((MAGIC, OLD_MAGIC))


def survey_listed(file: TokenFile) -> Survey | None:
    """Return the documents of a file that is one of such a folder, or of rows; None for any other file.

    Raises:
        UnsupportedFormat: the file or its index is damaged, or of a form that is not read.
        InvalidArgument: the type of the tokens is not said, or the user says another one.
    """
    survey = _survey_of(file)
    if survey is None:
        return None
    for name, token in (("eos", file.options.eos), ("bos", file.options.bos)):
        if token is not None:
            message = (
                f"{name}={token} says where documents end, and {file.path!r} says that itself, or the index "
                f"beside it: leave {name}= out"
            )
            raise InvalidArgument(message)
    return survey(file)


def _survey_of(file: TokenFile) -> Callable[[TokenFile], Survey] | None:
    """Return what finds the documents of a file; None if it is of no tool of these."""
    name = file.path.lower()
    if name.endswith(".mds"):
        return survey_mds
    if name.endswith(".safetensors"):
        return survey_safetensors
    if not name.endswith(".bin"):
        return None
    index = index_path(file.path)
    if index is not None and litdata.is_litdata(_json(os.path.dirname(index))):
        return litdata.survey_litdata
    folder = forager_samples.samples_folder(file.path)
    return None if folder is None else partial(forager_samples.survey_samples, folder=folder)


def _is_litdata(folder: str, names: Collection[str]) -> bool:
    if INDEX not in names:
        return False
    index = _json(folder)
    if index is None:
        return _mentions(folder, b'"chunks"', b'"chunk_bytes"')
    return litdata.is_litdata(index) and litdata.has_tokens(index)


def _is_mds(folder: str, names: Collection[str]) -> bool:
    if INDEX not in names:
        return False
    index = _json(folder)
    if index is None:
        return _mentions(folder, b'"shards"', b'"mds"')
    return mds_index.is_mds(index) and mds_index.has_tokens(index)


def _is_forager(folder: str, names: Collection[str]) -> bool:
    return forager.INDEX in names and forager.is_of_tokens(folder)


_TOOLS: tuple[tuple[Callable[[str, Collection[str]], bool], Callable[[str], tuple[str, ...]]], ...] = (
    (_is_litdata, litdata.chunk_names),
    (_is_mds, mds_index.shard_names),
    (_is_forager, forager_samples.sample_files),
)
"""For each tool, a function that recognises its folders, and one that returns the files of data."""


def _json(folder: str) -> Any:
    """Return the JSON of the index of a folder; None if it is damaged, of another kind, or cannot be read."""
    if not _mentions(folder, b'"chunks"') and not _mentions(folder, b'"shards"'):
        return None  # it may be data, of any size
    try:
        return read_index(folder, _as_it_is)
    except (CorruptTokens, OSError):
        return None


def _as_it_is(path: str, index: Any) -> Any:  # noqa: ARG001 - the protocol of `read_index`
    return index


def _mentions(folder: str, *texts: bytes) -> bool:
    """Return True if the index of a folder has some texts at its beginning."""
    try:
        with paths.open_file(os.path.join(folder, INDEX)) as file:
            head = file.read(_PEEKED_BYTES) or b""
    except OSError:
        return False
    return all(text in head for text in texts)


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
