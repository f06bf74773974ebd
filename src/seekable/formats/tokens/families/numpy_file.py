"""Arrays of numpy: one row of tokens, or one document in each row. Nothing of numpy's pickles is loaded."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.families.document_ends import ends_by_tokens
from seekable.formats.tokens.options import DTYPES
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.surveyor import Survey

__all__ = ["NUMPY_MAGIC", "survey_numpy"]

NUMPY_MAGIC = b"\x93NUMPY"
"""The first bytes of a ``.npy`` file with a header."""

_MOST_HEADER_BYTES = 1 << 16
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""The readers of headers by version. A header is a literal of Python, and none of it is run."""


def survey_numpy(file: TokenFile) -> Survey:
    """Return the documents of an array: the rows of one of two dimensions, else those between end tokens.

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
        ends = ends_by_tokens(file, first, dtype)
        schema = TokenSchema(dtype, first=first, warnings=ends.warnings)
        return token_survey(ends.bounds, schema, digest=ends.digest)
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
