"""The parts of a token store: what ``write_tokens`` and ``sk.tokenize`` write, checked before it is read."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, NoReturn, final

import msgspec
import numpy as np
import xxhash

from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.tokens.token_file import damage, opened_side
from seekable.formats.tokens.tokenizing.store_document import (
    DOCUMENT,
    EDGE_BYTES,
    FACTS,
    SOURCE_RUN,
    PartFacts,
    decode_facts,
    edges_digest,
    read_document,
)
from seekable.formats.tokens.words import AlignedFile, TokenSchema, token_survey
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.surveyor import SideFile, Survey

__all__ = ["SOURCES", "is_part", "read_sources", "survey_part", "unfinished"]

_LENGTHS = ".lengths"

SOURCES = ".sources"
"""The suffix of the file with the rows that documents come from."""

_AGAIN = "copy the store again, or remove the files of this part and repeat the call that wrote the store"


def is_part(path: str) -> bool:
    """Return True if a file of tokens is that of a part of a token store, by the files beside it."""
    stem = os.path.splitext(path)[0]
    return paths.is_file(f"{stem}.{FACTS}") and paths.is_file(stem + _LENGTHS)


def unfinished(folder: str) -> DataNotFound:
    """Return the error of a token store that has no ``tokens.json``."""
    message = (
        f"{folder!r} is a token store whose writing was not finished: it has no {DOCUMENT!r}, which is "
        f"written last. The same call of sk.tokenize or write_tokens goes on with it"
    )
    return DataNotFound(message)


def read_sources(path: str) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the rows that the documents of a part come from.

    Args:
        path: the file of tokens.

    Returns:
        The paths of the source files of the store, and the runs of documents: a structured array with
        ``file`` (the number of a source file, or 4,294,967,295 for none), ``count`` (of documents) and
        ``row`` (of the first one).

    Raises:
        CorruptTokens: the file of runs is not as it was written.
        DataNotFound: it is missing, or the store is not finished.
        CorruptState: ``tokens.json`` is damaged.
    """
    folder, name = os.path.split(path)
    document = read_document(folder)
    if document is None:
        raise unfinished(folder)
    known = _parts_of(folder).get(os.path.splitext(name)[0])
    with opened_side(os.path.splitext(path)[0] + SOURCES) as side:
        data = side.read(0, side.size)
        if known is None or xxhash.xxh3_128_hexdigest(data) != known.digests["sources"]:
            expected = f"the digest that {DOCUMENT!r} has of {side.size} bytes"
            raise side.error(0, expected=expected, found="another one", way_out=_AGAIN)
    return tuple(document.source.files), np.frombuffer(data, SOURCE_RUN)


def survey_part(file: TokenFile) -> Survey:
    """Return the documents of a part of a token store.

    Raises:
        DataNotFound: a file of the part is missing, or the store is not finished.
        CorruptTokens: a file of the part is cut, damaged, or of another part.
        InvalidArgument: the user named another type of tokens, or ids of ends.
    """
    return _Part(file).survey()


@final
class _Part:
    """The files of one part."""

    def __init__(self, file: TokenFile) -> None:
        self._file = file
        self._folder, name = os.path.split(file.path)
        self._name = os.path.splitext(name)[0]
        self._beside: list[SideFile] = []

    def survey(self) -> Survey:
        facts = self._facts()
        dtype = self._file.dtype_of(facts.dtype, where=repr(self._file.sibling(f".{FACTS}")))
        for option, given in (("eos", self._file.options.eos), ("bos", self._file.options.bos)):
            if given is not None:
                message = f"a token store says itself where documents end: leave out {option}={given}"
                raise InvalidArgument(message)
        lengths, digest = self._lengths(facts)
        self._check_content(self._file.path, self._file.source.read, self._file.size, facts, "bin", dtype)
        aligned = tuple(self._aligned(name, of_array, facts) for name, of_array in facts.aligned.items())
        bounds = np.zeros(len(lengths) + 1, np.uint64)
        np.cumsum(lengths * np.dtype(dtype).itemsize, out=bounds[1:].view(np.int64))
        schema = TokenSchema(dtype, aligned=aligned, beside=tuple(self._beside))
        return token_survey(bounds, schema, digest=digest)

    def _facts(self) -> PartFacts:
        """Return the facts of the part, which are those that the store has of it."""
        with opened_side(self._file.sibling(f".{FACTS}")) as side:
            try:
                facts = decode_facts(side.read(0, side.size))
            except ValueError as error:
                raise side.error(
                    0, expected="the facts of a part as JSON", found=str(error), way_out=_AGAIN
                ) from error
            self._beside.append(side.entry(self._file.path))
            known = _parts_of(self._folder).get(self._name)
            if known != facts:
                expected = f"the facts that {DOCUMENT!r} has of {self._name!r}"
                found = (
                    "none there" if known is None else "others: the part is of another store, or another part"
                )
                raise side.error(0, expected=expected, found=found, way_out=_AGAIN)
        return facts

    def _lengths(self, facts: PartFacts) -> tuple[Int64s, bytes]:
        """Return the number of tokens of each document, and the digest of what was read."""
        with opened_side(self._file.sibling(_LENGTHS)) as side:
            data = side.read(0, side.size)
            if len(data) != 4 * facts.documents:
                raise side.error(
                    min(len(data), 4 * facts.documents),
                    expected=f"{4 * facts.documents} bytes, 4 for each of {facts.documents} documents",
                    found=f"{len(data)} bytes",
                    way_out=_AGAIN,
                )
            lengths = np.frombuffer(data, "<u4").astype(np.int64)
            self._check_digest(side, data, facts)
            self._beside.append(side.entry(self._file.path))
            return lengths, side.digest()

    def _check_digest(self, side: Side, data: bytes, facts: PartFacts) -> None:
        found = xxhash.xxh3_128_hexdigest(data)
        if found != facts.digests["lengths"]:
            expected = f"the digest {facts.digests['lengths']} of {len(data)} bytes"
            raise side.error(0, expected=expected, found=found, way_out=_AGAIN)

    def _aligned(self, name: str, dtype: str, facts: PartFacts) -> AlignedFile:
        """Return a file of an array beside the tokens, which is checked."""
        with opened_side(self._file.sibling(f".{name}")) as side:
            self._check_content(side.path, side.read, side.size, facts, name, dtype)
            self._beside.append(side.entry(self._file.path))
            return AlignedFile(name, dtype, os.path.basename(side.path))

    def _check_content(
        self,
        path: str,
        read: Callable[[int, int], bytes],
        size: int,
        facts: PartFacts,
        suffix: str,
        dtype: str,
    ) -> None:
        """Check the size and the ends of a file with one element for each token.

        Raises:
            CorruptTokens: they are not as they were written.
        """
        whole = facts.tokens * np.dtype(dtype).itemsize
        if size != whole:
            expected = f"{whole} bytes, of {facts.tokens} tokens as {np.dtype(dtype).name}"
            _fail(path, min(size, whole), expected, f"{size} bytes")
        head = read(0, min(size, EDGE_BYTES))
        last = max(len(head), size - EDGE_BYTES)
        found = edges_digest(head, read(last, size - last) if last < size else b"")
        if found != facts.edges[suffix]:
            expected = f"ends of the digest {facts.edges[suffix]}"
            _fail(path, 0, expected, f"{found}: the file is damaged or of another part")


def _fail(path: str, offset: int, expected: str, found: str) -> NoReturn:
    raise damage(path, offset, expected=expected, found=found, way_out=_AGAIN)


def _parts_of(folder: str) -> dict[str, PartFacts]:
    """Return the facts of all parts of a store by name, each without its name.

    Raises:
        DataNotFound: the store is not finished.
        CorruptState: its document is damaged.
    """
    path = os.path.join(folder, DOCUMENT)
    if not paths.is_file(path):
        raise unfinished(folder)
    status = paths.status(path)
    return _cached_parts(folder, status.size, status.mtime_ns)


@functools.lru_cache(maxsize=4)
def _cached_parts(folder: str, _size: int, _mtime_ns: int) -> dict[str, PartFacts]:
    document = read_document(folder)
    if document is None:
        raise unfinished(folder)
    return {part.name: msgspec.structs.replace(part, name="") for part in document.parts}
