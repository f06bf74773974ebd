"""The form that shards of LitData and of MDS share: an index.json beside them, and a table of offsets.

A shard begins with a number of items N, and with N + 1 offsets from the start of the file: where each item
starts, and where the last one ends. All are little-endian and of 32 bits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import SideFile
from seekable.storage import paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import TokenFile

__all__ = [
    "INDEX",
    "check_size",
    "damaged_index",
    "index_beside",
    "index_path",
    "item_offsets",
    "read_index",
]

T = TypeVar("T")
Parse = Callable[[str, Any], T]
"""Checks the JSON of an index, whose path is the first argument, and returns what it says."""

INDEX = "index.json"
"""The name of the file that lists the shards of a folder."""

_WORD = 4

_CUT = "the file is cut or damaged: copy it again, or write the dataset again"


def index_beside(file: TokenFile, parse: Parse[T]) -> tuple[str, T, SideFile]:
    """Return the path of the index beside a shard, what it says, and what the schema keeps of it.

    Args:
        file: the shard.
        parse: checks the JSON of an index and returns what it says; called once for all shards beside it.

    Raises:
        DataNotFound: there is no index.
        AccessDenied: this user may not read it.
        CorruptTokens: it is no JSON.
    """
    path = index_path(file.path) or os.path.join(os.path.dirname(file.path), INDEX)
    status = paths.status(path)
    found: T = _parsed(parse, path, status.size, status.mtime_ns)
    name = os.path.relpath(path, os.path.dirname(file.path))
    return path, found, SideFile(name, status.size, status.mtime_ns)


def index_path(shard: str) -> str | None:
    """Return the path of the index beside a shard, or in the folder above; None if there is none."""
    folder = os.path.dirname(shard)
    places = (os.path.join(each, INDEX) for each in (folder, os.path.dirname(folder)))
    return next((path for path in places if paths.is_file(path)), None)


def read_index(folder: str, parse: Parse[T]) -> T:
    """Return what the index in a folder says; arguments and errors are those of `index_beside`."""
    path = os.path.join(folder, INDEX)
    status = paths.status(path)
    found: T = _parsed(parse, path, status.size, status.mtime_ns)
    return found


@lru_cache(maxsize=4)
def _parsed(parse: Parse[Any], path: str, size: int, mtime_ns: int) -> Any:  # noqa: ARG001 - of the version
    """Return what an index says; a file that has changed is read anew."""
    text = paths.read_bytes(path)
    try:
        index = json.loads(text)
    except json.JSONDecodeError as error:
        at = len(error.doc[: error.pos].encode())
        raise damaged_index(path, "JSON", error.msg.lower(), at=at) from None
    except RecursionError:
        raise damaged_index(path, "JSON of some levels", "thousands of levels") from None
    except UnicodeDecodeError as error:
        raise damaged_index(path, "JSON", "bytes that are no UTF-8", at=error.start) from None
    except ValueError as error:
        raise damaged_index(path, "JSON", str(error)) from None
    return parse(path, index)


def damaged_index(path: str, expected: str, found: str, *, at: int = 0) -> CorruptTokens:
    """Return the error for an index that is not as its writer makes it."""
    way_out = "the index is cut or damaged: copy it again, or write the dataset again"
    return damage(path, at, expected=expected, found=found, way_out=way_out)


def check_size(file: TokenFile, size: int, *, index: str) -> None:
    """Check that a shard has as many bytes as the index says.

    Raises:
        CorruptTokens: it has more or fewer.
    """
    if size != file.size:
        raise damage(
            file.path,
            min(size, file.size),
            expected=f"{size} bytes, as {index!r} says",
            found=f"{file.size}",
            way_out="the file is cut, or another one: copy the folder again",
        )


def item_offsets(file: TokenFile, *, items: int, index: str) -> NDArray[np.uint64]:
    """Return where each item of a shard starts, and where the last one ends: uint64 (items + 1,).

    Args:
        file: the shard.
        items: the number of its items, as the index has it.
        index: the path of the index, for messages.

    Raises:
        CorruptTokens: the shard is torn or damaged, or is another one than the index says.
    """
    head = file.source.read(0, _WORD)
    if len(head) < _WORD:
        raise _cut(file, len(head), "the number of its items, 4 bytes")
    count = int.from_bytes(head, "little")
    if count != items:
        raise damage(
            file.path,
            0,
            expected=f"{items} items, as {index!r} says",
            found=f"{count}",
            way_out="the file is another one, or damaged: copy the folder again",
        )
    data = file.source.read(_WORD, _WORD * (count + 1))
    if len(data) < _WORD * (count + 1):
        raise _cut(file, _WORD + len(data), f"{count + 1} offsets of 4 bytes")
    offsets = np.frombuffer(data, "<u4").astype(np.uint64)
    back = np.flatnonzero(offsets[1:] < offsets[:-1])
    if back.size or int(offsets[0]) < _WORD * (count + 2):
        row = int(back[0]) + 1 if back.size else 0
        least = int(offsets[row - 1]) if row else _WORD * (count + 2)
        raise damage(
            file.path,
            _WORD * (row + 1),
            expected=f"an offset of {least} or more",
            found=f"{offsets[row]}",
            way_out=_CUT,
            row=max(row - 1, 0),
        )
    if int(offsets[-1]) != file.size:
        raise damage(
            file.path,
            min(int(offsets[-1]), file.size),
            expected=f"{offsets[-1]} bytes, as its last offset says",
            found=f"{file.size}",
            way_out=_CUT,
        )
    return offsets


def _cut(file: TokenFile, at: int, expected: str) -> CorruptTokens:
    return damage(file.path, at, expected=expected, found="the end of the file", way_out=_CUT)
