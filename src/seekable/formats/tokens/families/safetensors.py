"""Files of safetensors with one tensor of tokens: rows of one length, or one row.

The file has the size of a header of JSON as 64 bits, the header, and the bytes of the tensors.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.surveyor import Survey

__all__ = ["survey_safetensors"]

_DTYPES = {
    "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2",
    "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
}  # fmt: skip

_NAMES = ("tokens", "input_ids")
"""The names by which a tensor of tokens is preferred to others."""

_HEAD = 8
_MOST_HEADER_BYTES = 100_000_000
"""The largest header that safetensors itself reads."""

_MOST_DIMENSIONS = 2

_WAY_OUT = "the file is cut or damaged: copy it again, or write it again"


def survey_safetensors(file: TokenFile) -> Survey:
    """Return the rows of the tensor of tokens.

    Raises:
        CorruptTokens: the file is torn or damaged.
        UnsupportedFormat: no tensor, or more than one, can be that of tokens.
        InvalidArgument: the user named another type of tokens.
    """
    tensors, text = _header(file)
    name = _tokens_of(file, tensors)
    dtype, shape, (start, stop) = tensors[name]
    dtype = file.dtype_of(_DTYPES[dtype], where=f"the header of {file.path!r}")
    rows, length = shape if len(shape) == _MOST_DIMENSIONS else (1, *shape)
    data = _HEAD + len(text)
    width = np.dtype(dtype).itemsize
    if stop - start != rows * length * width or data + stop > file.size:
        found = f"bytes {start} to {stop} of {file.size - data}"
        raise _damaged(file, _HEAD, f"{rows * length * width} bytes of the tensor {name!r}", found)
    if rows > file.size:
        raise _damaged(file, _HEAD, "rows of tokens", f"{rows} rows of {length}")
    bounds = (data + start + np.arange(rows + 1, dtype=np.uint64) * np.uint64(length * width)).astype(
        np.uint64
    )
    digest = xxhash.xxh3_64_digest(text)
    return token_survey(bounds, TokenSchema(dtype), digest=digest)


Tensor = tuple[str, list[int], list[int]]


def _header(file: TokenFile) -> tuple[dict[str, Tensor], bytes]:
    """Return the type, the shape and the bytes of each tensor, and the bytes of the header.

    Raises:
        CorruptTokens: the header is torn or damaged.
    """
    head = file.source.read(0, _HEAD)
    size = int.from_bytes(head, "little")
    if len(head) < _HEAD or size > min(_MOST_HEADER_BYTES, file.size - _HEAD):
        raise _damaged(file, 0, "the size of a header that the file has", f"{size} of {file.size} bytes")
    text = file.source.read(_HEAD, size)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        tensors = {name: _tensor(tensor) for name, tensor in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _damaged(file, _HEAD, "a header of JSON with tensors", f"{text[:60]!r}") from None
    return tensors, text


def _tensor(tensor: dict[str, Any]) -> Tensor:
    dtype, shape, offsets = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
    start, stop = offsets
    if not isinstance(dtype, str) or not all(
        type(each) is int and each >= 0 for each in (*shape, start, stop)
    ):
        raise ValueError
    return dtype, shape, [start, stop]


def _tokens_of(file: TokenFile, tensors: dict[str, Tensor]) -> str:
    """Return the name of the tensor of tokens.

    Raises:
        UnsupportedFormat: none, or more than one, can be it.
    """
    fitting = [
        name
        for name, (dtype, shape, _) in tensors.items()
        if dtype in _DTYPES and 1 <= len(shape) <= _MOST_DIMENSIONS
    ]
    several = [name for name in fitting if name in _NAMES] or fitting
    if len(several) != 1:
        known = ", ".join(f"{name} {dtype}{shape}" for name, (dtype, shape, _) in tensors.items())
        message = (
            f"{file.path!r}: one tensor of integers in rows is read as tokens, and here there are "
            f"{len(several)} ({known[:200] or 'no tensors'}): write the tokens alone, or name them 'tokens'"
        )
        raise UnsupportedFormat(message)
    return several[0]


def _damaged(file: TokenFile, at: int, expected: str, found: str) -> CorruptTokens:
    return damage(file.path, at, expected=expected, found=found, way_out=_WAY_OUT)
