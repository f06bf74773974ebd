"""Indexed datasets: ``.idx`` beside ``.bin``, as Megatron, fairseq and GPT-NeoX write them.

There are two kinds of index. The newer one has the magic, the version, the code of the type of tokens and the
number of sequences; then, of Megatron alone, the number of entries of the document table; then the length and
the first byte of each sequence, and of Megatron the document table. The size of the file decides which tool
wrote it, and whether the modes of a multimodal dataset follow. A sequence is a document here, as it is in
GPT training.

The older one (fairseq's lazy and cached datasets, early Megatron, GPT-NeoX) has 64-bit numbers after the
magic: the version, the code of the type, the bytes of an item, the number n of items, the number s of sizes,
and of Megatron and NeoX the number d of entries of the document table; then n + 1 numbers that count
dimensions, n + 1 offsets in items of the type, s sizes, d documents. fairseq stores each token plus 1.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.families.plain_tokens import ends_compared
from seekable.formats.tokens.token_file import CHUNK_BYTES, damage, opened_side
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.finder import Survey

__all__ = [
    "INDEX_DTYPES",
    "MAGIC",
    "MOST_INDEXED",
    "OLD_MAGIC",
    "index_bytes",
    "survey_megatron",
    "survey_tntidx",
]

MAGIC = b"MMIDIDX\0\0"
"""The first bytes of the index."""

_DTYPES = {1: "|u1", 2: "|i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The types of tokens by their codes, which all tools agree on."""

_FAIRSEQ_DTYPES = {**_DTYPES, 9: "<u4"}
"""The codes of fairseq, which has one more."""

OLD_MAGIC = b"TNTIDX\0\0"
"""The first bytes of the older index."""

_OLD_HEADER_BYTES = 48

_HEAD = struct.Struct("<9sQBQQ")

INDEX_DTYPES = {np.dtype("<u2"): 8, np.dtype("<i4"): 4, np.dtype("<u1"): 1, np.dtype("<i8"): 5}
"""The codes of the dtypes that the index has; uint32 is none of them."""

MOST_INDEXED = (1 << 31) - 1
"""The most tokens of a document: the index has their number in 32 bits with a sign."""

_HEADER_BYTES = 34
_FAIRSEQ_HEADER_BYTES = 26
_STEP = CHUNK_BYTES // 8

_ANOTHER = "the index is damaged, or it is of another .bin: copy both files again"
_CUT = "the index is cut or damaged: copy it again, or write the dataset again"


def survey_megatron(file: TokenFile) -> Survey:
    """Return the sequences of a ``.bin`` as its ``.idx`` has them.

    Raises:
        CorruptTokens: one of both files is torn or damaged, or they do not belong together.
        UnsupportedFormat: the index is of another version, or tokens are no integers.
        InvalidArgument: the user named another type of tokens.
    """
    with opened_side(file.sibling(".idx")) as side:
        layout = _Layout(file, side)
        bounds = layout.bounds()
        layout.check_documents()
        warnings = ends_compared(
            file, 0, layout.dtype, documents=len(bounds) - 1, where=os.path.basename(side.path)
        )
        schema = TokenSchema(layout.dtype, beside=(side.entry(file.path),), warnings=warnings)
        return token_survey(bounds, schema, digest=side.digest())


@final
class _Layout:
    """The arrays of an index, checked against each other and against the size of the ``.bin``."""

    def __init__(self, file: TokenFile, side: Side) -> None:
        self._file = file
        self._side = side
        header = side.read(0, _HEADER_BYTES)
        if len(header) < _FAIRSEQ_HEADER_BYTES:
            raise self._error(len(header), "a header of 34 bytes", "the end of the file", _CUT)
        version = int.from_bytes(header[9:17], "little")
        if version != 1:
            message = (
                f"{side.path!r}: byte 9: the index is of version {version}, and Megatron has 1 alone; "
                f"Fast-LLM writes higher ones. Write the dataset with Megatron's IndexedDatasetBuilder"
            )
            raise UnsupportedFormat(message)
        self._count = int.from_bytes(header[18:26], "little")
        self._is_fairseq = side.size == _FAIRSEQ_HEADER_BYTES + 12 * self._count
        self._entries = 0 if self._is_fairseq else int.from_bytes(header[26:34], "little")
        if not self._is_fairseq:
            self._check_size()
        self._lengths = _FAIRSEQ_HEADER_BYTES if self._is_fairseq else _HEADER_BYTES
        self._offsets = self._lengths + 4 * self._count
        self.dtype = self._dtype(header[17])

    def bounds(self) -> NDArray[np.uint64]:
        """Return the first byte of each sequence, and the end of the last one."""
        bounds = np.empty(self._count + 1, np.uint64)
        width, end = np.dtype(self.dtype).itemsize, 0
        for start in range(0, self._count, _STEP):
            count = min(_STEP, self._count - start)
            lengths = self._side.array(self._lengths + 4 * start, count, "<i4").astype(np.int64)
            offsets = self._side.array(self._offsets + 8 * start, count, "<i8")
            if (lengths < 0).any():
                row = start + int((lengths < 0).argmax())
                found = f"{lengths[row - start]}"
                raise self._error(self._lengths + 4 * row, "a length of 0 or more", found, _CUT, row=row)
            ends = end + (lengths * width).cumsum()
            wrong = offsets != np.concatenate([[end], ends[:-1]])
            if wrong.any():
                row = start + int(wrong.argmax())
                expected = int(ends[row - start] - lengths[row - start] * width)
                raise self._error(
                    self._offsets + 8 * row,
                    f"sequence {row} at byte {expected} of the .bin, where the one before it ends",
                    f"{offsets[row - start]}",
                    _ANOTHER,
                    row=row,
                )
            bounds[start : start + count] = offsets
            end = int(ends[-1])
        bounds[self._count] = end
        if end != self._file.size:
            raise damage(
                self._file.path,
                min(end, self._file.size),
                expected=f"{end} bytes, as {self._side.path!r} says of its {self._count} sequences",
                found=f"{self._file.size} bytes",
                way_out="the .bin is cut, or the index is of another .bin: copy both files again",
            )
        return bounds

    def check_documents(self) -> None:
        """Check that the document table goes from sequence 0 to the last one."""
        before, at = 0, self._offsets + 8 * self._count
        for start in range(0, self._entries, _STEP):
            entries = self._side.array(at + 8 * start, min(_STEP, self._entries - start), "<i8")
            wrong = np.diff(entries, prepend=before) < 0
            if not start:
                wrong[0] = entries[0] != 0
            if wrong.any():
                row = int(wrong.argmax())
                least = before if row == 0 else int(entries[row - 1])
                expected = f"a document from sequence {least} on" + (" or behind" if start + row else "")
                raise self._error(at + 8 * (start + row), expected, f"{entries[row]}", _CUT)
            before = int(entries[-1])
        if self._entries and before != self._count:
            place = at + 8 * (self._entries - 1)
            raise self._error(place, f"the number of sequences, {self._count}", f"{before}", _CUT)

    def _check_size(self) -> None:
        whole = _HEADER_BYTES + 12 * self._count + 8 * self._entries
        if self._entries < 1 or self._side.size not in (whole, whole + self._count):
            raise self._error(
                min(whole, self._side.size),
                f"{whole} bytes for {self._count} sequences and a document table of {self._entries} entries, "
                f"{whole + self._count} with modes, or {_FAIRSEQ_HEADER_BYTES + 12 * self._count} of fairseq",
                f"{self._side.size} bytes",
                _CUT,
            )

    def _dtype(self, code: int) -> str:
        known = _FAIRSEQ_DTYPES if self._is_fairseq else _DTYPES
        dtype = _known_dtype(self._side.path, 17, code, known)
        return self._file.dtype_of(dtype, where=repr(self._side.path))

    def _error(self, at: int, expected: str, found: str, way_out: str, *, row: int = 0) -> CorruptTokens:
        return self._side.error(at, expected=expected, found=found, way_out=way_out, row=row)


def _known_dtype(path: str, at: int, code: int, known: dict[int, str]) -> str:
    """Return the type that a code in an index stands for.

    Raises:
        UnsupportedFormat: it stands for none.
    """
    if code not in known:
        names = ", ".join(f"{each} ({np.dtype(dtype).name})" for each, dtype in known.items())
        message = (
            f"{path!r}: byte {at}: the code {code} is no type of tokens, which are integers: {names}. Write "
            f"the dataset with one of these"
        )
        raise UnsupportedFormat(message)
    return known[code]


def survey_tntidx(file: TokenFile) -> Survey:
    """Return the items of a ``.bin`` as its ``.idx`` has them.

    Raises:
        CorruptTokens: one of both files is torn or damaged, or they do not belong together.
        UnsupportedFormat: the index is of another version, or items are no lists of integers.
        InvalidArgument: the user named another type of tokens.
    """
    with opened_side(file.sibling(".idx")) as side:
        header = side.array(0, _OLD_HEADER_BYTES // 8, "<u8")
        if len(header) < _OLD_HEADER_BYTES // 8:
            raise side.error(side.size, expected="a header of 48 bytes", found="its end", way_out=_CUT)
        _, version, code, width, count, sizes = header.tolist()
        if version != 1:
            message = f"{side.path!r}: byte 8: the index is of version {version}, and 1 is read alone"
            raise UnsupportedFormat(message)
        dtype = _old_dtype(file, side, code, width)
        first, is_fairseq = _old_first_number(side, count, sizes)
        bounds = _old_bounds(file, side, first, count, width)
        schema = TokenSchema(dtype, minus=int(is_fairseq), beside=(side.entry(file.path),))
        return token_survey(bounds, schema, digest=side.digest())


def _old_first_number(side: Side, count: int, sizes: int) -> tuple[int, bool]:
    """Return where the numbers after the header begin, and True if fairseq wrote the index."""
    body = 8 * (2 * (count + 1) + sizes)
    documents = (
        side.array(_OLD_HEADER_BYTES, 1, "<u8").tolist() if side.size >= _OLD_HEADER_BYTES + 8 else [0]
    )
    is_fairseq = side.size == _OLD_HEADER_BYTES + body
    whole = _OLD_HEADER_BYTES + 8 + body + 8 * documents[0]
    if not is_fairseq and side.size != whole:
        raise side.error(
            min(side.size, _OLD_HEADER_BYTES + body),
            expected=f"{_OLD_HEADER_BYTES + body} bytes of fairseq for {count} items and {sizes} sizes, or "
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
    return _OLD_HEADER_BYTES + (0 if is_fairseq else 8), is_fairseq


def _old_bounds(file: TokenFile, side: Side, first: int, count: int, width: int) -> NDArray[np.uint64]:
    """Check offsets and sizes; return the first byte of each item, and the end of the last one."""
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
                    way_out=_ANOTHER,
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


def _old_dtype(file: TokenFile, side: Side, code: int, width: int) -> str:
    dtype = _known_dtype(side.path, 16, code, _FAIRSEQ_DTYPES)
    if np.dtype(dtype).itemsize != width:
        expected = f"{np.dtype(dtype).itemsize} bytes an item of {np.dtype(dtype).name}"
        raise side.error(24, expected=expected, found=f"{width}", way_out=_CUT)
    return file.dtype_of(dtype, where=repr(side.path))


def index_bytes(lengths: Int64s, dtype: np.dtype[Any]) -> bytes:
    r"""Return the index of documents of one sequence each, as Megatron's ``IndexedDatasetBuilder`` writes it.

    Args:
        lengths: the number of tokens of each document, at most `MOST_INDEXED`.
        dtype: the dtype of the tokens, one of `INDEX_DTYPES`.

    Example:
        >>> index = index_bytes(np.array([3, 1]), np.dtype("<u2"))
        >>> index[:9], len(index) == 34 + 2 * (4 + 8) + 3 * 8
        (b'MMIDIDX\x00\x00', True)
    """
    ends = np.cumsum(lengths) * dtype.itemsize
    starts = (ends - lengths * dtype.itemsize).astype("<i8")
    documents = np.arange(len(lengths) + 1, dtype="<i8")
    head = _HEAD.pack(MAGIC, 1, INDEX_DTYPES[dtype], len(lengths), len(documents))
    return b"".join([head, lengths.astype("<i4").tobytes(), starts.tobytes(), documents.tobytes()])
