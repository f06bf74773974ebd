"""The writing of one part of a token store: its files grow together, document by document."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, BinaryIO, final

import numpy as np
import xxhash

from seekable.formats.tokens.tokenizing.store_document import (
    EDGE_BYTES,
    SOURCE_RUN,
    PartFacts,
    edges_digest,
    encode_facts,
)
from seekable.formats.tokens.writing.tokens_idx import index_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.encoding import EncodedDocuments
    from seekable.formats.tokens.writing.tokens_layout import StoreLayout

__all__ = ["TokenPart"]


@final
class TokenPart:
    """Writes the files of one part; the caller syncs and closes them."""

    def __init__(self, layout: StoreLayout, files: Sequence[BinaryIO]) -> None:
        """Begin the files.

        Args:
            layout: the arrays and their types.
            files: the files in the order of ``layout.suffixes``.
        """
        *sinks, self._facts = files
        self._sinks = dict(zip(layout.suffixes, map(_Sink, sinks), strict=False))
        self._layout = layout
        self._runs = _Runs()
        self._lengths = array("q")
        self._documents = self._tokens = self._empty = 0
        self._largest = -1

    def add(
        self, documents: EncodedDocuments, files: Int64s | None = None, rows: Int64s | None = None
    ) -> None:
        """Write documents behind those before them.

        Args:
            documents: the documents.
            files: the number of the file that each comes from, -1 for none; None if all come from none.
            rows: the row of each in that file.
        """
        count = len(documents.lengths)
        self._sinks["bin"].write(documents.ids.astype(self._layout.dtype, copy=False))
        for name, dtype in self._layout.aligned:
            self._sinks[name].write(documents.aligned[name].astype(dtype, copy=False))
        self._sinks["lengths"].write(documents.lengths.astype("<u4"))
        if files is None or rows is None:
            files, rows = np.full(count, -1), np.zeros(count, dtype=np.int64)
        self._runs.add(files, rows)
        if self._layout.idx:
            self._lengths.frombytes(documents.lengths.tobytes())
        self._tokens += len(documents.ids)
        self._empty += documents.empty
        self._documents += count
        if len(documents.ids):
            self._largest = max(self._largest, int(documents.ids.max()))

    def end(self) -> None:
        """Write what describes all documents of the part."""
        self._sinks["sources"].write(self._runs.end())
        if self._layout.idx:
            lengths = np.frombuffer(self._lengths, dtype=np.int64)
            self._sinks["idx"].write(np.frombuffer(index_bytes(lengths, self._layout.dtype), np.uint8))
        contents = ("bin", *(name for name, _ in self._layout.aligned))
        facts = PartFacts(
            documents=self._documents,
            tokens=self._tokens,
            empty=self._empty,
            largest=self._largest,
            digests={suffix: sink.digest.hexdigest() for suffix, sink in self._sinks.items()},
            edges={suffix: self._sinks[suffix].edges for suffix in contents},
            dtype=self._layout.dtype.str,
            aligned={name: dtype.str for name, dtype in self._layout.aligned},
        )
        self._facts.write(encode_facts(facts))


class _Sink:
    """A file, and the digest of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = xxhash.xxh3_128()
        self._head = self._tail = b""

    def write(self, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values).view(np.uint8).data
        self._file.write(data)
        self.digest.update(data)
        missing = EDGE_BYTES - len(self._head)
        if missing:
            self._head += data[:missing]
            data = data[missing:]
        if len(data):
            self._tail = (self._tail + data[-EDGE_BYTES:])[-EDGE_BYTES:]

    @property
    def edges(self) -> str:
        """The digest of the ends of what was written."""
        return edges_digest(self._head, self._tail)


class _Runs:
    """Joins documents that come from consecutive rows of one file to runs."""

    def __init__(self) -> None:
        self._made: list[NDArray[Any]] = []
        self._next: tuple[int, int] | None = None

    def add(self, files: Int64s, rows: Int64s) -> None:
        """Add documents; those of file -1 come from no row."""
        if not files.size:
            return
        breaks = (files[1:] != files[:-1]) | ((rows[1:] != rows[:-1] + 1) & (files[1:] >= 0))
        starts = np.concatenate([[0], np.flatnonzero(breaks) + 1])
        runs = np.zeros(starts.size, dtype=SOURCE_RUN)
        runs["file"] = files[starts].astype(np.uint32)
        runs["row"] = rows[starts]
        runs["count"] = np.diff(starts, append=files.size)
        first, file = int(rows[0]), int(files[0])
        if self._next == (file, first if file >= 0 else 0):
            self._made[-1]["count"][-1] += runs["count"][0]
            runs = runs[1:]
        if runs.size:
            self._made.append(runs)
        last = int(files[-1])
        self._next = last, int(rows[-1]) + 1 if last >= 0 else 0

    def end(self) -> NDArray[Any]:
        """Return all runs: an array of `SOURCE_RUN`."""
        return np.concatenate([np.zeros(0, dtype=SOURCE_RUN), *self._made])
