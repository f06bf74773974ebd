"""Token stores: their document ``tokens.json``, the facts of their parts, and a check before a part is read.

``write_tokens`` and ``sk.tokenize`` write them; the document is written last, when all parts are whole.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, NoReturn, final

import msgspec
import numpy as np
import xxhash

from seekable._spans import SPAN, is_spans, type_name, type_of
from seekable.errors import CorruptState, DataNotFound, InvalidArgument
from seekable.formats.tokens.token_file import damage, opened_side
from seekable.formats.tokens.words import AlignedFile, TokenSchema, token_survey
from seekable.state.canonical import decode_names, encode_names
from seekable.storage import paths
from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.token_file import Side, TokenFile
    from seekable.index.finder import SideFile, Survey

__all__ = [
    "DOCUMENT",
    "EDGE_BYTES",
    "FACTS",
    "HIDDEN_DOCUMENT",
    "SOURCES",
    "SOURCE_RUN",
    "TOKENIZER",
    "VERSION",
    "PartFacts",
    "SourceFacts",
    "SpanFacts",
    "StoreDocument",
    "TokenizerFacts",
    "decode_facts",
    "document_of",
    "edges_digest",
    "encode_facts",
    "encoded_document",
    "is_part",
    "read_document",
    "read_sources",
    "survey_part",
    "unfinished",
    "write_document",
]

DOCUMENT = "tokens.json"
"""The name of the document in the folder of a store."""

HIDDEN_DOCUMENT = ".seekable-tokens.json"
"""The name of the document in a folder of samples of Forager, which has no other names than Forager's."""

TOKENIZER = "tokenizer.json"
"""The name of the copy of the tokenizer's file, beside the document."""

FACTS = "facts"
"""The suffix, without its dot, of the file with the `PartFacts` of a part."""

EDGE_BYTES = 64 << 10
"""The bytes of each end of a file that are compared when it is opened for the first time."""

SOURCE_RUN = np.dtype([("file", "<u4"), ("count", "<u4"), ("row", "<u8")])
"""A run of documents that come from consecutive rows of one file; file 4,294,967,295 stands for no file."""

VERSION = 1
"""The version of the store's form."""


class PartFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The description of one part: the files ``NAME.bin``, ``NAME.lengths``, ``NAME.sources`` and others."""

    documents: int

    tokens: int
    """The number of tokens, ids before and after documents included."""

    empty: int
    """The number of documents whose text gave no token."""

    largest: int
    """The largest id; -1 for a part without tokens."""

    digests: dict[str, str]
    """By suffix without its dot, the digest (xxh3, 128 bits) of each file but the one with these facts."""

    edges: dict[str, str] = {}
    """By suffix, the digest of the ends of the files of tokens and of arrays beside; see `edges_digest`."""

    dtype: str = ""
    """The dtype of the ids, such as ``"<u2"``."""

    aligned: dict[str, str] = {}
    """By name, the dtype of each array beside the tokens, such as ``"|u1"``; ``"spans"`` for spans."""

    trained: int | None = None
    """The number of tokens whose element of "loss_mask" is not 0; None for a part without that array."""

    spans: dict[str, tuple[int, int]] = {}
    """By name, the number of spans, and of those that were left out because they have no token."""

    name: str = ""
    """The name of its files without their suffix, such as ``part-000000``; empty beside the part itself."""


class TokenizerFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The description of the tokenizer that made the ids."""

    engine: str
    """The package, such as ``"hf"`` or ``"tiktoken"``; ``"function"`` for a function of the user."""

    digest: str
    """The digest of what decides the ids."""

    name: str = ""
    """The name of the encoding, of tiktoken; else empty."""

    library: str = ""
    """The package with its version; empty for a function."""

    file: str | None = None
    """The name of the copy of the tokenizer's file in the folder of the store; None for none."""

    compared: dict[str, Any] | None = None
    """The result of the comparison with another engine; None if none was required."""


class SpanFacts(msgspec.Struct, frozen=True):
    """The description of spans beside the tokens."""

    units: str
    """What the spans of records counted: "characters" or "tokens"."""

    labels: list[str]
    """The names of the labels 0, 1 and so on; none where records have integers."""

    spans: int
    """The number of spans."""

    without_token: int
    """The number of spans of records that were left out, because they have no token."""


class SourceFacts(msgspec.Struct, frozen=True):
    """The description of the records that became documents."""

    fingerprint: str
    """The fingerprint of the dataset or stream."""

    rows: int | None
    """The number of records, holes included; None for a stream, which does not say it."""

    files: list[str]
    """The paths of the files that records come from, as the numbers in ``.sources`` count them."""


class StoreDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of ``tokens.json``, field by field."""

    seekable_tokens: int
    """The version of the store's form."""

    dtype: str
    """The dtype of the ids, such as ``"uint16"``; little-endian."""

    documents: int

    tokens: int

    empty: int
    """The number of documents whose text gave no token."""

    vocabulary: int | None
    """The largest id that can occur, plus 1; None where that is not known."""

    eos: int | None
    """The id after each document; None for none."""

    bos: int | None
    """The id before each document; None for none."""

    column: str | None
    """The column of the texts, or of the lists of ids."""

    aligned: dict[str, str]
    """By name, the dtype of each array that has an element for each token; "spans" for spans."""

    tokenizer: TokenizerFacts | None
    """The tokenizer; None where the records had ids."""

    source: SourceFacts

    parts: list[PartFacts]
    """The parts, in the order of their documents; none of samples of Forager."""

    sample_size: int | None = None
    """The number of tokens of a sample of Forager; None for documents as they are."""

    trained: int | None = None
    """The number of tokens in the loss; None where no array "loss_mask" says it."""

    dropped: int = 0
    """The number of tokens after the last whole sample, which were left out."""

    spans: dict[str, SpanFacts] = {}
    """By name, the spans beside the tokens."""


def encode_facts(facts: PartFacts) -> bytes:
    """Return the file of a part's facts: a line of JSON, and a line with its digest."""
    line = encode_names(facts, indented=False)
    return line + xxhash.xxh3_64_hexdigest(line).encode() + b"\n"


def decode_facts(data: bytes) -> PartFacts:
    """Return the facts of a part.

    Raises:
        ValueError: the bytes are not as `encode_facts` makes them.
    """
    line, _, digest = data.removesuffix(b"\n").partition(b"\n")
    if not data.endswith(b"\n") or digest.decode("latin-1") != xxhash.xxh3_64_hexdigest(line + b"\n"):
        message = "the digest in line 2 is not that of line 1"
        raise ValueError(message)
    return decode_names(line, PartFacts)


def read_document(folder: str, name: str = DOCUMENT) -> StoreDocument | None:
    """Return the document of a store; None if the folder has none.

    Args:
        folder: the folder of the store.
        name: the name of the document.

    Raises:
        CorruptState: it is damaged, or of another version.
        OSError: it cannot be read.
    """
    path = os.path.join(folder, name)
    try:
        data = paths.read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        version = decode_names(data, _Version).seekable_tokens
        if version == VERSION:
            return decode_names(data, StoreDocument)
    except ValueError as error:
        message = (
            f"{path!r}, the document of a token store, cannot be read ({error}): remove it, and repeat the "
            f"call that wrote the store, which writes it again"
        )
        raise CorruptState(message) from error
    message = (
        f"{path!r} has version {version}, and this seekable reads version {VERSION}: use the seekable that "
        f"wrote it"
    )
    raise CorruptState(message)


def document_of(folder: str) -> StoreDocument | None:
    """Return the document in the folder of a token store, or of Forager's samples; None if there is none.

    Raises:
        CorruptState: it is damaged, or of another version.
        OSError: it cannot be read.
    """
    return read_document(folder) or read_document(folder, HIDDEN_DOCUMENT)


def write_document(folder: str, document: StoreDocument, name: str = DOCUMENT) -> None:
    """Write the document of a store atomically; see `read_document`."""
    write_atomically(os.path.join(folder, name), encoded_document(document))


def encoded_document(document: StoreDocument) -> bytes:
    """Return the content of the file of a document."""
    return encode_names(document, indented=True)


def edges_digest(head: bytes, tail: bytes) -> str:
    """Return the digest of both ends of a file, which tells it from another without reading all.

    Args:
        head: its first `EDGE_BYTES`, fewer of a smaller file.
        tail: its last `EDGE_BYTES`, of which those in ``head`` are left out.
    """
    return xxhash.xxh3_64_hexdigest(head + tail)


class _Version(msgspec.Struct):
    seekable_tokens: int


_LENGTHS = ".lengths"

SOURCES = ".sources"
"""The suffix of the file with the rows that documents come from."""

_AGAIN = "copy the store again, or remove the files of this part and repeat the call that wrote the store"


def is_part(path: str) -> bool:
    """Return True if the files beside a file of tokens make it part of a token store."""
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
        ``file`` (the index of a source file, or 4,294,967,295 for none), ``count`` (of documents) and
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
        whole = facts.tokens * np.dtype(dtype).itemsize, f"{facts.tokens} tokens as {np.dtype(dtype).name}"
        self._check_content(self._file.path, self._file.source.read, self._file.size, facts, "bin", whole)
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
        """Return how many tokens each document has, and the digest of what was read."""
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
        kind = type_of(dtype)
        if is_spans(kind):
            count = facts.spans[name][0]
            whole = count * SPAN.itemsize + 8 * (facts.documents + 1), f"{count} spans"
        else:
            whole = facts.tokens * kind.itemsize, f"{facts.tokens} tokens as {type_name(kind)}"
        with opened_side(self._file.sibling(f".{name}")) as side:
            self._check_content(side.path, side.read, side.size, facts, name, whole)
            self._beside.append(side.entry(self._file.path))
            return AlignedFile(name, dtype, os.path.basename(side.path))

    def _check_content(
        self,
        path: str,
        read: Callable[[int, int], bytes],
        size: int,
        facts: PartFacts,
        suffix: str,
        whole: tuple[int, str],
    ) -> None:
        """Check the size and the ends of a file.

        Args:
            path: the file.
            read: reads bytes of it, given the first one and how many.
            size: the number of its bytes.
            facts: the facts of its part.
            suffix: its suffix.
            whole: the number of bytes that it must have, and what these are, for the error.

        Raises:
            CorruptTokens: they are not as they were written.
        """
        expected_size, content = whole
        if size != expected_size:
            expected = f"{expected_size} bytes, of {content}"
            _fail(path, min(size, expected_size), expected, f"{size} bytes")
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
