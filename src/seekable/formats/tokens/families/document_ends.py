"""Documents that are divided by tokens alone: by the last token of each, by the first one, or by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tokens.options import TokenOptions
    from seekable.formats.tokens.token_file import TokenFile

__all__ = ["TokenEnds", "check_tokens_fit", "ends_by_tokens", "ends_compared"]

_DIGEST_BYTES = 8


class TokenEnds:
    """The documents of a file, divided by a token."""

    __slots__ = ("bounds", "digest", "warnings")

    def __init__(self, bounds: NDArray[np.uint64], digest: bytes, warnings: tuple[str, ...]) -> None:
        self.bounds = bounds
        """The first byte of each document, and the end of the last one: uint64 (documents + 1,)."""
        self.digest = digest
        """The digest of all tokens, of 8 bytes."""
        self.warnings = warnings
        """The texts of warnings about the file."""


def ends_by_tokens(file: TokenFile, first: int, dtype: str) -> TokenEnds:
    """Return the documents of a file that has nothing but tokens from a byte on.

    With ``eos`` a document ends behind each such token, with ``bos`` one begins at each, with both one begins
    at each ``bos`` that follows an ``eos``. Tokens behind the last end, and before the first beginning, are
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
    check_tokens_fit(options, dtype, file.path)
    if (file.size - first) % width:
        raise file.torn(first, dtype)
    total = (file.size - first) // width
    if options.eos is None and options.bos is None:
        bounds = np.array([first, file.size] if total else [first], np.uint64)
        return TokenEnds(bounds, bytes(_DIGEST_BYTES), ())
    starts, digest = _document_starts(file, first, dtype)
    cuts = starts[(starts > 0) & (starts < total)]
    ends = [0, total] if total else [0]
    bounds = np.concatenate([ends[:1], cuts, ends[1:]]).astype(np.uint64)
    bounds *= np.uint64(width)
    bounds += np.uint64(first)
    warnings: tuple[str, ...] = ()
    if total and not len(starts):
        warnings = (f"none of its {total:,} tokens is {_named(options)}, so that they are one document",)
    return TokenEnds(bounds, digest, warnings)


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
    check_tokens_fit(options, dtype, file.path)
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


def check_tokens_fit(options: TokenOptions, dtype: str, path: str) -> None:
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
    """Return the numbers of the tokens at which documents start, the end of the file maybe among them."""
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
