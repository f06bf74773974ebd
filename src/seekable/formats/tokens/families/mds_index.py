"""The index.json of MosaicML Streaming (MDS): the shards, their columns, and the one column of tokens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptTokens, UnsupportedFormat
from seekable.formats.tokens.families.indexed_shards import INDEX, damaged_index, read_index
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARRAY_DTYPES", "MdsShard", "TokenColumn", "checked_shards", "has_tokens", "is_mds", "shard_names"]

_NAMES = ("tokens", "input_ids")
"""The names by which a column of tokens is preferred to other arrays."""

_BYTES, _ARRAY, _PICKLE = "bytes", "ndarray", "pkl"

ARRAY_DTYPES = {
    8: "|u1", 9: "|i1", 16: "<u2", 17: "<i2", 32: "<u4", 33: "<i4", 64: "<u8", 65: "<i8",
}  # fmt: skip
"""The types of tokens by the byte that stands before an array whose encoding names none."""

_NAMED = {np.dtype(dtype).name: dtype for dtype in ARRAY_DTYPES.values()}

_MOST_PARTS = 2
"""The type and the shape, behind ``ndarray``."""

_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True)
class TokenColumn:
    """The column that has the tokens."""

    number: int
    dtype: str | None
    """The type of a token; None of ``bytes``, and of arrays with a type before each."""
    is_bytes: bool
    is_fixed: bool
    """True if all samples have the same shape, which is not stored with them."""


@dataclass(frozen=True, slots=True)
class MdsShard:
    """The entry of one shard in the index."""

    name: str
    samples: int
    size: int
    """Its number of bytes."""
    names: tuple[str, ...]
    """The names of its columns."""
    encodings: tuple[str, ...]
    sizes: tuple[int | None, ...]
    """The number of bytes of the values of each column; None of variable size."""
    zipped: bool
    """True if the writer compressed it."""

    @property
    def tokens(self) -> TokenColumn | None:
        """The column of tokens; None if there is none, or several columns could be it."""
        found = [
            _column(number, *each) for number, each in enumerate(zip(self.encodings, self.sizes, strict=True))
        ]
        named = [each for name, each in zip(self.names, found, strict=True) if each and name in _NAMES]
        arrays = [each for each in found if each and not each.is_bytes]
        several = named or arrays
        return several[0] if len(several) == 1 else None


def is_mds(index: Any) -> bool:
    """Return True if the JSON of an index is of MDS."""
    shards = index.get("shards") if isinstance(index, dict) else None
    return isinstance(shards, list) and all(
        isinstance(shard, dict) and shard.get("format") == "mds" for shard in shards
    )


def has_tokens(index: Any) -> bool:
    """Return True if the first shard of MDS has a column of tokens, or is damaged and has one by its name."""
    shards = index["shards"]
    if not shards:
        return False
    try:
        return _shard(INDEX, shards[0]).tokens is not None
    except CorruptTokens:
        names = shards[0].get("column_names")
        return isinstance(names, list) and any(name in names for name in _NAMES)


def shard_names(folder: str) -> tuple[str, ...]:
    """Return the names of the shards of a folder, relative to it, in the order of their samples.

    Raises:
        CorruptTokens: the index is damaged.
        UnsupportedFormat: the shards are compressed, have pickles, or no column of tokens.
    """
    path = os.path.join(folder, INDEX)
    shards = read_index(folder, checked_shards)
    for name, shard in shards.items():
        if shard.zipped and not paths.is_file(os.path.join(folder, name)):
            message = (
                f"{path!r}: the shard {name!r} is compressed, so no token of it can be read without the "
                f"whole shard: write the dataset with MDSWriter(compression=None), or decompress its shards"
            )
            raise UnsupportedFormat(message)
    return tuple(shards)


def checked_shards(path: str, index: Any) -> Mapping[str, MdsShard]:
    """Return the shards of an index by name, each checked.

    Raises:
        CorruptTokens: the index lacks something that MDSWriter writes.
        UnsupportedFormat: a shard has a pickle, or no column of tokens.
    """
    if not is_mds(index):
        raise damaged_index(path, "the shards of MDS", "other JSON")
    shards = {}
    for entry in index["shards"]:
        shard = _shard(path, entry)
        if _PICKLE in shard.encodings:
            message = (
                f"{path!r}: the column {shard.names[shard.encodings.index(_PICKLE)]!r} of {shard.name!r} is "
                f"of pickles, which could run any code: write the dataset without it"
            )
            raise UnsupportedFormat(message)
        if shard.tokens is None:
            columns = ", ".join(map(" ".join, zip(shard.names, shard.encodings, strict=True)))
            message = (
                f"{path!r}: no column of {shard.name!r} is surely that of tokens ({columns}), a flat array "
                f"of integers, or bytes, named 'tokens' or 'input_ids'. Give streaming.StreamingDataset of "
                f"the folder to sk.from_sequence(..., version=1)"
            )
            raise UnsupportedFormat(message)
        shards[shard.name] = shard
    if len(shards) != len(index["shards"]):
        raise damaged_index(path, "each shard once", f"{len(index['shards']) - len(shards)} of them again")
    return shards


def _shard(path: str, entry: dict[str, Any]) -> MdsShard:
    raw = entry.get("raw_data")
    raw = raw if isinstance(raw, dict) else {}
    columns = [entry.get(f"column_{what}") for what in ("names", "encodings", "sizes")]
    counts = entry.get("samples"), raw.get("bytes")
    name = raw.get("basename")
    is_whole = (
        isinstance(name, str)
        and name != os.curdir
        and not os.path.isabs(name)
        and os.path.normpath(name) == name
        and not name.startswith("..")
        and all(type(count) is int and count >= 0 for count in counts)
        and all(isinstance(column, list) for column in columns)
        and len({len(column) for column in columns if column is not None}) == 1
        and all(isinstance(text, str) for column in columns[:2] for text in column or ())
        and all(size is None or (type(size) is int and size >= 0) for size in columns[2] or ())
    )
    if not is_whole:
        raise damaged_index(path, "a shard of MDS with its columns and raw_data", f"{entry!r:.100}")
    zipped = bool(entry.get("compression") or entry.get("zip_data"))
    names, encodings, sizes = (tuple(column or ()) for column in columns)
    samples, size = counts
    return MdsShard(str(name), int(samples or 0), int(size or 0), names, encodings, sizes, zipped)


def _column(number: int, encoding: str, size: int | None) -> TokenColumn | None:
    """Return a column if it can be one of tokens."""
    kind, *parts = encoding.split(":")
    if encoding == _BYTES:
        return TokenColumn(number, None, is_bytes=True, is_fixed=False)
    if kind != _ARRAY or len(parts) > _MOST_PARTS:
        return None
    if not parts:
        return TokenColumn(number, None, is_bytes=False, is_fixed=False) if size is None else None
    dtype = _NAMED.get(parts[0])
    if dtype is None:
        return None
    if len(parts) == 1:
        return TokenColumn(number, dtype, is_bytes=False, is_fixed=False) if size is None else None
    shape = parts[1]
    is_number = shape.isascii() and shape.isdigit() and len(shape) < _MOST_DIGITS
    is_flat = is_number and size == int(shape) * np.dtype(dtype).itemsize
    return TokenColumn(number, dtype, is_bytes=False, is_fixed=True) if is_flat else None
