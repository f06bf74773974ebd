"""Finished parts of files, kept in the index folder until their files are in the index.

They are those of large objects, which a build that was killed need not fetch again, and those that the
workers of a user's executor scanned. Such a worker writes its result into the index folder, where this
process reads it when its turn comes, and answers with a few bytes. A worker that does not see the folder, or
whose disk is full, answers with the result itself.

A file holds the parts of one batch, and is named by what decides them: paths, versions and ranges of bytes.
So a task that runs twice writes the same file, and a later build finds it. The file begins with the digest of
all that follows; a damaged one is scanned again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.index.build.scan import PartScan, PartSummary, ScanBatch, scan_batch
from seekable.parallel.pickling import deserialized, serialized
from seekable.storage.far import far
from seekable.storage.files import TEMPORARY_SUFFIX, create_new, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future

_WORD = np.dtype("<u8")
_HEADER_WORDS = 12
"""The identity of the file, begin, node, whether there is a number of bytes of content, that number, and the
lengths of what follows: starts in words; pieces, points, schema and digests of units in bytes."""

_KIND = b"2 "
"""The kind of these files, a part of their names: one of another kind is not found."""

_SENT_BYTES = 32_000
"""Results of up to this size are sent, where no later build profits from a file."""

_PART_BYTES_ABOUT = 150
"""The bytes of a part without its offsets, when it is sent."""

_TOUCH_SECONDS = 600.0
"""The next commit takes a temporary file that nobody touched for an hour for that of a killed build."""


@final
class KeptParts:
    """The finished parts of one batch."""

    __slots__ = ("folder", "name")

    def __init__(self, folder: str, batch: ScanBatch) -> None:
        """Name the parts; nothing is read or written.

        Args:
            folder: the index folder.
            batch: the parts.
        """
        hasher = xxhash.xxh3_64(_KIND + batch.scanner.name.encode())
        for job in batch.jobs:
            version = job.path, str(job.size), str(job.mtime_ns), str(job.start), str(job.stop)
            hasher.update(b"\0\0" + "\0".join(version).encode("utf-8", "surrogateescape"))
        self.folder = folder
        """The index folder."""
        self.name = f"part-{hasher.hexdigest()}.bin"
        """The name of the file."""

    def load(self) -> list[PartScan] | None:
        """Return the parts; None if they are not kept, or damaged."""
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        if len(data) < _WORD.itemsize or len(data) % _WORD.itemsize:
            return None
        body = memoryview(data)[_WORD.itemsize :]
        if xxhash.xxh3_64_intdigest(body) != int.from_bytes(data[: _WORD.itemsize], "little"):
            return None
        return list(_decoded(body))

    def save(self, scans: Sequence[PartScan]) -> bool:
        """Keep the parts; return False where they cannot be, because the disk is full for instance."""
        body = b"".join(piece for scan in scans for piece in _encoded(scan))
        digest = xxhash.xxh3_64_intdigest(body).to_bytes(_WORD.itemsize, "little")
        try:
            write_atomically(self._path, [digest, body])
        except OSError:
            return False
        return True

    def discard(self) -> None:
        """Remove the file of these parts, if it is there."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    @property
    def _path(self) -> str:
        return os.path.join(self.folder, self.name)


def _encoded(scan: PartScan) -> Iterator[bytes]:
    texts = scan.pieces, scan.points, scan.schema, scan.units
    size = scan.content_size
    lengths = len(scan.starts), *map(len, texts)
    yield np.array(
        [*scan.identity, scan.begun_ns, scan.node, size is not None, size or 0, *lengths], _WORD
    ).tobytes()
    yield scan.starts.astype(_WORD, copy=False).tobytes()
    joined = b"".join(texts)
    yield joined + bytes(-len(joined) % _WORD.itemsize)


def _decoded(body: memoryview) -> Iterator[PartScan]:
    at = 0
    while at < len(body):
        header = np.frombuffer(body, _WORD, _HEADER_WORDS, at).tolist()
        first, second, head_tail, begun_ns, node, has_size, size, count, *lengths = header
        at += _HEADER_WORDS * _WORD.itemsize
        starts = np.frombuffer(body, _WORD, count, at)
        at += count * _WORD.itemsize
        edges = np.cumsum([at, *lengths]).tolist()
        pieces, points, schema, units = (bytes(body[start:stop]) for start, stop in itertools.pairwise(edges))
        at = edges[-1] + -sum(lengths) % _WORD.itemsize
        yield PartScan(
            (first, second, head_tail),
            begun_ns,
            pieces,
            starts,
            content_size=size if has_size else None,
            points=points,
            schema=schema,
            node=node,
            units=units,
        )


@dataclass(frozen=True, slots=True)
class SharedBatch:
    """A batch for a worker that may see the index folder of the process that sends it."""

    batch: ScanBatch

    folder: str
    """The index folder for the result."""

    marker: str
    """The path of a file in the folder, of a random name, which is there while the build goes on."""


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The answer of a worker that wrote its result into the index folder."""

    summary: PartSummary | None
    """The summary of the part; None where the batch has several."""


Answer = StoredParts | Iterable[PartScan | None]
"""The answer of a worker: its result in the index folder, or the result itself, None for a changed file."""


def _scan_shared(shared: SharedBatch) -> Answer:
    """Scan some parts in a worker of a user's executor, perhaps on another machine."""
    batch, node = shared.batch, xxhash.xxh3_64_intdigest(socket.gethostname().encode())
    scans = [scan and replace(scan, node=node) for scan in scan_batch(batch)]
    whole = [scan for scan in scans if scan is not None]
    if len(whole) < len(scans) or _is_small(batch, whole) or not os.path.exists(shared.marker):
        return list(scans)
    kept = KeptParts(shared.folder, batch)
    if not kept.save(whole):
        return list(scans)
    if not os.path.exists(shared.marker):  # The build has ended: it had the answer of another worker.
        kept.discard()
        return list(scans)
    return StoredParts(whole[0].summary if len(whole) == 1 else None)


def _is_small(batch: ScanBatch, scans: Sequence[PartScan]) -> bool:
    """Return True if the result is best sent: it is small, and its files are whole."""
    if any(job.stop - job.start < job.size for job in batch.jobs):
        return False
    size = sum(
        _PART_BYTES_ABOUT + scan.starts.nbytes + len(scan.pieces) + len(scan.points) + len(scan.schema)
        for scan in scans
    )
    return size <= _SENT_BYTES


def _sent_batch(shared: SharedBatch) -> bytes:
    """Pickle a batch of objects for another process, with their stores."""
    stores = far().passport(job.path for job in shared.batch.jobs)
    return serialized((stores, shared), way_out="index with jobs=1, in this process")


def _scan_sent(data: bytes) -> Answer:
    """Scan a batch of `_sent_batch`; call this only with bytes of the process that builds the index."""
    _, shared = deserialized(data)
    return _scan_shared(shared)


def loaded(kept: KeptParts, batch: ScanBatch) -> Sequence[PartScan | None]:
    """Return the result of a batch from the index folder; where it is lost or damaged, scan it again."""
    return kept.load() or scan_batch(batch)


@final
class KeptResults:
    """The names of finished parts, and the markers of the build in its folders."""

    def __init__(self) -> None:
        """Begin; nothing is read or written."""
        self._found: dict[str, set[str]] = {}
        """By folder, the names that were there when the build began with it. They are listed, and not tried
        one by one: a network file system would remember for a while that a file is missing."""
        self._markers: dict[str, str] = {}
        self._touched = time.monotonic()
        self._needless: set[tuple[str, str]] = set()

    def earlier(self, kept: KeptParts) -> list[PartScan] | None:
        """Return the parts that an earlier build left; None if it did not."""
        if kept.folder not in self._found:
            self._found[kept.folder] = set(os.listdir(kept.folder))
        return kept.load() if kept.name in self._found[kept.folder] else None

    def submit(self, executor: Executor, kept: KeptParts, batch: ScanBatch) -> Future[Answer]:
        """Submit a batch to a user's executor.

        Args:
            executor: the executor.
            kept: the file for its result, in a folder that its workers may see.
            batch: the batch.
        """
        shared = self._shared(kept, batch)
        if any("://" in job.path for job in batch.jobs):
            return executor.submit(_scan_sent, _sent_batch(shared))
        return executor.submit(_scan_shared, shared)

    def _shared(self, kept: KeptParts, batch: ScanBatch) -> SharedBatch:
        """Return a batch for a worker, after marking the folder for its result."""
        if kept.folder not in self._markers:
            # A marker of a killed build goes with its other temporary files.
            marker = os.path.join(kept.folder, f"marker.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
            # Without the marker, where the disk is full, all answers are sent.
            with contextlib.suppress(OSError):
                create_new(marker).close()
            self._markers[kept.folder] = marker
        if time.monotonic() - self._touched > _TOUCH_SECONDS:
            self._touched = time.monotonic()
            for marker in self._markers.values():
                with contextlib.suppress(OSError):
                    os.utime(marker)
        return SharedBatch(batch, kept.folder, self._markers[kept.folder])

    def discard(self, finished: Iterable[KeptParts]) -> None:
        """Remove parts that are in the index now, or of no use."""
        for kept in finished:
            kept.discard()
            self._needless.add((kept.folder, kept.name))

    def close(self) -> None:
        """Remove the markers, and the needless parts that tasks wrote again, which ran twice."""
        for folder, marker in self._markers.items():
            with contextlib.suppress(OSError):
                os.unlink(marker)
            with contextlib.suppress(OSError):
                again = {(folder, name) for name in os.listdir(folder)} & self._needless
                for _, name in again:
                    os.unlink(os.path.join(folder, name))
