"""Arrays of tokens in numpy and safetensors files: one row, or a document in each row.

Nothing that numpy pickled is loaded. A file of safetensors has the size of a header as 64 bits, the header,
which is JSON, and the bytes of the tensors; one of them has the tokens.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.lib import format as npy

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.families.plain_tokens import survey_plain
from seekable.formats.tokens.token_file import DTYPES, damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.finder import Survey

__all__ = ["NUMPY_MAGIC", "survey_numpy", "survey_safetensors"]

NUMPY_MAGIC = b"\x93NUMPY"
"""The first bytes of a ``.npy`` file with a header."""

_MOST_HEADER_BYTES = 1 << 16
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""The readers of headers by version. A header is a literal of Python, and none of it is run."""

_SAFETENSORS_DTYPES = {
    "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2",
    "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
}  # fmt: skip

_NAMES = ("tokens", "input_ids")
"""The names by which a tensor of tokens is preferred to others."""

_SIZE_BYTES = 8
_MOST_SAFETENSORS_HEADER_BYTES = 100_000_000
"""The largest header that safetensors itself reads."""

_MOST_DIMENSIONS = 2

_WAY_OUT = "the file is cut or damaged: copy it again, or write it again"


def survey_numpy(file: TokenFile) -> Survey:
    """Return the documents of an array: its rows if it has two dimensions, else those between end tokens.

    Raises:
        CorruptTokens: the header is damaged, or says another size than the file has.
        UnsupportedFormat: the array is no list of integers; objects are never loaded.
        InvalidArgument: the user named another type of tokens, or end tokens of an array of rows.
    """
    shape, dtype, first = _header(file)
    dtype = file.dtype_of(dtype, where="its header")
    width, total = np.dtype(dtype).itemsize, int(np.prod(shape, dtype=object))
    if first + total * width != file.size:
        raise damage(
            file.path,
            min(first + total * width, file.size),
            expected=f"{first + total * width} bytes, as the header says of an array of shape {shape}",
            found=f"{file.size} bytes",
            way_out="the file is cut or damaged: copy it again",
        )
    if len(shape) == 1:
        return survey_plain(file, first, dtype)
    if file.options.eos is not None or file.options.bos is not None:
        name = "eos" if file.options.bos is None else "bos"
        message = (
            f"{name}= is for one row of tokens, and the array of {file.path!r} has {shape[0]} rows, each of "
            f"which is a document: leave {name}= out"
        )
        raise InvalidArgument(message)
    rows, length = shape
    if rows * 8 > max(file.size, 1 << 20):
        raise damage(file.path, 0, expected="rows with tokens", found=f"an array of shape {shape}",
                     way_out="rows of no token are no documents: write the array again")  # fmt: skip
    bounds = np.arange(rows + 1, dtype=np.uint64) * np.uint64(length * width) + np.uint64(first)
    return token_survey(bounds, TokenSchema(dtype, first=first), digest=bytes(8))


def _header(file: TokenFile) -> tuple[tuple[int, ...], str, int]:
    """Return the shape and the type of an array, and the byte of its first element."""
    stream = io.BytesIO(file.source.read(0, _MOST_HEADER_BYTES))
    try:
        read = _READERS[npy.read_magic(stream)]
        shape, by_columns, dtype = read(stream)
    except Exception as error:  # noqa: BLE001 - numpy parses a literal, which fails in many ways
        raise damage(
            file.path,
            len(NUMPY_MAGIC),
            expected="a header of numpy of version 1.0 or 2.0",
            found=f"one that cannot be read ({type(error).__name__}: {error})"[:200],
            way_out="the file is cut or damaged: write it again with numpy.save",
        ) from None
    if dtype.hasobject:
        what = "objects, which are pickled and could run any code"
    elif dtype.str not in DTYPES:
        what = f"elements of {dtype}, and tokens are integers in little-endian order"
    elif any(size < 0 for size in shape):
        what = f"the shape {shape}"
    elif len(shape) not in (1, 2) or (len(shape) == 2 and by_columns and min(shape) > 1):  # noqa: PLR2004
        what = f"the shape {shape}{' stored by columns' if by_columns else ''}"
    else:
        return tuple(int(size) for size in shape), dtype.str, stream.tell()
    message = (
        f"{file.path!r}: byte {len(NUMPY_MAGIC)}: it is an array with {what}. Write the tokens as one row, "
        f"or as rows of documents, with numpy.save; give numpy.load(path, mmap_mode='r') of other arrays to "
        f"sk.from_sequence"
    )
    raise UnsupportedFormat(message)


def survey_safetensors(file: TokenFile) -> Survey:
    """Return the rows of the tensor of tokens.

    Raises:
        CorruptTokens: the file is torn or damaged.
        UnsupportedFormat: no tensor, or more than one, can be that of tokens.
        InvalidArgument: the user named another type of tokens.
    """
    tensors, text = _safetensors_header(file)
    name = _tokens_of(file, tensors)
    dtype, shape, (start, stop) = tensors[name]
    dtype = file.dtype_of(_SAFETENSORS_DTYPES[dtype], where=f"the header of {file.path!r}")
    rows, length = shape if len(shape) == _MOST_DIMENSIONS else (1, *shape)
    data = _SIZE_BYTES + len(text)
    width = np.dtype(dtype).itemsize
    if stop - start != rows * length * width or data + stop > file.size:
        found = f"bytes {start} to {stop} of {file.size - data}"
        raise _damaged(file, _SIZE_BYTES, f"{rows * length * width} bytes of the tensor {name!r}", found)
    if rows > file.size:
        raise _damaged(file, _SIZE_BYTES, "rows of tokens", f"{rows} rows of {length}")
    bounds = (data + start + np.arange(rows + 1, dtype=np.uint64) * np.uint64(length * width)).astype(
        np.uint64
    )
    digest = xxhash.xxh3_64_digest(text)
    return token_survey(bounds, TokenSchema(dtype), digest=digest)


_Tensor = tuple[str, list[int], list[int]]


def _safetensors_header(file: TokenFile) -> tuple[dict[str, _Tensor], bytes]:
    """Return the type, the shape and the bytes of each tensor, and the bytes of the header.

    Raises:
        CorruptTokens: the header is torn or damaged.
    """
    head = file.source.read(0, _SIZE_BYTES)
    size = int.from_bytes(head, "little")
    if len(head) < _SIZE_BYTES or size > min(_MOST_SAFETENSORS_HEADER_BYTES, file.size - _SIZE_BYTES):
        raise _damaged(file, 0, "the size of a header that the file has", f"{size} of {file.size} bytes")
    text = file.source.read(_SIZE_BYTES, size)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        tensors = {name: _tensor(tensor) for name, tensor in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _damaged(file, _SIZE_BYTES, "a header of JSON with tensors", f"{text[:60]!r}") from None
    return tensors, text


def _tensor(tensor: dict[str, Any]) -> _Tensor:
    dtype, shape, offsets = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
    start, stop = offsets
    if not isinstance(dtype, str) or not all(
        type(each) is int and each >= 0 for each in (*shape, start, stop)
    ):
        raise ValueError
    return dtype, shape, [start, stop]


def _tokens_of(file: TokenFile, tensors: dict[str, _Tensor]) -> str:
    """Return the name of the tensor of tokens.

    Raises:
        UnsupportedFormat: none, or more than one, can be it.
    """
    fitting = [
        name
        for name, (dtype, shape, _) in tensors.items()
        if dtype in _SAFETENSORS_DTYPES and 1 <= len(shape) <= _MOST_DIMENSIONS
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
