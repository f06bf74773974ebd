"""Files of tokens: by spec (``megatron:PREFIX``, ``tokens:PATH``), folders of them, and token stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim
from seekable.formats.finding import find_files
from seekable.formats.refusals import without_their_files
from seekable.formats.table import SUFFIXES
from seekable.formats.tokens.families.olmo import CSV_SUFFIX
from seekable.formats.tokens.families.store import unfinished
from seekable.formats.tokens.options import TOKENS
from seekable.formats.tokens.token_folders import (
    TOKEN_LISTS,
    TOKEN_SUFFIXES,
    listed_tokens,
    suffixes_of_tokens,
    token_names,
)
from seekable.formats.tokens.tokenizing.store_document import DOCUMENT, FACTS, read_document
from seekable.storage import paths
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Collection

    from seekable.formats.look import Look

__all__ = ["MEGATRON", "tokens_claim"]

MEGATRON = "megatron"
"""The word of specs of pairs of a file and its index."""

_SPECS = frozenset({MEGATRON, TOKENS})

_ENDS = (".bin", ".ds", ".npy")
"""The ends of the names of files by which a folder may be a dataset of tokens."""

_DATA, _INDEX = ".bin", ".idx"
"""The ends of the names of both files of Megatron."""


def tokens_claim(look: Look) -> Claim | None:
    """Return the files of a spec, of a token store, or of a folder that is a dataset of tokens; else None.

    Raises:
        InvalidArgument: a spec has no path, or the user gave another format.
        DataNotFound: there is no such file, or one lacks its index.
        UnsupportedFormat: the folder is of tokens, and damaged, compressed or encrypted.
        CorruptState: the document of a store is damaged.
    """
    if look.spec in _SPECS:
        return _of_spec(look)
    if look.is_folder and (look.name is None or look.name.partition("-")[0] == TOKENS):
        return _in_folder(look)
    return None


def _in_folder(look: Look) -> Claim | None:
    folder, names = look.path, look.names
    if look.name is None and _is_store(names):
        return Claim(format=format_of_spec(look, TOKENS), found=_of_store(folder))
    if (
        not TOKEN_LISTS.isdisjoint(names)
        and (listed := listed_tokens(paths.absolute(folder), names)) is not None
    ):
        return Claim(format=format_of_spec(look, TOKENS), found=(FoundFiles(paths.absolute(folder), listed),))
    if look.name is not None:
        return Claim(format=format_of_spec(look, TOKENS), found=_found(folder))
    if not any(name.lower().endswith(_ENDS) for name in names):
        return None
    return _of_folder(look)


def _of_spec(look: Look) -> Claim:
    """Return the files of ``megatron:PREFIX`` or ``tokens:PATH``."""
    is_paired, path = look.spec == MEGATRON, look.rest
    if not path:
        form = (
            "megatron:PREFIX, of PREFIX.bin and PREFIX.idx"
            if is_paired
            else "tokens:FILE, a glob or a folder"
        )
        message = f"{look.path!r} is not complete: the form is {form}"
        raise InvalidArgument(message)
    form_of_all = format_of_spec(look, TOKENS)
    if not is_paired:
        return Claim(format=form_of_all, found=_found(path))
    return Claim(
        format=form_of_all, found=_paired(path[: -len(_DATA)] if path.endswith((_DATA, _INDEX)) else path)
    )


def _of_folder(look: Look) -> Claim | None:
    """Return the files of a folder that is a dataset of tokens and nothing else, else None."""
    folder = look.path
    files = [name for name in look.names if not name.startswith((".", "_"))]
    beside = [name for name in files if name.lower().endswith(SUFFIXES) and not name.endswith(CSV_SUFFIX)]
    suffixes = suffixes_of_tokens(folder, files)
    is_said = getattr(look.value, "has_options", False)
    if beside or not (is_said or suffixes):
        return None
    found = _paired(folder) if _DATA in suffixes else _found(folder, suffixes or TOKEN_SUFFIXES)
    return Claim(format=format_of_spec(look, TOKENS), found=found)


def _found(asked: str, suffixes: tuple[str, ...] = TOKEN_SUFFIXES) -> tuple[FoundFiles, ...]:
    """Return the files with tokens of a path, without those beside them.

    Args:
        asked: the path of a file or a folder, or a glob.
        suffixes: the ends of the names of files with tokens, in a folder.

    Raises:
        DataNotFound: there is none.
    """
    path = os.path.expanduser(asked)
    if (
        paths.is_folder(path)
        and (listed := listed_tokens(paths.absolute(path), paths.list_folder(path))) is not None
    ):
        return (FoundFiles(paths.absolute(path), listed),)
    return find_files(path, suffixes=suffixes, inspect=without_their_files, arrange=token_names)


def _paired(asked: str) -> tuple[FoundFiles, ...]:
    """Return files that each must have an index of Megatron or fairseq beside it.

    Args:
        asked: what their names begin with, a folder, or a glob.

    Raises:
        DataNotFound: there is none, or one lacks its index.
    """
    path = os.path.expanduser(asked)
    if not paths.is_folder(path) or paths.is_file(path + _DATA):
        path += _DATA
    found = find_files(path, suffixes=(_DATA,), inspect=without_their_files)
    for run in found:
        _check_indexes(run)
    return found


def _check_indexes(run: FoundFiles) -> None:
    for name in run.names:
        prefix = os.path.join(run.root, name).removesuffix(_DATA)
        if not paths.is_file(prefix + _INDEX):
            message = (
                f"there is no {prefix + _INDEX!r}, which says where the documents of {prefix + _DATA!r} "
                f"start: copy it there, or open 'tokens:{prefix}{_DATA}' with "
                f"sk.formats.Tokens(dtype=, eos=)"
            )
            raise DataNotFound(message)


def _is_store(names: Collection[str]) -> bool:
    return DOCUMENT in names or any(name.endswith(f".{FACTS}") for name in names)


def _of_store(path: str) -> tuple[FoundFiles, ...]:
    """Return the files of a folder that ``write_tokens`` or ``sk.tokenize`` wrote, as its document has them.

    Raises:
        DataNotFound: the store is not finished, or a file of it is missing.
        CorruptState: ``tokens.json`` is damaged.
    """
    folder = paths.absolute(path)
    document = read_document(folder)
    if document is None:
        raise unfinished(folder)
    there = set(paths.list_folder(folder))
    for part in document.parts:
        for suffix in (*part.digests, FACTS):
            if f"{part.name}.{suffix}" not in there:
                message = (
                    f"the token store {folder!r} has no {part.name + '.' + suffix!r}, which its "
                    f"{DOCUMENT!r} lists: copy the store again, or repeat the call that wrote it, which "
                    f"writes this part again"
                )
                raise DataNotFound(message)
    return (FoundFiles(folder, tuple(f"{part.name}.bin" for part in document.parts)),)
