"""Shards of MosaicML Streaming (MDS) with a column of tokens: ``shard.00000.mds`` beside an index.json.

A sample has the sizes of its columns of variable size, of 32 bits each, and then the values of all columns.
The tokens are an array of integers of a fixed shape (``ndarray:int32:2048``), one of a shape that stands
before its values (``ndarray:int32``), or ``bytes``, whose type is not written anywhere.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.families.indexed_shards import (
    INDEX,
    check_size,
    index_beside,
    index_path,
    item_offsets,
)
from seekable.formats.tokens.families.mds_index import ARRAY_DTYPES, checked_shards
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.families.mds_index import MdsShard
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.surveyor import Survey

    UInt64s = NDArray[np.uint64]

__all__ = ["survey_mds"]

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
    path, shards, entry = index_beside(file, checked_shards)
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
    samples = _Samples(file, shard, offsets, path)
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
class _Samples:
    """The samples of a shard, whose heads are read one after another."""

    def __init__(self, file: TokenFile, shard: MdsShard, offsets: UInt64s, index: str) -> None:
        column = shard.tokens
        assert column is not None  # `checked_shards` refuses a shard without one
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
        """Return the first byte of the tokens of a sample, and their number of bytes."""
        sizes = self._sizes(row)
        variable = self._shard.sizes.count(None)
        number = self._column.number
        start = int(self._offsets[row]) + _SIZE.size * variable + sum(sizes[:number])
        if self._column.is_bytes or self._column.is_fixed:
            return start, sizes[number]
        head = self._head(row, start, sizes[number])
        return start + head, sizes[number] - head

    def _sizes(self, row: int) -> list[int]:
        """Return the bytes of the values of each column of a sample."""
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
        """Return the number of bytes before the values of an array: of its type and shape."""
        coded = not self._has_dtype
        head = self._file.source.read(start, min(size, coded + 1 + 8))
        if coded and (not head or ARRAY_DTYPES.get(head[0]) != self.dtype):
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
            found = ARRAY_DTYPES.get(code[0] if code else -1)
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
