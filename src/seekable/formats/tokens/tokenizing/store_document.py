"""The document of a token store: ``tokens.json``, which is written when all parts are whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash

from seekable._lazy import lazy
from seekable.errors import CorruptState
from seekable.state.canonical import decode_names, encode_names
from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    from seekable.storage import paths
else:
    paths = lazy("seekable.storage.paths")

__all__ = [
    "DOCUMENT",
    "EDGE_BYTES",
    "FACTS",
    "HIDDEN_DOCUMENT",
    "SOURCE_RUN",
    "TOKENIZER",
    "VERSION",
    "PartFacts",
    "SourceFacts",
    "StoreDocument",
    "TokenizerFacts",
    "decode_facts",
    "document_of",
    "edges_digest",
    "encode_facts",
    "encoded_document",
    "read_document",
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
    """By name, the dtype of each array beside the tokens, such as ``"|u1"``."""

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
    """The id behind each document; None for none."""

    bos: int | None
    """The id before each document; None for none."""

    column: str | None
    """The column of the texts, or of the lists of ids."""

    aligned: dict[str, str]
    """By name, the dtype of each array that has an element for each token."""

    tokenizer: TokenizerFacts | None
    """The tokenizer; None where the records had ids."""

    source: SourceFacts

    parts: list[PartFacts]
    """The parts, in the order of their documents; none of samples of Forager."""

    sample_size: int | None = None
    """The number of tokens of a sample of Forager; None for documents as they are."""

    dropped: int = 0
    """The number of tokens behind the last whole sample, which were left out."""


def encode_facts(facts: PartFacts) -> bytes:
    """Return the content of the file with the facts of a part: a line of JSON, and a line with its digest."""
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
    """Return the document of a folder of documents, or of samples of Forager; None if it has neither.

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
    """Return the digest of the ends of a file, by which another one is recognised without reading all of it.

    Args:
        head: its first `EDGE_BYTES`, fewer of a smaller file.
        tail: its last `EDGE_BYTES`, of which those in ``head`` are left out.
    """
    return xxhash.xxh3_64_hexdigest(head + tail)


class _Version(msgspec.Struct):
    seekable_tokens: int
