"""Files of nothing but tokens, and what lies beside them.

Documents are divided by tokens, the last of each, the first, or both: files of nanoGPT have no header, those
of llm.c and modded-nanogpt have one.

OLMo and Dolma name files ``.npy``, and write tokens without any header, with ``.csv.gz`` beside. Each line of
it has the first token of a document and the one after its last, and maybe more. Label masks, one byte for
each token, lie beside under the name ``labels_mask`` instead of ``token_ids``.

datatrove and nanotron write ``.ds``. ``.ds.index`` has the end of each document in tokens, ``.ds.metadata``
the bytes of a token and the number of tokens, ``.ds.loss`` a byte for each token, 1 if it is in the loss.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xxhash

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.token_file import CHUNK_BYTES, damage, opened_side
from seekable.formats.tokens.words import AlignedFile, SideFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import Side, TokenFile, TokenOptions
    from seekable.index.finder import Survey

__all__ = [
    "CSV_SUFFIX",
    "LLM_C",
    "LLM_C_EVALUATION",
    "ends_compared",
    "is_mask",
    "survey_datatrove",
    "survey_headerless",
    "survey_llm_c",
    "survey_olmo",
    "survey_plain",
]


_DIGEST_BYTES = 8

LLM_C = {20240520: (1, "<u2"), 20240801: (7, "<u4")}
"""The version and the type of tokens, by the first number of the header of llm.c."""

LLM_C_EVALUATION = 20240522
"""The first number of files of questions for an evaluation, which are no corpus."""

_HEADER_BYTES = 1024


class _TokenEnds(NamedTuple):
    """The documents of a file, divided by a token."""

    bounds: NDArray[np.uint64]
    """The first byte of each document, and the end of the last one: uint64 (documents + 1,)."""

    digest: bytes
    """The digest of all tokens, of 8 bytes."""

    warnings: tuple[str, ...]
    """The texts of warnings about the file."""


def _ends_by_tokens(file: TokenFile, first: int, dtype: str) -> _TokenEnds:
    """Return the documents of a file that has nothing but tokens from a byte on.

    With ``eos`` a document ends after each such token, with ``bos`` one begins at each, with both one begins
    at each ``bos`` that follows an ``eos``. Tokens after the last end, and before the first beginning, are
    a document too. Without either the file is one document, and is not read.

    Args:
        file: the file.
        first: the byte of its first token.
        dtype: the type of tokens.

    Raises:
        CorruptTokens: the file ends within a token.
        InvalidArgument: ``eos`` or ``bos`` is no value of the type.
    """
    options, width = file.options, np.dtype(dtype).itemsize
    _check_tokens_fit(options, dtype, file.path)
    if (file.size - first) % width:
        raise file.torn(first, dtype)
    total = (file.size - first) // width
    if options.eos is None and options.bos is None:
        bounds = np.array([first, file.size] if total else [first], np.uint64)
        return _TokenEnds(bounds, bytes(_DIGEST_BYTES), ())
    starts, digest = _document_starts(file, first, dtype)
    cuts = starts[(starts > 0) & (starts < total)]
    ends = [0, total] if total else [0]
    bounds = np.concatenate([ends[:1], cuts, ends[1:]]).astype(np.uint64)
    bounds *= np.uint64(width)
    bounds += np.uint64(first)
    warnings: tuple[str, ...] = ()
    if total and not len(starts):
        warnings = (f"none of its {total:,} tokens is {_named(options)}, so that they are one document",)
    return _TokenEnds(bounds, digest, warnings)


def ends_compared(file: TokenFile, first: int, dtype: str, *, documents: int, where: str) -> tuple[str, ...]:
    """Return the warning if a token divides a file into other documents than the file beside it.

    The file beside is right: a document may lack its last token, or have that token within.

    Args:
        file: the file, whose tokens are read if the user named ``eos`` or ``bos``.
        first: the byte of its first token.
        dtype: the type of tokens.
        documents: the number of documents, as the file beside says.
        where: the name of that file.
    """
    options = file.options
    _check_tokens_fit(options, dtype, file.path)
    if options.eos is None and options.bos is None:
        return ()
    found = len(_ends_by_tokens(file, first, dtype).bounds) - 1
    if found == documents:
        return ()
    text = (
        f"{where} says that there are {documents:,} documents, which are delivered, and by {_named(options)} "
        f"there would be {found:,}"
    )
    return (text,)


def _check_tokens_fit(options: TokenOptions, dtype: str, path: str) -> None:
    """Check that ``eos`` and ``bos`` can be tokens.

    Raises:
        InvalidArgument: one is no value of the type of tokens.
    """
    limits = np.iinfo(dtype)
    for name, token in (("eos", options.eos), ("bos", options.bos)):
        if token is not None and token > limits.max:
            message = (
                f"{name}={token} is no token of {path!r}, whose tokens are {limits.dtype.name}, at most "
                f"{limits.max}: say another {name}=, or the right dtype="
            )
            raise InvalidArgument(message)


def _document_starts(file: TokenFile, first: int, dtype: str) -> tuple[NDArray[np.int64], bytes]:
    """Return the indices of tokens at which documents start; the end of the file may be one."""
    eos, bos = file.options.eos, file.options.bos
    hasher, found, at, last = xxhash.xxh3_64(), [], 0, -1
    for tokens in file.chunks(first, dtype):
        hasher.update(tokens.view(np.uint8).data)
        if bos is None:
            found.append(np.flatnonzero(tokens == eos) + (at + 1))
        else:
            starts = np.flatnonzero(tokens == bos)
            if eos is not None:
                before = tokens[starts - 1] == eos
                if len(starts) and starts[0] == 0:
                    before[0] = last == eos
                starts = starts[before]
            found.append(starts + at)
        at += len(tokens)
        last = int(tokens[-1])
    starts = np.concatenate(found) if found else np.zeros(0, np.int64)
    return starts, hasher.intdigest().to_bytes(_DIGEST_BYTES, "little")


def _named(options: TokenOptions) -> str:
    given = [f"{name}={token}" for name, token in (("eos", options.eos), ("bos", options.bos))
             if token is not None]  # fmt: skip
    return " with ".join(given)


def survey_headerless(file: TokenFile) -> Survey:
    """Return the documents of a file without a header.

    Raises:
        InvalidArgument: the user named no type of tokens.
        CorruptTokens: the file ends within a token.
    """
    return survey_plain(file, 0, _said_dtype(file))


def _said_dtype(file: TokenFile) -> str:
    """Return the type of tokens that the user named, of a file that does not say it.

    Raises:
        InvalidArgument: the user named none.
    """
    if file.options.dtype is None:
        message = (
            f"{file.path!r} does not say of which type its tokens are: say it, and where documents "
            f"end: sk.formats.Tokens(dtype='uint16', eos=50256) or the like"
        )
        raise InvalidArgument(message)
    return file.options.dtype


def survey_llm_c(file: TokenFile, magic: int) -> Survey:
    """Return the documents of a file with the header of llm.c.

    Args:
        file: the file.
        magic: the first number of its header.

    Raises:
        CorruptTokens: the header says another number of tokens than the file has.
        UnsupportedFormat: it is a file of questions, or of another version.
        InvalidArgument: the user named another type of tokens.
    """
    if magic == LLM_C_EVALUATION:
        message = (
            f"{file.path!r}: byte 0: {magic} begins a file of questions of llm.c (HellaSwag), which are no "
            f"documents: open files that begin with {' or '.join(map(str, LLM_C))}"
        )
        raise UnsupportedFormat(message)
    version, dtype = LLM_C[magic]
    header = np.frombuffer(file.source.read(0, _HEADER_BYTES), np.uint8)
    if len(header) < _HEADER_BYTES:
        raise damage(
            file.path,
            len(header),
            expected=f"a header of {_HEADER_BYTES} bytes, as llm.c writes it",
            found="the end of the file",
            way_out="the file is cut: copy it again",
        )
    _, found_version, count = header[:12].view("<i4").tolist()
    if found_version != version:
        message = (
            f"{file.path!r}: byte 4: the header of llm.c is of version {found_version}, and {magic} has "
            f"version {version}: write the file with the data scripts of llm.c or modded-nanogpt"
        )
        raise UnsupportedFormat(message)
    dtype = file.dtype_of(dtype, where="its header")
    size = _HEADER_BYTES + count * np.dtype(dtype).itemsize
    if count < 0:
        way_out = "the file is damaged: copy it again"
        raise damage(file.path, 8, expected="0 tokens or more", found=f"{count}", way_out=way_out)
    if size != file.size:
        raise damage(
            file.path,
            min(size, file.size),
            expected=f"{size} bytes, as the header says of its {count} tokens",
            found=f"{file.size} bytes",
            way_out="the file is cut or damaged: copy it again",
        )
    return survey_plain(file, _HEADER_BYTES, dtype)


def survey_plain(file: TokenFile, first: int, dtype: str) -> Survey:
    """Return the documents of a file that has nothing but tokens from a byte on.

    Raises:
        CorruptTokens: the file ends within a token.
        InvalidArgument: ``eos`` or ``bos`` is no value of the type.
    """
    ends = _ends_by_tokens(file, first, dtype)
    schema = TokenSchema(dtype, first=first, warnings=ends.warnings)
    return token_survey(ends.bounds, schema, digest=ends.digest)


CSV_SUFFIX = ".csv.gz"
"""The end of the name of the file that has the ends of documents, instead of ``.npy``."""

_TOKENS, _MASK = "token_ids", "labels_mask"
"""The parts of the names of files of tokens, and of label masks, by which they belong together."""

_MOST_LINE_BYTES = 1 << 16
_MOST_EMPTY = 1 << 20
"""The most documents without a token: a file of lines that lie could else fill the memory."""

_OLMO_CUT = "the file is cut or damaged, or of other tokens: copy both files again"


def survey_olmo(file: TokenFile) -> Survey:
    """Return the documents of a file without a header: as ``.csv.gz`` says, else those between end tokens.

    Raises:
        CorruptTokens: one of the files is torn or damaged, or they do not belong together.
        InvalidArgument: the user named no type of tokens.
    """
    dtype = _said_dtype(file)
    width = np.dtype(dtype).itemsize
    total = file.size // width
    path, beside = file.sibling(CSV_SUFFIX), []
    if paths.is_file(path):
        if file.size % width:
            raise file.torn(0, dtype)
        with opened_side(path) as side:
            bounds = _csv_bounds(side, total, file.path) * np.uint64(width)
            beside.append(side.entry(file.path))
        digest = xxhash.xxh3_64_digest(bounds.tobytes())
        where = os.path.basename(path)
        warnings = ends_compared(file, 0, dtype, documents=len(bounds) - 1, where=where)
    else:
        beside.append(SideFile.absent(os.path.basename(path)))
        ends = _ends_by_tokens(file, 0, dtype)
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
    path = os.path.join(os.path.dirname(file.path), name.replace(_TOKENS, _MASK))
    expected = f"{total} bytes, one for each token of {file.path!r}"
    aligned, mask = _mask(file, path, total, ("label_mask", "|b1"), expected=expected, way_out=_OLMO_CUT)
    return aligned, (mask,)


def _csv_bounds(side: Side, total: int, path: str) -> NDArray[np.uint64]:
    """Return the first token of each document, and the number of all tokens."""
    bounds = array("Q", [0])
    for at, start, end in _lines(side):
        if start != bounds[-1] or not start <= end <= total or len(bounds) > total + _MOST_EMPTY:
            raise side.error(
                at,
                expected=f"a document from token {bounds[-1]} on, to one of the {total} tokens of {path!r}",
                found=f"tokens {start} to {end} in line {len(bounds)}",
                way_out=_OLMO_CUT,
                row=len(bounds) - 1,
            )
        bounds.append(end)
    if bounds[-1] != total:
        raise damage(
            side.path,
            side.size,
            expected=f"documents up to token {total}, where {path!r} ends",
            found=f"{len(bounds) - 1} up to token {bounds[-1]}",
            way_out=_OLMO_CUT,
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
            raise side.error(side.file.tell(), expected=expected, found=found, way_out=_OLMO_CUT) from None


def _numbers(side: Side, fields: list[str], at: int) -> tuple[int, int]:
    """Return the first two fields of a line, which are numbers of tokens."""
    first = [field for field in fields[:2] if field.isascii() and field.isdigit() and len(field) < 20]  # noqa: PLR2004
    if len(first) < 2:  # noqa: PLR2004
        expected = "START,END, the tokens of a document"
        raise side.error(at, expected=expected, found=f"{','.join(fields)[:80]!r}", way_out=_OLMO_CUT)
    return int(first[0]), int(first[1])


_STEP = CHUNK_BYTES // 8
_DTYPES = {2: "<u2", 4: "<u4"}
"""The types of tokens by their bytes."""

_MOST_METADATA_BYTES = 1 << 16

_DATATROVE_CUT = "the file is cut, or of other tokens: copy all files of the dataset again"


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
        bounds = _index_bounds(side, np.dtype(dtype).itemsize)
        beside.append(side.entry(file.path))
        where, digest = os.path.basename(side.path), side.digest()
    warnings = ends_compared(file, 0, dtype, documents=len(bounds) - 1, where=where)
    path, expected = f"{file.path}.loss", f"{total} bytes, one for each token"
    aligned, loss = _mask(file, path, total, ("loss_mask", "|u1"), expected=expected, way_out=_DATATROVE_CUT)
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
        raise side.error(at, expected=expected, found=f"{first[:60]!r}", way_out=_DATATROVE_CUT)
    return int(found)


def _last_end(side: Side) -> int:
    """Return the number of tokens, which is the end of the last document."""
    if side.size % 8:
        at = side.size // 8 * 8
        found = f"the end of the file after {side.size % 8}"
        raise side.error(at, expected="an end of 8 bytes", found=found, way_out=_DATATROVE_CUT)
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
            way_out=_DATATROVE_CUT,
        )
    return _DTYPES[width]


def _index_bounds(side: Side, width: int) -> NDArray[np.uint64]:
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
                8 * (start + row),
                expected=expected,
                found=f"{ends[row]}",
                way_out=_DATATROVE_CUT,
                row=start + row,
            )
        bounds[start + 1 : start + 1 + len(ends)] = ends
        before = int(ends[-1])
    return bounds * np.uint64(width)


def _mask(
    file: TokenFile, path: str, total: int, array: tuple[str, str], *, expected: str, way_out: str
) -> tuple[tuple[AlignedFile, ...], SideFile]:
    """Return an array beside a file that has a byte for each token, and what the schema keeps of it.

    Args:
        file: the file of tokens.
        path: the path of the array, which need not be there.
        total: the number of tokens.
        array: the name of the array in records, and its type.
        expected: the size in words, for the error.
        way_out: the advice of the error.

    Raises:
        CorruptTokens: the array has another size.
    """
    name = os.path.basename(path)
    if not paths.is_file(path):
        return (), SideFile.absent(name)
    with opened_side(path) as side:
        if side.size != total:
            found = f"{side.size} bytes"
            raise side.error(min(side.size, total), expected=expected, found=found, way_out=way_out)
        return (AlignedFile(*array, name),), side.entry(file.path)
