"""Columns of the index for packing: documents by length, and the offsets of their tokens, memory-mapped.

``packing-<name>-<column>`` holds one column of a `LengthOrder`, little-endian: ``offsets.i64``, ``by-length``
and ``place`` (``.u32``, or ``.u64`` from 2**32 documents on), ``coarse.i64``, and ``classes.i64`` with the
lengths, the counts and the starts of all classes. ``packing-<name>.json`` is written last, and so decides; it
has the number of documents and of classes, and the files whose documents they are. All of them never change.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.index.catalog import read_table
from seekable.index.digest import digest_text
from seekable.packing.order.length_order import COARSE, LengthClasses, LengthOrder, number_type
from seekable.storage.files import TEMPORARY_SUFFIX, map_file, regular_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.index.file_table import FileTable
    from seekable.index.fileset import FileSet

__all__ = [
    "ColumnFiles",
    "columns_lock",
    "open_columns_of",
    "remove_garbage",
    "remove_torn",
]

_SCHEMA = 1
_OURS = re.compile(r"(packing-[0-9a-f]{32})(?:\.json|-[a-z-]+\.[iu](?:32|64))")
_TORN = re.compile(rf"packing-[0-9a-f]{{32}}.*{re.escape(TEMPORARY_SUFFIX)}")


class ColumnFiles:
    """The files of the columns of some documents in an index folder."""

    def __init__(self, folder: str, name: str, documents: int, classes: int) -> None:
        """Name the files, of which none is opened.

        Args:
            folder: the index folder.
            name: 32 hexadecimal digits, which stand for the lengths of all documents.
            documents: the number of documents.
            classes: the number of distinct lengths.
        """
        self.header = _header_path(folder, name)
        """The path of the header."""
        number = number_type(documents)
        word, bits = np.dtype("<i8"), 8 * number.itemsize
        base = os.path.join(folder, f"packing-{name}-")
        self.columns: dict[str, tuple[str, np.dtype[Any], int]] = {
            "offsets": (f"{base}offsets.i64", word, documents + 1),
            "by_length": (f"{base}by-length.u{bits}", number.newbyteorder("<"), documents),
            "place": (f"{base}place.u{bits}", number.newbyteorder("<"), documents),
            "coarse": (f"{base}coarse.i64", word, documents // COARSE + 1),
            "classes": (f"{base}classes.i64", word, 3 * classes),
        }
        """The path of each column, the type of its numbers, and how many there are."""

    def open(self) -> LengthOrder | None:
        """Return the columns, memory-mapped; None if a file is not there or has another size."""
        try:
            arrays = {name: _mapped(*column) for name, column in self.columns.items()}
        except OSError:
            return None
        lengths, counts, starts = arrays.pop("classes").reshape(3, -1)
        return LengthOrder(**arrays, classes=LengthClasses(lengths, counts, starts))

    def encoded_header(self, files: FileSet) -> bytes:
        """Return the bytes of the header.

        Args:
            files: the files whose documents the columns are of; those of the first folder are named.
        """
        count = files.runs[0][2]
        entries = zip(files.plain_names()[:count], files.digests("content")[:count], strict=True)
        described = {
            "seekable_packing": _SCHEMA,
            "documents": self.columns["by_length"][2],
            "classes": self.columns["classes"][2] // 3,
            "format": files.entry(0).format,
            "files": [list(entry) for entry in entries],
        }
        # Python's own JSON, because names may have lone surrogates.
        return json.dumps(described).encode()


def _mapped(path: str, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return the numbers of a file, memory-mapped, in native byte order.

    Raises:
        OSError: the file cannot be opened, or has another size.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = count * dtype.itemsize
        if os.fstat(descriptor).st_size != size:
            raise FileNotFoundError(path)
        # A look-up reads a page here and a page there.
        mapped = map_file(descriptor, size, random=True)
    finally:
        os.close(descriptor)
    numbers: NDArray[Any] = np.frombuffer(mapped, dtype)
    return numbers.astype(dtype.newbyteorder("="), copy=False)


def columns_lock(folder: str) -> str:
    """Return the lock file that is held while columns are built in a folder."""
    return os.path.join(folder, "packing.lock")


def open_columns_of(folder: str, name: str) -> LengthOrder | None:
    """Return the columns of some documents; None if a folder does not have all of them."""
    header = _read_header(_header_path(folder, name))
    if header is None:
        return None
    return ColumnFiles(folder, name, header["documents"], header["classes"]).open()


def remove_torn(folder: str) -> None:
    """Remove the columns that killed processes left unfinished; the caller holds the folder's lock."""
    for name in os.listdir(folder):
        if _TORN.fullmatch(name):
            _unlink(os.path.join(folder, name))


def remove_garbage(folder: str, *, of: str) -> None:
    """Remove the columns of files that are not as they were; the caller holds the folder's lock.

    Args:
        folder: where the columns are.
        of: the index folder of the files, which is another one where that cannot be written.
    """
    table = read_table(of)
    if table is None:
        return
    kept = {name for name, header in _headers(folder) if _is_present(header, table)}
    for file in os.listdir(folder):
        found = _OURS.fullmatch(file)
        if found and found[1] not in kept:
            _unlink(os.path.join(folder, file))


def _is_present(header: dict[str, Any], table: FileTable) -> bool:
    """Return True if an index has all files of columns as they were."""
    rows = table.rows([name for name, _ in header["files"]], format_name=header["format"])
    return all(
        row >= 0 and digest_text(table.digest("content", row)) == content
        for row, (_, content) in zip(rows.tolist(), header["files"], strict=True)
    )


def _headers(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in os.listdir(folder):
        if file.endswith(".json") and (found := _OURS.fullmatch(file)):
            header = _read_header(os.path.join(folder, file))
            if header is not None:
                yield found[1], header


def _read_header(path: str) -> dict[str, Any] | None:
    """Return a header, None if there is none that is whole and of this version."""
    try:
        with open(path, "rb", opener=regular_only) as file:
            header: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return header if header.get("seekable_packing") == _SCHEMA else None


def _header_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"packing-{name}.json")


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)
