"""Shards of MosaicML Streaming (MDS) with a column of tokens: ``shard.00000.mds`` beside an index.json.

The index has the shards and their columns, of which one has the tokens.
A sample has the sizes of its columns of variable size, of 32 bits each, and then the values of all columns.
The tokens are an array of integers of a fixed shape (``ndarray:int32:2048``), one of a shape that stands
before its values (``ndarray:int32``), or ``bytes``, whose type is not written anywhere.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.errors import CorruptTokens, InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.families.indexed_shards import (
    INDEX,
    check_size,
    damaged_index,
    index_beside,
    index_path,
    item_offsets,
    read_index,
)
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.finder import Survey

    UInt64s = NDArray[np.uint64]

__all__ = ["MdsShard", "has_tokens", "is_mds", "shard_names", "survey_mds"]

_NAMES = ("tokens", "input_ids")
"""The names by which a column of tokens is preferred to other arrays."""

_BYTES, _ARRAY, _PICKLE = "bytes", "ndarray", "pkl"

_ARRAY_DTYPES = {
    8: "|u1", 9: "|i1", 16: "<u2", 17: "<i2", 32: "<u4", 33: "<i4", 64: "<u8", 65: "<i8",
}  # fmt: skip
"""The types of tokens by the byte that stands before an array whose encoding names none."""

_NAMED = {np.dtype(dtype).name: dtype for dtype in _ARRAY_DTYPES.values()}

_MOST_PARTS = 2
"""The type and the shape, after ``ndarray``."""

_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True)
class _TokenColumn:
    """The column that has the tokens."""

    number: int
    dtype: str | None
    """The type of a token; None of ``bytes``, and of arrays with a type before each."""
    is_bytes: bool
    is_fixed: bool
    """True if all samples have the same shape, which is not stored with them."""


@dataclass(frozen=True, slots=True)
class MdsShard:
    """The entry of one shard in the index; digests hold its repr, so all names in it stay."""

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
    def tokens(self) -> _TokenColumn | None:
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
    """Return the names of shards, relative to their folder, in the order of their samples.

    Raises:
        CorruptTokens: the index is damaged.
        UnsupportedFormat: the shards are compressed, have pickles, or no column of tokens.
    """
    path = os.path.join(folder, INDEX)
    shards = read_index(folder, _checked_shards)
    for name, shard in shards.items():
        if shard.zipped and not paths.is_file(os.path.join(folder, name)):
            message = (
                f"{path!r}: the shard {name!r} is compressed, so no token of it can be read without the "
                f"whole shard: write the dataset with MDSWriter(compression=None), or decompress its shards"
            )
            raise UnsupportedFormat(message)
    return tuple(shards)


def _checked_shards(path: str, index: Any) -> Mapping[str, MdsShard]:
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


def _column(number: int, encoding: str, size: int | None) -> _TokenColumn | None:
    """Return a column if it can be one of tokens."""
    kind, *parts = encoding.split(":")
    if encoding == _BYTES:
        return _TokenColumn(number, None, is_bytes=True, is_fixed=False)
    if kind != _ARRAY or len(parts) > _MOST_PARTS:
        return None
    if not parts:
        return _TokenColumn(number, None, is_bytes=False, is_fixed=False) if size is None else None
    dtype = _NAMED.get(parts[0])
    if dtype is None:
        return None
    if len(parts) == 1:
        return _TokenColumn(number, dtype, is_bytes=False, is_fixed=False) if size is None else None
    shape = parts[1]
    is_number = shape.isascii() and shape.isdigit() and len(shape) < _MOST_DIGITS
    is_flat = is_number and size == int(shape) * np.dtype(dtype).itemsize
    return _TokenColumn(number, dtype, is_bytes=False, is_fixed=True) if is_flat else None


_SIZE = struct.Struct("<I")

_CUT = "the shard is cut or damaged: copy it again, or write the dataset again"


def survey_mds(file: TokenFile) -> Survey:
    """Return the samples of a shard.

    Raises:
        CorruptTokens: the shard or the index is torn or damaged, or they do not belong together.
        UnsupportedFormat: the shard has pickles, or no column of tokens.
        InvalidArgument: the type of the tokens is not said, or the user says another one.
    """
    if index_path(file.path) is None:
        message = (
            f"{file.path!r} is a shard of MDS, and no {INDEX} is beside it, which says what its columns are: "
            f"copy the folder again"
        )
        raise UnsupportedFormat(message)
    path, shards, entry = index_beside(file, _checked_shards)
    shard = shards.get(os.path.relpath(file.path, os.path.dirname(path)))
    if shard is None:
        message = (
            f"{path!r} does not name the shard {file.path!r}: open the folder, whose shards are those that "
            f"it names"
        )
        raise UnsupportedFormat(message)
    check_size(file, shard.size, index=path)
    offsets = item_offsets(file, items=shard.samples, index=path)
    _check_columns(file, shard, int(offsets[0]), path)
    samples = _ShardSamples(file, shard, offsets, path)
    starts, counts = samples.tokens()
    schema = TokenSchema(samples.dtype, beside=(entry,), warnings=_unread(shard))
    digest = xxhash.xxh3_64_digest(
        repr((shard, samples.dtype)).encode() + starts.tobytes() + counts.tobytes()
    )
    width = np.dtype(samples.dtype).itemsize
    skips = np.unique(starts - offsets[:-1])
    if skips.size <= 1 and (starts + counts * np.uint64(width) == offsets[1:]).all():
        schema = replace(schema, skip=int(skips[0]) if skips.size else 0)
        return token_survey(offsets, schema, digest=digest)
    schema = replace(schema, explicit=True)
    return token_survey(offsets, schema, digest=digest, payloads=starts, counts=counts)


@final
class _ShardSamples:
    """The samples of a shard, whose heads are read one after another."""

    def __init__(self, file: TokenFile, shard: MdsShard, offsets: UInt64s, index: str) -> None:
        column = shard.tokens
        assert column is not None  # `_checked_shards` refuses a shard without one
        self._file, self._shard, self._column, self._offsets = file, shard, column, offsets
        self._is_alone = len(shard.names) == 1
        self.dtype = self._dtype(index)
        """The type of a token."""

    def tokens(self) -> tuple[UInt64s, UInt64s]:
        """Return the first byte of the tokens of each sample, and their number."""
        width = np.dtype(self.dtype).itemsize
        if self._is_alone and self._column.is_fixed:
            size = self._shard.sizes[0] or 0
            odd = np.flatnonzero(np.diff(self._offsets) != size)
            if odd.size:
                row = int(odd[0])
                raise self._error(row, f"a sample of {size} bytes", f"{self._length(row)}")
            return self._offsets[:-1], np.full(self._shard.samples, size // width, np.uint64)
        starts = np.empty(self._shard.samples, np.uint64)
        counts = np.empty(self._shard.samples, np.uint64)
        for row in range(self._shard.samples):
            start, size = self._values(row)
            if size % width:
                raise self._error(
                    row, f"tokens of {width} bytes ({np.dtype(self.dtype).name})", f"{size} bytes"
                )
            starts[row], counts[row] = start, size // width
        return starts, counts

    def _values(self, row: int) -> tuple[int, int]:
        """Return the first byte of a sample's tokens, and how many bytes they have."""
        sizes = self._sizes(row)
        variable = self._shard.sizes.count(None)
        number = self._column.number
        start = int(self._offsets[row]) + _SIZE.size * variable + sum(sizes[:number])
        if self._column.is_bytes or self._column.is_fixed:
            return start, sizes[number]
        head = self._head(row, start, sizes[number])
        return start + head, sizes[number] - head

    def _sizes(self, row: int) -> list[int]:
        """Return how many bytes the values of each column have in a sample."""
        start, variable = int(self._offsets[row]), self._shard.sizes.count(None)
        head = self._file.source.read(start, min(_SIZE.size * variable, self._length(row)))
        if len(head) < _SIZE.size * variable:
            raise self._error(row, f"{variable} sizes of 4 bytes", f"a sample of {self._length(row)}")
        stored = (each for (each,) in _SIZE.iter_unpack(head))
        sizes = [next(stored) if size is None else size for size in self._shard.sizes]
        if len(head) + sum(sizes) != self._length(row):
            expected = f"values of {self._length(row) - len(head)} bytes, as the offsets of the shard say"
            raise self._error(row, expected, f"sizes of {sum(sizes)}")
        return sizes

    def _head(self, row: int, start: int, size: int) -> int:
        """Return how many bytes of type and shape precede the values of an array."""
        coded = not self._has_dtype
        head = self._file.source.read(start, min(size, coded + 1 + 8))
        if coded and (not head or _ARRAY_DTYPES.get(head[0]) != self.dtype):
            expected = f"an array of {np.dtype(self.dtype).name}, as the first one is"
            raise self._error(row, expected, f"the code {head[0] if head else 'of no type'}", at=start)
        shape = head[coded:]
        width = 1 << (shape[0] & 3) if shape else 1
        length = int.from_bytes(shape[1 : 1 + width], "little")
        values = size - coded - 1 - width
        if not shape or shape[0] >> 2 != 1 or values != length * np.dtype(self.dtype).itemsize:
            expected = "an array of one dimension, whose shape is that of its bytes"
            raise self._error(row, expected, f"the head {head.hex()} of {size} bytes", at=start)
        return coded + 1 + width

    @property
    def _has_dtype(self) -> bool:
        """True if the encoding of the column names the type."""
        return self._column.dtype is not None

    def _dtype(self, index: str) -> str:
        """Return the type of tokens, as the encoding, the first array or the user says."""
        if self._column.dtype is not None:
            return self._file.dtype_of(self._column.dtype, where=repr(index))
        if not self._column.is_bytes and self._shard.samples:
            sizes = self._sizes(0)
            before = _SIZE.size * self._shard.sizes.count(None) + sum(sizes[: self._column.number])
            code = self._file.source.read(int(self._offsets[0]) + before, 1)
            found = _ARRAY_DTYPES.get(code[0] if code else -1)
            if found is None:
                raise self._error(0, "the code of a type of integers", f"{code.hex()}")
            return self._file.dtype_of(found, where="its first array")
        if self._file.options.dtype is None:
            name = self._shard.names[self._column.number]
            message = (
                f"{index!r}: the tokens are bytes (column {name!r}), and their type is written nowhere: say "
                f"it, as sk.formats.Tokens(dtype='int64'), which LLM Foundry takes if nothing else is said"
            )
            raise InvalidArgument(message)
        return self._file.options.dtype

    def _length(self, row: int) -> int:
        return int(self._offsets[row + 1] - self._offsets[row])

    def _error(self, row: int, expected: str, found: str, *, at: int | None = None) -> CorruptTokens:
        offset = int(self._offsets[row]) if at is None else at
        return damage(self._file.path, offset, expected=expected, found=found, way_out=_CUT, row=row)


def _check_columns(file: TokenFile, shard: MdsShard, stop: int, index: str) -> None:
    """Compare the columns that a shard has in its head with those of the index.

    Raises:
        CorruptTokens: they differ, or the head is damaged.
    """
    start = 4 * (shard.samples + 2)
    text = file.source.read(start, stop - start)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    expected = {
        "column_names": list(shard.names),
        "column_encodings": list(shard.encodings),
        "column_sizes": list(shard.sizes),
    }
    if not isinstance(found, dict) or any(found.get(name) != value for name, value in expected.items()):
        raise damage(
            file.path,
            start,
            expected=f"the columns that {index!r} has of it, as JSON",
            found=f"{text[:100]!r}",
            way_out="the shard is damaged, or of another dataset: copy the folder again",
        )


def _unread(shard: MdsShard) -> tuple[str, ...]:
    """Return the warning about columns that are not read, if there are some."""
    tokens = shard.tokens
    others = [name for number, name in enumerate(shard.names) if tokens and number != tokens.number]
    if tokens is None or not others:
        return ()
    text = (
        f"the tokens are read (column {shard.names[tokens.number]!r}), and not "
        f"{', '.join(map(repr, others))}: give streaming.StreamingDataset of the folder to sk.from_sequence "
        f"if you need these"
    )
    return (text,)
