"""Files of nothing but tokens, whose documents are divided by tokens: the last of each, the first, or both.

Those of nanoGPT have no header, those of llm.c and modded-nanogpt have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xxhash

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tokens.token_file import TokenFile, TokenOptions
    from seekable.index.finder import Survey

__all__ = [
    "LLM_C",
    "LLM_C_EVALUATION",
    "ends_by_tokens",
    "ends_compared",
    "said_dtype",
    "survey_headerless",
    "survey_llm_c",
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


def ends_by_tokens(file: TokenFile, first: int, dtype: str) -> _TokenEnds:
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
    found = len(ends_by_tokens(file, first, dtype).bounds) - 1
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
    return survey_plain(file, 0, said_dtype(file))


def said_dtype(file: TokenFile) -> str:
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
    ends = ends_by_tokens(file, first, dtype)
    schema = TokenSchema(dtype, first=first, warnings=ends.warnings)
    return token_survey(ends.bounds, schema, digest=ends.digest)
