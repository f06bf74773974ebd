"""The keys and values of folders ``year=2024/lang=de/``, as Hive and pyarrow name folders.

The folders between the opened folder and a file count, and those at the end of the opened folder's own path.
So a file has the same keys, whether it was opened by its path, by a glob or with the folder around it. Names
and values are URL-decoded; ``__HIVE_DEFAULT_PARTITION__`` is None. The type of a key is int64 if all of its
values are integers, else string.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.index.fileset import FileSet

__all__ = ["KeyType", "end_of", "key_types", "keys_of", "roots_and_names"]

_NULL = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"-?[0-9]+")

_BOUNDS = -(1 << 63), (1 << 63) - 1

KeyType = Literal["int64", "string"]
"""The type of a column, by Arrow's name."""


def keys_of(root: str, name: str) -> dict[str, str | None]:
    """Return the keys and values in the path of a file; None for a null.

    Args:
        root: the folder that was opened.
        name: the path of the file below it.

    Raises:
        InvalidArgument: a key comes twice.

    Example:
        >>> keys_of("/data/year=2024", "lang=de/part=__HIVE_DEFAULT_PARTITION__/a.parquet")
        {'year': '2024', 'lang': 'de', 'part': None}
    """
    found: dict[str, str | None] = {}
    for folder in [*end_of(root), *name.split("/")[:-1]]:
        key, equals, value = folder.partition("=")
        if not (key and equals):
            continue
        key = unquote(key)
        if key in found:
            message = f"{os.path.join(root, name)!r} lies in two folders of {key!r}: rename one of them"
            raise InvalidArgument(message)
        found[key] = None if value == _NULL else unquote(value)
    return found


def end_of(root: str) -> list[str]:
    """Return the folders at the end of a path that are of the form key=value."""
    folders = root.split("/")
    first = len(folders)
    while first and "=" in folders[first - 1][1:]:
        first -= 1
    return folders[first:]


def key_types(files: FileSet) -> dict[str, KeyType]:
    """Return the keys in the paths of some files, each with the type of its values.

    Raises:
        InvalidArgument: a key comes twice in a path.
    """
    texts: dict[str, set[str]] = {}
    folders: set[tuple[str, str]] = set()
    for root, name in roots_and_names(files):
        folder = root, os.path.dirname(name)
        if folder not in folders:
            folders.add(folder)
            for key, text in keys_of(root, name).items():
                texts.setdefault(key, set()).update([] if text is None else [text])
    return {key: _type(some) for key, some in texts.items()}


def _type(texts: set[str]) -> KeyType:
    return "int64" if texts and all(map(_is_int64, texts)) else "string"


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and _BOUNDS[0] <= int(text) <= _BOUNDS[1]


def roots_and_names(files: FileSet) -> Iterable[tuple[str, str]]:
    """Return the root and the name of each file."""
    roots = [root for root, _, count in files.runs for _ in range(count)]
    return zip(roots, files.names(), strict=True)
