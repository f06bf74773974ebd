"""Files of OLMo and Dolma: ``.npy`` by name, and tokens without any header, with ``.csv.gz`` beside.

Each line of the ``.csv.gz`` has the first token of a document and the one after its last, and maybe more.
Label masks, one byte for each token, lie beside under the name ``labels_mask`` instead of ``token_ids``.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from array import array
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.formats.tokens.families.plain_tokens import ends_by_tokens, ends_compared, said_dtype
from seekable.formats.tokens.token_file import damage, opened_side
from seekable.formats.tokens.words import AlignedFile, SideFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.finder import Survey

__all__ = ["CSV_SUFFIX", "is_mask", "survey_olmo"]

CSV_SUFFIX = ".csv.gz"
"""The end of the name of the file that has the ends of documents, instead of ``.npy``."""

_TOKENS, _MASK = "token_ids", "labels_mask"
"""The parts of the names of files of tokens, and of label masks, by which they belong together."""

_MOST_LINE_BYTES = 1 << 16
_MOST_EMPTY = 1 << 20
"""The most documents without a token: a file of lines that lie could else fill the memory."""

_CUT = "the file is cut or damaged, or of other tokens: copy both files again"


def survey_olmo(file: TokenFile) -> Survey:
    """Return the documents of a file without a header: as ``.csv.gz`` says, else those between end tokens.

    Raises:
        CorruptTokens: one of the files is torn or damaged, or they do not belong together.
        InvalidArgument: the user named no type of tokens.
    """
    dtype = said_dtype(file)
    width = np.dtype(dtype).itemsize
    total = file.size // width
    path, beside = file.sibling(CSV_SUFFIX), []
    if paths.is_file(path):
        if file.size % width:
            raise file.torn(0, dtype)
        with opened_side(path) as side:
            bounds = _bounds(side, total, file.path) * np.uint64(width)
            beside.append(side.entry(file.path))
        digest = xxhash.xxh3_64_digest(bounds.tobytes())
        where = os.path.basename(path)
        warnings = ends_compared(file, 0, dtype, documents=len(bounds) - 1, where=where)
    else:
        beside.append(SideFile.absent(os.path.basename(path)))
        ends = ends_by_tokens(file, 0, dtype)
        bounds, digest, warnings = ends.bounds, ends.digest, ends.warnings
    aligned, masks = _masks(file, total)
    schema = TokenSchema(dtype, aligned=aligned, beside=(*beside, *masks), warnings=warnings)
    return token_survey(bounds, schema, digest=digest)


def is_mask(path: str) -> bool:
    """Return True if a file is the label mask of another one."""
    folder, name = os.path.split(path)
    return _MASK in name and paths.is_file(os.path.join(folder, name.replace(_MASK, _TOKENS)))


def _masks(file: TokenFile, total: int) -> tuple[tuple[AlignedFile, ...], tuple[SideFile, ...]]:
    """Return the label mask beside a file, and what the schema keeps of it."""
    name = os.path.basename(file.path)
    if _TOKENS not in name:
        return (), ()
    mask = name.replace(_TOKENS, _MASK)
    path = os.path.join(os.path.dirname(file.path), mask)
    if not paths.is_file(path):
        return (), (SideFile.absent(mask),)
    with opened_side(path) as side:
        if side.size != total:
            found = f"{side.size} bytes"
            expected = f"{total} bytes, one for each token of {file.path!r}"
            raise side.error(min(side.size, total), expected=expected, found=found, way_out=_CUT)
        return (AlignedFile("label_mask", "|b1", mask),), (side.entry(file.path),)


def _bounds(side: Side, total: int, path: str) -> NDArray[np.uint64]:
    """Return the first token of each document, and the number of all tokens."""
    bounds = array("Q", [0])
    for at, start, end in _lines(side):
        if start != bounds[-1] or not start <= end <= total or len(bounds) > total + _MOST_EMPTY:
            raise side.error(
                at,
                expected=f"a document from token {bounds[-1]} on, to one of the {total} tokens of {path!r}",
                found=f"tokens {start} to {end} in line {len(bounds)}",
                way_out=_CUT,
                row=len(bounds) - 1,
            )
        bounds.append(end)
    if bounds[-1] != total:
        raise damage(
            side.path,
            side.size,
            expected=f"documents up to token {total}, where {path!r} ends",
            found=f"{len(bounds) - 1} up to token {bounds[-1]}",
            way_out=_CUT,
        )
    return np.array(bounds, np.uint64)


def _lines(side: Side) -> Iterator[tuple[int, int, int]]:
    """Yield of each line the byte at which it starts in the content, its first token and its end."""
    at = 0
    side.file.seek(0)
    with gzip.GzipFile(fileobj=side.file) as content:
        text = io.TextIOWrapper(content, "utf-8", "surrogateescape", newline="")
        try:
            for fields in csv.reader(iter(lambda: text.readline(_MOST_LINE_BYTES), "")):
                yield at, *_numbers(side, fields, at)
                at += len(",".join(fields)) + 1
        except (EOFError, OSError, zlib.error, csv.Error) as error:
            found = f"{type(error).__name__}: {error}"
            expected = "lines that gzip compressed"
            raise side.error(side.file.tell(), expected=expected, found=found, way_out=_CUT) from None


def _numbers(side: Side, fields: list[str], at: int) -> tuple[int, int]:
    """Return the first two fields of a line, which are numbers of tokens."""
    first = [field for field in fields[:2] if field.isascii() and field.isdigit() and len(field) < 20]  # noqa: PLR2004
    if len(first) < 2:  # noqa: PLR2004
        expected = "START,END, the tokens of a document"
        raise side.error(at, expected=expected, found=f"{','.join(fields)[:80]!r}", way_out=_CUT)
    return int(first[0]), int(first[1])
