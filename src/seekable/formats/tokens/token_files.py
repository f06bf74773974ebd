"""Files of tokens: by spec (``megatron:PREFIX``, ``tokens:PATH``), folders of them, and token stores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.dataset.spec import Spec, checked_format
from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.finding import find_files
from seekable.formats.registry import SUFFIXES, without_their_files
from seekable.formats.tokens.families.olmo import CSV_SUFFIX
from seekable.formats.tokens.families.store import unfinished
from seekable.formats.tokens.options import TOKENS
from seekable.formats.tokens.token_folders import (
    TOKEN_SUFFIXES,
    listed_tokens,
    suffixes_of_tokens,
    token_names,
)
from seekable.formats.tokens.tokenizing.store_document import DOCUMENT, FACTS, read_document
from seekable.storage import paths
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from seekable.formats.registry import Format

__all__ = [
    "MEGATRON_SCHEME",
    "TOKENS_SCHEME",
    "StoreSpec",
    "TokensSpec",
    "spec_of_folder",
    "spec_of_listed",
    "tokens_spec",
]

MEGATRON_SCHEME, TOKENS_SCHEME = "megatron:", "tokens:"
"""The beginnings of the specs."""

_DATA, _INDEX = ".bin", ".idx"
"""The ends of the names of both files of Megatron."""


@dataclass(frozen=True, slots=True)
class TokensSpec(Spec):
    """Files of tokens: those of a path, a folder or a glob; or of Megatron, by what names begin with."""

    text: str
    """The text of the spec, as the user wrote it."""

    path: str
    """The path of a file or a folder, or a glob; of Megatron without the suffix."""

    paired: bool = False
    """True if each file must have an index of Megatron or fairseq beside it."""

    suffixes: tuple[str, ...] = TOKEN_SUFFIXES
    """The ends of the names of files with tokens, in a folder."""

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the files and their format; see `found`."""
        form = checked_format(self, TOKENS, format_name)
        return self.found(), form

    def found(self) -> tuple[FoundFiles, ...]:
        """Return the files with tokens, without those beside them.

        Raises:
            DataNotFound: there is none, or one lacks its index.
        """
        path = os.path.expanduser(self.path)
        if not self.paired and (listed := _listed(path)) is not None:
            return (FoundFiles(paths.absolute(path), listed),)
        if not self.paired:
            return find_files(path, suffixes=self.suffixes, inspect=without_their_files, arrange=token_names)
        if not paths.is_folder(path) or paths.is_file(path + _DATA):
            path += _DATA
        found = find_files(path, suffixes=(_DATA,), inspect=without_their_files)
        for run in found:
            self._check_indexes(run)
        return found

    def _check_indexes(self, run: FoundFiles) -> None:
        for name in run.names:
            prefix = os.path.join(run.root, name).removesuffix(_DATA)
            if not paths.is_file(prefix + _INDEX):
                message = (
                    f"there is no {prefix + _INDEX!r}, which says where the documents of {prefix + _DATA!r} "
                    f"start: copy it there, or open 'tokens:{prefix}{_DATA}' with "
                    f"sk.formats.Tokens(dtype=, eos=)"
                )
                raise DataNotFound(message)


@dataclass(frozen=True, slots=True)
class StoreSpec(Spec):
    """A folder that ``write_tokens`` or ``sk.tokenize`` wrote."""

    text: str
    """The path of the folder, as the user wrote it."""

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the files of tokens in the order of ``tokens.json``, and their format.

        Raises:
            DataNotFound: the store is not finished, or a file of it is missing.
            CorruptState: ``tokens.json`` is damaged.
        """
        form = checked_format(self, TOKENS, format_name)
        folder = paths.absolute(self.text)
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
        return (FoundFiles(folder, tuple(f"{part.name}.bin" for part in document.parts)),), form


def _listed(path: str) -> tuple[str, ...] | None:
    """Return the files that the own index of a folder of tokens lists; None for another folder, or a file."""
    return listed_tokens(paths.absolute(path), paths.list_folder(path)) if paths.is_folder(path) else None


def tokens_spec(text: str) -> TokensSpec:
    """Return a spec of files of tokens.

    Raises:
        InvalidArgument: it has no path.

    Example:
        >>> tokens_spec("megatron:data/text_document.bin").path
        'data/text_document'
    """
    paired = text.startswith(MEGATRON_SCHEME)
    path = text.partition(":")[2]
    if not path:
        form = (
            "megatron:PREFIX, of PREFIX.bin and PREFIX.idx" if paired else "tokens:FILE, a glob or a folder"
        )
        message = f"{text!r} is not complete: the form is {form}"
        raise InvalidArgument(message)
    if paired and path.endswith((_DATA, _INDEX)):
        path = path[: -len(_DATA)]
    return TokensSpec(text, path, paired)


def spec_of_listed(folder: str, names: Collection[str]) -> TokensSpec | None:
    """Return the spec of a folder of tokens whose own index lists its files, else None.

    Args:
        folder: the path of the folder.
        names: the names of the files and folders in it.

    Raises:
        UnsupportedFormat: the folder is of tokens, and damaged, compressed or encrypted.
        DataNotFound: its index lists no file.
    """
    listed = listed_tokens(paths.absolute(folder), names)
    return None if listed is None else TokensSpec(folder, folder)


def spec_of_folder(folder: str, names: Iterable[str], *, is_named: bool) -> TokensSpec | None:
    """Return the spec of a folder that is a dataset of tokens and nothing else, else None.

    Args:
        folder: the path of the folder.
        names: the names in it.
        is_named: True if the user gave an option that only tokens have.
    """
    files = [name for name in names if not name.startswith((".", "_"))]
    beside = [name for name in files if name.lower().endswith(SUFFIXES) and not name.endswith(CSV_SUFFIX)]
    suffixes = suffixes_of_tokens(folder, files)
    if beside or not (is_named or suffixes):
        return None
    return TokensSpec(folder, folder, _DATA in suffixes, suffixes or TOKEN_SUFFIXES)
