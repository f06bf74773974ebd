"""Rows that were chosen by content, in files beside a pipeline file: little-endian uint64 and nothing else.

The files of ``pipeline.json`` lie in ``pipeline.rows``, each named by the digest of its bytes, so that a file
never changes. They are written before the pipeline file that names them. Those of an earlier save stay: a
copy of the pipeline file may name them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash

from seekable.dataset.pipeline.fields import checked
from seekable.errors import CorruptState, DataNotFound
from seekable.nodes.saved_rows import ROW_BYTES, KeptRows
from seekable.storage.addresses import shown
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from seekable._typing import Int64s

__all__ = ["RowFiles", "int_rows", "kept_rows"]

_SUFFIX = ".u64"
_MOST_INLINE = 64
"""The most rows of a selection that stand in the pipeline file itself."""


class RowFiles:
    """The row files of one pipeline file, which are written together."""

    def __init__(self, pipeline: str) -> None:
        """Write nothing yet.

        Args:
            pipeline: the absolute path of the pipeline file.
        """
        self._folder = f"{pipeline.removesuffix('.json')}.rows"
        self._rows: dict[str, memoryview] = {}

    def add(self, rows: KeptRows | Int64s) -> dict[str, Any]:
        """Return what stands in the pipeline file for some rows: their file, or a few rows of a selection.

        Raises:
            IndexStale, CorruptState: the file of chosen rows is gone, or has changed.
        """
        if isinstance(rows, KeptRows):
            rows.check()
            data = rows.view.cast("B") if rows.count else memoryview(b"")
        elif rows.size <= _MOST_INLINE:
            return {"rows": rows.tolist()}
        else:
            data = memoryview(rows.astype("<i8").tobytes())
        digest = xxhash.xxh3_64_hexdigest(data)
        self._rows[digest] = data
        return {
            "file": f"{os.path.basename(self._folder)}/{digest}{_SUFFIX}",
            "count": len(data) // ROW_BYTES,
            "digest": f"xxh3:{digest}",
        }

    def write(self) -> None:
        """Write the files, each whole or not at all.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        if self._rows:
            output_of(self._folder).make_folder(self._folder)
        for digest, data in self._rows.items():
            output_of(self._folder).write(os.path.join(self._folder, f"{digest}{_SUFFIX}"), data)


class _RowFile(msgspec.Struct):
    file: str
    count: int
    digest: str


def kept_rows(document: Any, folder: str, where: str) -> KeptRows:
    """Return rows that were chosen by content, after a check of their file.

    Args:
        document: what `RowFiles.add` returned.
        folder: the folder of the pipeline file.
        where: the place in the pipeline file, for messages.

    Raises:
        DataNotFound: the file does not exist.
        CorruptState: it was cut or changed, or the document is no such thing.
    """
    said = checked(document, _RowFile, where)
    parts = said.file.split("/")
    if os.path.isabs(said.file) or not {"", ".", ".."}.isdisjoint(parts):
        message = f"{where}.file: expected a path below the folder of the pipeline file (got {said.file!r})"
        raise CorruptState(message)
    path = os.path.join(folder, said.file)
    size = output_of(path).size(path)
    if size is None:
        message = (
            f"{where}: there is no {shown(path)!r}, which holds the {said.count:,} rows that were chosen: "
            f"copy the folder {parts[0]!r} together with the pipeline file, or save the pipeline again"
        )
        raise DataNotFound(message)
    if size != said.count * ROW_BYTES:
        message = (
            f"{where}: {shown(path)!r} has {size:,} bytes, and {said.count:,} rows have "
            f"{said.count * ROW_BYTES:,}: it was cut or replaced; copy it again, or save the pipeline again"
        )
        raise CorruptState(message)
    rows = KeptRows(output_of(path).kept_local(path, size), said.count, said.digest, named=True)
    _check_digest(rows, where)
    return rows


def int_rows(document: Any, folder: str, where: str) -> Int64s:
    """Return the rows of a selection: those of its file, or those in the document.

    Raises:
        DataNotFound, CorruptState: as `kept_rows`.
    """
    if isinstance(document, dict) and document.keys() == {"rows"}:
        return np.array(checked(document["rows"], list[int], f"{where}.rows"), dtype=np.int64)
    return np.array(kept_rows(document, folder, where).array)


def _check_digest(rows: KeptRows, where: str) -> None:
    try:
        rows.check()
    except CorruptState:
        data = rows.view if rows.count else b""
        message = (
            f"{where}: {rows.path!r} has the digest xxh3:{xxhash.xxh3_64_hexdigest(data)}, and the pipeline "
            f"file says {rows.digest}: something changed it; copy it again, or save the pipeline again"
        )
        raise CorruptState(message) from None
