"""The form that LitData and MDS give their shards, and the chunks of tokens that LitData writes.

An index.json lies beside the shards. A shard begins with a number of items N, and with N + 1 offsets from the
start of the file: where each item starts, and where the last one ends. All are little-endian and of 32 bits.

``TokensLoader`` of LitData makes ``chunk-0-0.bin``. The index has the type of the tokens and the chunks. The
items of a chunk are the documents that were given to ``litdata.optimize``; their bytes are the tokens.
``TokensLoader`` itself leaves the offsets aside: a sample there is ``block_size`` tokens from the chunk's
first token on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import xxhash

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import SideFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.finder import Survey

__all__ = [
    "INDEX",
    "check_size",
    "chunk_names",
    "damaged_index",
    "has_tokens",
    "index_beside",
    "index_path",
    "is_litdata",
    "item_offsets",
    "read_index",
    "survey_litdata",
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


_NUMPY = {0: "|i1", 1: "<i2", 2: "<i4", 3: "<i8", 4: "|u1", 5: "<u2", 6: "<u4", 7: "<u8"}
"""The types of ``no_header_numpy``, by their codes."""

_TORCH = {11: "|u1", 12: "|i1", 13: "<i2", 14: "<i2", 15: "<i4", 16: "<i4", 17: "<i8", 18: "<i8", 20: "<u2"}
"""The types of ``no_header_tensor``; a type with two names has two codes, of which the second is written."""

_MOST_DIGITS = 3

_CODES = {"no_header_numpy": _NUMPY, "no_header_tensor": _TORCH}


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The entry of one chunk in the index; digests hold its repr, so all names in it stay."""

    name: str
    items: int
    size: int
    """Its number of bytes."""
    tokens: int | None
    """Its number of tokens; None where its first item has none, so that LitData counted nothing."""


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The index of a folder, checked."""

    dtype: str
    chunks: dict[str, _Chunk]
    """The chunks by name, in the order of their items."""


def is_litdata(index: Any) -> bool:
    """Return True if the JSON of an index is of LitData."""
    return isinstance(index, dict) and "chunks" in index and isinstance(index.get("config"), dict)


def has_tokens(index: Any) -> bool:
    """Return True if an index of LitData has items for TokensLoader."""
    config = index["config"]
    forms = config.get("data_format")
    form = forms[0] if isinstance(forms, list) and forms else None
    return (
        isinstance(form, str)
        and form.partition(":")[0] in _CODES
        and config.get("item_loader", "TokensLoader") == "TokensLoader"
    )


def chunk_names(folder: str) -> tuple[str, ...]:
    """Return the names of chunks in a folder, in the order of their items.

    Raises:
        CorruptTokens: the index is damaged.
        UnsupportedFormat: the chunks are not of tokens, or compressed or encrypted.
    """
    return tuple(read_index(folder, _checked).chunks)


def survey_litdata(file: TokenFile) -> Survey:
    """Return the items of a chunk.

    Raises:
        CorruptTokens: the chunk or the index is torn or damaged, or they do not belong together.
        UnsupportedFormat: the chunks are not of tokens, or compressed or encrypted.
        InvalidArgument: the user named another type of tokens.
    """
    path, found, entry = index_beside(file, _checked)
    dtype = file.dtype_of(found.dtype, where=repr(path))
    chunk = found.chunks.get(os.path.basename(file.path))
    if chunk is None:
        message = (
            f"{path!r} does not name the chunk {file.path!r}: another run of litdata.optimize left it; open "
            f"the folder, whose chunks are those that the index names"
        )
        raise UnsupportedFormat(message)
    check_size(file, chunk.size, index=path)
    offsets = item_offsets(file, items=chunk.items, index=path)
    _check_items(file, offsets, np.dtype(dtype).itemsize, chunk, path)
    digest = xxhash.xxh3_64_digest(repr((dtype, chunk)).encode() + offsets.tobytes())
    return token_survey(offsets, TokenSchema(dtype, beside=(entry,)), digest=digest)


def _check_items(file: TokenFile, offsets: Any, width: int, chunk: _Chunk, index: str) -> None:
    """Check that items follow the offsets, are whole tokens, and as many as the index says."""
    first = 4 * (chunk.items + 2)
    if int(offsets[0]) != first:
        raise damage(
            file.path,
            4,
            expected=f"the first item at byte {first}, behind the offsets",
            found=f"{offsets[0]}",
            way_out="the chunk is damaged, or is not of TokensLoader: copy the folder again",
        )
    odd = np.flatnonzero(np.diff(offsets) % width)
    if odd.size:
        row = int(odd[0])
        raise damage(
            file.path,
            int(offsets[row]),
            expected=f"tokens of {width} bytes, as {index!r} says",
            found=f"an item of {offsets[row + 1] - offsets[row]} bytes",
            way_out="the chunk is damaged, or the index is of another dataset: copy the folder again",
            row=row,
        )
    tokens = (int(offsets[-1]) - first) // width
    if chunk.tokens is not None and chunk.tokens != tokens:
        raise damage(
            file.path,
            file.size,
            expected=f"{chunk.tokens} tokens, as {index!r} says",
            found=f"{tokens}",
            way_out="the index is of another dataset, or damaged: copy the folder again",
        )


def _checked(path: str, index: Any) -> _Chunks:
    """Return what an index says.

    Raises:
        CorruptTokens: it lacks something that LitData writes.
        UnsupportedFormat: the chunks are not of tokens, or compressed or encrypted.
    """
    if not is_litdata(index) or not isinstance(index["chunks"], list):
        raise damaged_index(path, "the chunks and the config of LitData", "other JSON")
    config = index["config"]
    for what, way in (("compression", "compression=None"), ("encryption", "encryption=None")):
        if config.get(what):
            message = (
                f"{path!r}: the chunks have {what} {config[what]!r:.60}, so no token of them can be read "
                f"without the whole chunk: write them with litdata.optimize(..., {way}), or read them with "
                f"litdata.StreamingDataset"
            )
            raise UnsupportedFormat(message)
    dtype = _dtype(path, config)
    chunks = {}
    for entry in index["chunks"]:
        chunk = _chunk(path, entry)
        chunks[chunk.name] = chunk
    if len(chunks) != len(index["chunks"]):
        raise damaged_index(path, "each chunk once", f"{len(index['chunks']) - len(chunks)} of them again")
    return _Chunks(dtype, chunks)


def _dtype(path: str, config: dict[str, Any]) -> str:
    forms, loader = config.get("data_format"), config.get("item_loader", "TokensLoader")
    form = forms[0] if isinstance(forms, list) and forms and isinstance(forms[0], str) else f"{forms!r:.60}"
    kind, _, code = form.partition(":")
    codes = _CODES.get(kind)
    if (
        loader != "TokensLoader"
        or codes is None
        or not code.isascii()
        or not code.isdigit()
        or len(code) > _MOST_DIGITS
    ):
        message = (
            f"{path!r} is a dataset of LitData whose items are {form} of {loader}, and not tokens of "
            f"TokensLoader: give litdata.StreamingDataset of the folder to sk.from_sequence(..., version=1), "
            f"or write it with litdata.optimize(..., item_loader=TokensLoader())"
        )
        raise UnsupportedFormat(message)
    if int(code) not in codes:
        message = f"{path!r}: the type {form} of the items is no type of tokens, which are integers"
        raise UnsupportedFormat(message)
    return codes[int(code)]


def _chunk(path: str, entry: Any) -> _Chunk:
    fields = entry if isinstance(entry, dict) else {}
    name, tokens = fields.get("filename"), fields.get("dim")
    counts = (fields.get("chunk_size"), fields.get("chunk_bytes"), 0 if tokens is None else tokens)
    is_name = isinstance(name, str) and name == os.path.basename(name) and name not in ("", ".", "..")
    if not is_name or not all(type(count) is int and count >= 0 for count in counts):
        expected = "a chunk with filename, chunk_size and chunk_bytes"
        raise damaged_index(path, expected, f"{entry!r:.100}")
    items, size, _ = counts
    return _Chunk(str(name), int(items or 0), int(size or 0), tokens)
