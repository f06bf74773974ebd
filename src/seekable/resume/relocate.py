"""Finds the files of a described source again, through their index alone: nothing is scanned or written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.table import format_named
from seekable.index.catalog import read_table, whole_segments
from seekable.index.digest import digest_text
from seekable.index.fileset import FileSet
from seekable.index.index_location import find_index
from seekable.index.indexed_files import indexed_files
from seekable.storage.addresses import is_web, plain_name
from seekable.storage.far import far
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.index.file_table import FileTable
    from seekable.index.indexed_files import IndexedFiles
    from seekable.nodes.files.leaf import FilesLeaf

__all__ = ["FileSpan", "find_again"]


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Consecutive files of a description that lie below one folder, and where this folder may be."""

    roots: tuple[str, ...]
    """The folders to look in; the first one that has the files counts."""

    index_folder: str | None
    """The folder that their index was in; None if that was not noted."""

    num_files: int


def find_again(
    description: Mapping[str, Any], spans: Sequence[FileSpan], *, index_dir: str | None
) -> FilesLeaf | str:
    """Return the files of a described source as their index has them, or why they are not found.

    Files and index must be those that were described: the same names, sizes, numbers of records and digests.

    Args:
        description: the description of a source of files.
        spans: where its files may be; together they have as many files as the description.
        index_dir: the folder of all indexes, if they are not beside the data.
    """
    files = description["files"]
    try:
        scanner = format_named(description["format"]).finder
    except InvalidArgument as error:  # Such as a holder of the user that is not registered here.
        return str(error)
    if sum(span.num_files for span in spans) != len(files):
        return f"the description has {len(files)} files, and what was noted of their folders is of others"
    parts: list[IndexedFiles] = []
    first = 0
    for span in spans:
        own = files[first : first + span.num_files]
        found = _find_span(span, own, scanner.name, index_dir=index_dir)
        if isinstance(found, str):
            return found
        parts.append(found)
        first += span.num_files
    return _source_of(description, parts)


def _source_of(description: Mapping[str, Any], parts: Sequence[IndexedFiles]) -> FilesLeaf:
    """Return the source of files that were found; records that have to be decoded are bytes."""
    files, roots = FileSet(tuple(parts)), ", ".join(dict.fromkeys(part.root for part in parts))
    found: FilesLeaf = format_named(description["format"]).found_again(files, description, repr(roots))
    return found


def _find_span(
    span: FileSpan, files: Sequence[Mapping[str, Any]], format_name: str, *, index_dir: str | None
) -> IndexedFiles | str:
    """Return the index entries of some files in the first folder that has them, or why none has."""
    why = "it is not noted in which folder the files are"
    for root in span.roots:
        location = find_index(root, index_dir=index_dir)
        folders = dict.fromkeys(
            folder for folder in (location.folder, location.shared, span.index_folder) if folder
        )
        for folder in folders:
            found = _find_in(root, folder, files, format_name)
            if not isinstance(found, str):
                return found
            why = found
    return why


def _find_in(
    root: str, folder: str, files: Sequence[Mapping[str, Any]], format_name: str
) -> IndexedFiles | str:
    """Return the entries of files below ``root`` in the index in ``folder``, or why they are not there."""
    table = read_table(folder)
    if table is None:
        return f"there is no index in {folder!r}"
    names = [file["name"] for file in files]
    if is_web(root):
        written = {plain_name(root, name): name for name in table.names()}
        names = [written.get(name, name) for name in names]
    rows = table.rows(names, format_name=format_name)
    why = _index_differs(table, rows, files, folder) or _files_differ(table, rows, names, root)
    return why or indexed_files(root, folder, table, rows)


def _index_differs(
    table: FileTable, rows: NDArray[np.int64], files: Sequence[Mapping[str, Any]], folder: str
) -> str | None:
    """Return in what the entries of an index differ from the described files; None if they do not.

    Args:
        table: the table of the index.
        rows: the row of each file in the table, -1 for a file that it does not have.
        files: the described files.
        folder: the folder of the index, for messages.
    """
    if (rows < 0).any():
        return f"the index in {folder!r} does not know {files[int(np.argmax(rows < 0))]['name']!r}"
    whole = whole_segments(folder, table)[0][table.column("segment", rows)]
    for file, row, is_whole in zip(files, rows.tolist(), whole.tolist(), strict=True):
        entry = {
            "size": int(table.column("size")[row]),
            "records": int(table.column("records")[row]),
            "head_tail": digest_text(table.digest("head_tail", row)),
            "offsets": digest_text(table.digest("offsets", row)),
        }
        other = next((key for key in entry if entry[key] != file[key]), None)
        if other:
            return (
                f"the index in {folder!r} is of another {file['name']!r}: {other} was {file[other]!r}, "
                f"is {entry[other]!r}"
            )
        if not is_whole:
            return f"the index in {folder!r} is damaged: the offsets of {file['name']!r} are gone"
    return None


def _files_differ(table: FileTable, rows: NDArray[np.int64], names: Sequence[str], root: str) -> str | None:
    """Return which file below ``root`` is missing or was changed after it was indexed; None if none is."""
    try:
        for name, row, found in zip(names, rows.tolist(), _statuses(root, names), strict=True):
            if found != (int(table.column("size")[row]), int(table.column("mtime_ns")[row])):
                return f"{os.path.join(root, name)!r} was changed after it was indexed"
    except DataNotFound as error:
        return str(error)
    return None


def _statuses(root: str, names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the size of each file, and its modification time or the number made of its etag.

    Raises:
        DataNotFound: a file does not exist.
    """
    if "://" in root:
        sizes, identities = far().looks(root, names)
        yield from zip(sizes.tolist(), identities.tolist(), strict=True)
        return
    for name in names:
        status = stat_file(os.path.join(root, name))
        yield status.st_size, status.st_mtime_ns
