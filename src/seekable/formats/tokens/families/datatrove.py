"""Files of datatrove and nanotron: ``.ds`` with nothing but tokens, and what lies beside it.

``.ds.index`` has the end of each document in tokens, ``.ds.metadata`` the bytes of a token and the number of
tokens, ``.ds.loss`` a byte for each token, 1 if it is in the loss.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from seekable.formats.tokens.families.plain_tokens import ends_compared
from seekable.formats.tokens.token_file import CHUNK_BYTES, damage, opened_side
from seekable.formats.tokens.words import AlignedFile, SideFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.finder import Survey

__all__ = ["survey_datatrove"]

_STEP = CHUNK_BYTES // 8
_DTYPES = {2: "<u2", 4: "<u4"}
"""The types of tokens by their bytes."""

_MOST_METADATA_BYTES = 1 << 16

_CUT = "the file is cut, or of other tokens: copy all files of the dataset again"


def survey_datatrove(file: TokenFile) -> Survey:
    """Return the documents of a ``.ds`` as its index has them.

    Raises:
        CorruptTokens: one of the files is torn or damaged, or they do not belong together.
        InvalidArgument: the user named another type of tokens.
    """
    metadata = f"{file.path}.metadata"
    beside, said = [SideFile.absent(os.path.basename(metadata))], None
    if paths.is_file(metadata):
        with opened_side(metadata) as side:
            said = _token_bytes(side)
            beside = [side.entry(file.path)]
    with opened_side(f"{file.path}.index") as side:
        total = _last_end(side)
        dtype = file.dtype_of(_dtype(file, side, total, said), where=repr(side.path))
        bounds = _bounds(side, np.dtype(dtype).itemsize)
        beside.append(side.entry(file.path))
        where, digest = os.path.basename(side.path), side.digest()
    warnings = ends_compared(file, 0, dtype, documents=len(bounds) - 1, where=where)
    aligned, loss = _loss(file, total)
    beside.append(loss)
    schema = TokenSchema(dtype, aligned=aligned, beside=tuple(beside), warnings=warnings)
    return token_survey(bounds, schema, digest=digest)


def _token_bytes(side: Side) -> int:
    """Return the bytes of a token, as the metadata say in their first line, ``TOKENIZER|BYTES``."""
    first, _, _ = side.read(0, _MOST_METADATA_BYTES).partition(b"\n")
    found = first.rpartition(b"|")[2].strip()
    if found not in (b"2", b"4"):
        at = len(first) - len(found)
        expected = "TOKENIZER|BYTES with 2 or 4 bytes a token"
        raise side.error(at, expected=expected, found=f"{first[:60]!r}", way_out=_CUT)
    return int(found)


def _last_end(side: Side) -> int:
    """Return the number of tokens, which is the end of the last document."""
    if side.size % 8:
        at = side.size // 8 * 8
        found = f"the end of the file after {side.size % 8}"
        raise side.error(at, expected="an end of 8 bytes", found=found, way_out=_CUT)
    last: list[int] = side.array(side.size - 8, 1, "<u8").tolist() if side.size else [0]
    return last[0]


def _dtype(file: TokenFile, side: Side, total: int, said: int | None) -> str:
    """Return the type of a token, which follows from the count of tokens and the file's size."""
    width = next((width for width in _DTYPES if width * total == file.size), None) if total else said
    if total == 0 and file.size == 0:
        return _DTYPES[said or 2]
    if width is None or (said is not None and width != said):
        expected = " or ".join(str(each * total) for each in ((said,) if said else _DTYPES))
        raise damage(
            file.path,
            min(file.size, (said or 2) * total),
            expected=f"{expected} bytes, as {side.path!r} says of {total} tokens",
            found=f"{file.size} bytes",
            way_out=_CUT,
        )
    return _DTYPES[width]


def _bounds(side: Side, width: int) -> NDArray[np.uint64]:
    bounds = np.zeros(side.size // 8 + 1, np.uint64)
    before = 0
    for start in range(0, len(bounds) - 1, _STEP):
        ends = side.array(8 * start, min(_STEP, len(bounds) - 1 - start), "<u8")
        wrong = ends < np.concatenate([np.array([before], np.uint64), ends[:-1]])
        if wrong.any():
            row = int(wrong.argmax())
            least = before if not row else int(ends[row - 1])
            expected = f"an end of {least} or more, where the document before ends"
            raise side.error(
                8 * (start + row), expected=expected, found=f"{ends[row]}", way_out=_CUT, row=start + row
            )
        bounds[start + 1 : start + 1 + len(ends)] = ends
        before = int(ends[-1])
    return bounds * np.uint64(width)


def _loss(file: TokenFile, total: int) -> tuple[tuple[AlignedFile, ...], SideFile]:
    path = f"{file.path}.loss"
    name = os.path.basename(path)
    if not paths.is_file(path):
        return (), SideFile.absent(name)
    with opened_side(path) as side:
        if side.size != total:
            raise side.error(
                min(side.size, total),
                expected=f"{total} bytes, one for each token",
                found=f"{side.size} bytes",
                way_out=_CUT,
            )
        return (AlignedFile("loss_mask", "|u1", name),), side.entry(file.path)
