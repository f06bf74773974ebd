"""Indexed datasets of Megatron, ``.idx`` beside ``.bin``, and those that fairseq writes under the same magic.

The ``.idx`` has the magic, the version, the code of the type of tokens and the number of sequences; then, of
Megatron alone, the number of entries of the document table; then the length and the first byte of each
sequence, and of Megatron the document table. The size of the file decides which tool wrote it, and if the
modes of a multimodal dataset follow. A sequence is a document here, as it is in GPT training.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, final

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.families.document_ends import ends_compared
from seekable.formats.tokens.token_file import CHUNK_BYTES, damage, opened_side
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.errors import CorruptTokens
    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.surveyor import Survey

__all__ = ["FAIRSEQ_DTYPES", "MAGIC", "survey_megatron"]

MAGIC = b"MMIDIDX\0\0"
"""The first bytes of the index."""

_DTYPES = {1: "|u1", 2: "|i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The types of tokens by their codes, which all tools agree on."""

FAIRSEQ_DTYPES = {**_DTYPES, 9: "<u4"}
"""The codes of fairseq, which has one more."""

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
        known = FAIRSEQ_DTYPES if self._is_fairseq else _DTYPES
        if code not in known:
            names = ", ".join(f"{each} ({np.dtype(dtype).name})" for each, dtype in known.items())
            message = (
                f"{self._side.path!r}: byte 17: the code {code} is no type of tokens, which are integers: "
                f"{names}. Write the dataset with one of these"
            )
            raise UnsupportedFormat(message)
        return self._file.dtype_of(known[code], where=repr(self._side.path))

    def _error(self, at: int, expected: str, found: str, way_out: str, *, row: int = 0) -> CorruptTokens:
        return self._side.error(at, expected=expected, found=found, way_out=way_out, row=row)
