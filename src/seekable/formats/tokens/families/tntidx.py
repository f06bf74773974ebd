"""The older ``.idx`` of fairseq (its lazy and cached datasets), of early Megatron and of GPT-NeoX.

After the magic come 64-bit numbers: the version, the code of the type, the bytes of an item, the number n of
items, the number s of sizes, and of Megatron and NeoX the number d of entries of the document table; then
n + 1 numbers that count dimensions, n + 1 offsets in items of the type, s sizes, d documents. fairseq stores
each token plus 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.families.megatron import FAIRSEQ_DTYPES
from seekable.formats.tokens.token_file import CHUNK_BYTES, damage, opened_side
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.surveyor import Survey

__all__ = ["MAGIC", "survey_tntidx"]

MAGIC = b"TNTIDX\0\0"
"""The first bytes of the index."""

_HEADER_BYTES = 48
_STEP = CHUNK_BYTES // 8

_CUT = "the index is cut or damaged: copy it again, or write the dataset again"


def survey_tntidx(file: TokenFile) -> Survey:
    """Return the items of a ``.bin`` as its ``.idx`` has them.

    Raises:
        CorruptTokens: one of both files is torn or damaged, or they do not belong together.
        UnsupportedFormat: the index is of another version, or items are no lists of integers.
        InvalidArgument: the user named another type of tokens.
    """
    with opened_side(file.sibling(".idx")) as side:
        header = side.array(0, _HEADER_BYTES // 8, "<u8")
        if len(header) < _HEADER_BYTES // 8:
            raise side.error(side.size, expected="a header of 48 bytes", found="its end", way_out=_CUT)
        _, version, code, width, count, sizes = header.tolist()
        if version != 1:
            message = f"{side.path!r}: byte 8: the index is of version {version}, and 1 is read alone"
            raise UnsupportedFormat(message)
        dtype = _dtype(file, side, code, width)
        first, is_fairseq = _first_number(side, count, sizes)
        bounds = _bounds(file, side, first, count, width)
        schema = TokenSchema(dtype, minus=int(is_fairseq), beside=(side.entry(file.path),))
        return token_survey(bounds, schema, digest=side.digest())


def _first_number(side: Side, count: int, sizes: int) -> tuple[int, bool]:
    """Return the byte of the first number behind the header, and True if fairseq wrote the index."""
    body = 8 * (2 * (count + 1) + sizes)
    documents = side.array(_HEADER_BYTES, 1, "<u8").tolist() if side.size >= _HEADER_BYTES + 8 else [0]
    is_fairseq = side.size == _HEADER_BYTES + body
    whole = _HEADER_BYTES + 8 + body + 8 * documents[0]
    if not is_fairseq and side.size != whole:
        raise side.error(
            min(side.size, _HEADER_BYTES + body),
            expected=f"{_HEADER_BYTES + body} bytes of fairseq for {count} items and {sizes} sizes, or "
            f"{whole} of Megatron with {documents[0]} documents",
            found=f"{side.size} bytes",
            way_out=_CUT,
        )
    if sizes != count:
        message = (
            f"{side.path!r}: byte 40: there are {sizes} sizes for {count} items, so that an item is no list "
            f"of tokens, which has one size: open it with fairseq"
        )
        raise UnsupportedFormat(message)
    return _HEADER_BYTES + (0 if is_fairseq else 8), is_fairseq


def _bounds(file: TokenFile, side: Side, first: int, count: int, width: int) -> NDArray[np.uint64]:
    """Return the first byte of each item, and the end of the last one, after a check of offsets and sizes."""
    dimensions, offsets_at, sizes_at = first, first + 8 * (count + 1), first + 16 * (count + 1)
    bounds = np.empty(count + 1, np.uint64)
    end = 0
    for start in range(0, count, _STEP):
        many = min(_STEP, count - start)
        offsets = side.array(offsets_at + 8 * start, many, "<i8")
        sizes = side.array(sizes_at + 8 * start, many, "<i8")
        dims = side.array(dimensions + 8 * start, many + 1, "<i8")
        ends = end + sizes.cumsum()
        expected = np.concatenate([[end], ends[:-1]])
        for what, at, found, right in (
            ("a size of 0 or more, within the .bin", sizes_at, sizes, sizes.clip(0, file.size)),
            ("offset {}, where the item before ends", offsets_at, offsets, expected),
            ("dimension {}", dimensions, dims, np.arange(start, start + many + 1)),
        ):
            if (found != right).any():
                row = int((found != right).argmax())
                raise side.error(
                    at + 8 * (start + row),
                    expected=what.format(right[row]),
                    found=f"{found[row]}",
                    way_out="the index is damaged, or of another .bin: copy both files again",
                    row=start + row,
                )
        bounds[start : start + many] = offsets * width
        end = int(ends[-1])
    (last,) = side.array(offsets_at + 8 * count, 1, "<i8").tolist()
    if last != end:
        place = offsets_at + 8 * count
        raise side.error(place, expected=f"offset {end}", found=f"{last}", way_out=_CUT)
    bounds[count] = end * width
    if end * width != file.size:
        raise damage(
            file.path,
            min(end * width, file.size),
            expected=f"{end * width} bytes, as {side.path!r} says of its {count} items",
            found=f"{file.size} bytes",
            way_out="the .bin is cut, or the index is of another .bin: copy both files again",
        )
    return bounds


def _dtype(file: TokenFile, side: Side, code: int, width: int) -> str:
    dtype = FAIRSEQ_DTYPES.get(code)
    if dtype is None:
        known = ", ".join(f"{each} ({np.dtype(name).name})" for each, name in FAIRSEQ_DTYPES.items())
        message = (
            f"{side.path!r}: byte 16: the code {code} is no type of tokens, which are integers: {known}. "
            f"Write the dataset with one of these"
        )
        raise UnsupportedFormat(message)
    if np.dtype(dtype).itemsize != width:
        expected = f"{np.dtype(dtype).itemsize} bytes an item of {np.dtype(dtype).name}"
        raise side.error(24, expected=expected, found=f"{width}", way_out=_CUT)
    return file.dtype_of(dtype, where=repr(side.path))
