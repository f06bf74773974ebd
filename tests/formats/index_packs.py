"""Packs of Lhotse's indexes, written without it: those of lhotse.index_pack.write_index_pack, keys apart."""

from __future__ import annotations

import hashlib
import itertools
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from tests.formats.lhotse_indexes import index_of_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEADER, COLLECTION, SEQUENCE, SEGMENT = 256, 72, 16, 56


@dataclass(frozen=True)
class Packed:
    """A collection: files with their indexes, paths alone (an index of None), or arrays."""

    kind: str
    files: Sequence[tuple[str, bytes | None]] = ()
    arrays: Sequence[Sequence[int]] = field(default=(), kw_only=True)

    @property
    def flags(self) -> int:
        return 2 if self.arrays else int(all(index is None for _, index in self.files) and bool(self.files))


def of_lines(*paths: Path, kind: str = "jsonl") -> Packed:
    """Return a collection of files of JSON lines."""
    return Packed(kind, [(str(path), index_of_lines(path.read_bytes())) for path in paths])


def pack_bytes(*collections: Packed) -> bytes:
    """Return a pack; each file is a segment of its own."""
    segments: list[tuple[str, bytes, int, int, int]] = []
    sequences: list[tuple[int, int]] = []
    rows: list[tuple[int, int, int, str, int]] = []
    for collection in collections:
        first, records = len(sequences), 0
        for path, index in collection.files:
            payload = bytes(8) if index is None else index
            count = len(payload) // 8
            records += count - 1
            size = 0 if index is None else int.from_bytes(index[-8:], "little")
            sequences.append((len(segments), records))
            segments.append((path, payload, int(index is None), count, size))
        for array in collection.arrays:
            records += len(array)
            sequences.append((len(segments), records))
            segments.append(("", np.array(array, "<u4").tobytes(), 2, len(array), 0))
        rows.append((first, len(sequences) - first, records, collection.kind, collection.flags))
    return _bytes_of(_layout(collections), rows, sequences, segments)


def _layout(collections: Sequence[Packed]) -> bytes:
    hasher = hashlib.sha256()
    for number, collection in enumerate(collections):
        hasher.update(bytes([number]) * 32 + bytes([2 if collection.arrays else 1 - collection.flags]))
        hasher.update(struct.pack("<Q", len(collection.files) + len(collection.arrays)))
        for path, _ in collection.files:
            hasher.update(struct.pack("<Q", len(path.encode())) + path.encode())
        for array in collection.arrays:
            hasher.update(struct.pack("<Q", len(array)))
    return hasher.digest()


def _bytes_of(
    layout: bytes,
    rows: list[tuple[int, int, int, str, int]],
    sequences: list[tuple[int, int]],
    segments: list[tuple[str, bytes, int, int, int]],
) -> bytes:
    texts, places = b"", {}
    for text in itertools.chain((kind for *_, kind, _ in rows), (path for path, *_ in segments)):
        if text not in places:
            places[text] = len(texts)
            texts += text.encode()
    begins = [HEADER]
    for count, size in zip(
        (len(rows), len(sequences), len(segments)), (COLLECTION, SEQUENCE, SEGMENT), strict=True
    ):
        begins.append(begins[-1] + count * size)
    strings = begins[3]
    payloads = strings + len(texts) + -(strings + len(texts)) % 8
    total = sum(len(payload) for _, payload, *_ in segments)
    version = 3 if any(flags == 2 for *_, flags in rows) else 2
    counts = [
        *zip(begins, (len(rows), len(sequences), len(segments), len(texts)), strict=True),
        (payloads, total),
    ]
    out = struct.pack("<8sII10Q32s", b"IDXPACK2", version, HEADER, *itertools.chain(*counts), layout)
    out = out.ljust(HEADER, b"\0")
    for number, (first, count, records, kind, flags) in enumerate(rows):
        key = bytes([number]) * 32
        out += struct.pack("<32sQQQQII", key, first, count, records, strings + places[kind], len(kind), flags)
    out += b"".join(struct.pack("<QQ", *row) for row in sequences)
    at = payloads
    for path, payload, flags, count, size in segments:
        length = len(path.encode())
        crc = zlib.crc32(payload)
        out += struct.pack(
            "<QQIIQQQII", strings + places[path], at, length, flags, count, size, len(payload), crc, 0
        )
        at += len(payload)
    out += texts.ljust(payloads - strings, b"\0")
    return out + b"".join(payload for _, payload, *_ in segments)
