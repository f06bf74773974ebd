"""The kinds of sources of ``sk.open``, by their text and names alone: specs, Shars, folders of tokens."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.nodes.display import listed
from seekable.storage.far import far

if TYPE_CHECKING:
    from seekable.dataset import specs
    from seekable.dataset.spec import Spec
    from seekable.formats import folders, unopened
    from seekable.formats.source_options import SourceOptions
    from seekable.formats.tokens import token_files
    from seekable.formats.tokens.tokenizing import store_document
    from seekable.storage import addresses, paths
    from seekable.storage.listing import Asked
else:
    specs = lazy("seekable.dataset.specs")
    token_files = lazy("seekable.formats.tokens.token_files")
    folders = lazy("seekable.formats.folders")
    unopened = lazy("seekable.formats.unopened")
    addresses = lazy("seekable.storage.addresses")
    paths = lazy("seekable.storage.paths")
    store_document = lazy("seekable.formats.tokens.tokenizing.store_document")

__all__ = ["has_spec", "may_be_shar", "shown_source", "spec_of_tokens"]

_SPEC = re.compile(r"[A-Za-z][A-Za-z0-9+., -]+:")
"""The beginning of specs (`seekable.dataset.specs`) and addresses; one letter is a drive of Windows."""

_TOKENS = (".bin", ".ds", ".npy")
"""The ends of the names of files by which a folder may be a dataset of tokens."""

_PACK = ".idxpack"
"""The end of the names of packs of Lhotse's indexes, which stand for the files that they name."""


def may_be_shar(source: object) -> bool:
    """Return True for a dict of fields, a spec ``shar:DIR``, and a folder with files of cuts."""
    if not isinstance(source, str | os.PathLike):
        return isinstance(source, Mapping)
    path = os.fsdecode(source)
    if path.startswith("shar:") or not _is_folder(path):
        return path.startswith("shar:")
    return any(name.startswith("cuts.") for name in _names_in(path))


def has_spec(source: object) -> bool:
    """Return True if a source may be a spec.

    Raises:
        InvalidArgument: the source is a list, and an item is a spec.
        UnsupportedFormat: it is an address of a kind that is not read.
    """
    if isinstance(source, list | tuple) and any(map(has_spec, source)):
        specs.refuse_specs_among(source)
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fsdecode(source)
    if _is_stored(text):
        unopened.refuse_unopened(text)
        return text.endswith(_PACK)
    return text.endswith(_PACK) or _SPEC.match(text) is not None


def spec_of_tokens(source: object, format_name: str | None, options: SourceOptions) -> Spec | None:
    """Return the spec of a folder that is a dataset of tokens; None of all else.

    Raises:
        UnsupportedFormat: the index of the folder lists files of tokens, and is damaged, or they are
            compressed or encrypted.
    """
    is_of_tokens = format_name is None or format_name.partition("-")[0] == "tokens"
    folder = os.fsdecode(source) if isinstance(source, str | os.PathLike) else ""
    if not is_of_tokens or not folder or not _is_folder(folder):
        return None
    names = _names_in(folder)
    facts = f".{store_document.FACTS}"
    is_store = store_document.DOCUMENT in names or any(name.endswith(facts) for name in names)
    if format_name is None and is_store:
        return token_files.StoreSpec(folder)
    if not folders.TOKEN_LISTS.isdisjoint(names) and (spec := token_files.spec_of_listed(folder, names)):
        return spec
    if format_name is not None:
        return token_files.TokensSpec(folder, folder)
    if any(name.lower().endswith(_TOKENS) for name in names):
        return token_files.spec_of_folder(folder, names, is_named=options.has_token_options)
    return None


def _is_stored(path: str) -> bool:
    """Return True for an address of a store; those of the Hub are explained by its spec."""
    return "://" in path and not path.startswith("hf:") and addresses.is_address(path)


def _is_folder(path: str) -> bool:
    if not _is_stored(path):
        return os.path.isdir(path)
    unopened.refuse_unopened(path)
    return not far().is_plain(path) and paths.is_folder(path)


def _names_in(folder: str) -> list[str]:
    """Return the names of files and folders in a folder; none of a local one that cannot be listed."""
    if "://" in folder:
        return paths.list_folder(folder)
    with suppress(OSError):
        return os.listdir(folder)
    return []


def shown_source(source: Asked | Mapping[str, Asked]) -> str:
    """Return the source as the user would write it in code."""
    if isinstance(source, Mapping):
        return f"{{{', '.join(f'{name!r}: {shown_source(asked)}' for name, asked in source.items())}}}"
    if isinstance(source, str | os.PathLike):
        return repr(_shown_item(os.fspath(source)))
    paths = [_shown_item(os.fspath(path)) for path in source]
    return f"[{listed([repr(path) for path in paths])}]"


def _shown_item(text: str) -> str:
    return addresses.shown_item(text) if "://" in text else text
