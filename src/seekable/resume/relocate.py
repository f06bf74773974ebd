"""Described files found again, through their index alone: nothing is scanned, nothing is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import DataNotFound
from seekable.formats.decoding import decoder_named
from seekable.formats.registry import format_named
from seekable.index.building.scan import stat_file
from seekable.index.catalog import read_table, whole_segments
from seekable.index.digest import digest_text
from seekable.index.fileset import FileSet
from seekable.index.part import part_of
from seekable.index.place import find_place
from seekable.index.surveyor import is_surveyor
from seekable.nodes.sources.columnar.source import TableSource
from seekable.nodes.sources.files import FileSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.index.part import Part
    from seekable.index.table import Table

__all__ = ["Run", "find_again"]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive files of a description, and where they were."""

    roots: tuple[str, ...]
    """The folders in which they may be, the first that has them counts."""

    index_folder: str | None
    """Where their index was, if that was noted."""

    files: int
    """How many they are."""


def find_again(
    description: Mapping[str, Any], runs: Sequence[Run], *, index_dir: str | None
) -> FileSource | TableSource | str:
    """Return the files of a source's description as their index knows them, or why they are not found.

    They count when index and files are those that were described: names, sizes, records, digests.

    Args:
        description: of a source of files.
        runs: where its files may be; together they have as many files as the description.
        index_dir: where indexes are kept, if not beside the data.
    """
    files = description["files"]
    if sum(run.files for run in runs) != len(files):
        return f"the description has {len(files)} files, and what was noted of their folders is of others"
    parts: list[Part] = []
    first = 0
    for run in runs:
        found = _find_run(run, files[first : first + run.files], description["format"], index_dir=index_dir)
        if isinstance(found, str):
            return found
        parts.append(found)
        first += run.files
    roots = ", ".join(dict.fromkeys(part.root for part in parts))
    form = format_named(description["format"]).scanner
    if is_surveyor(form):
        return TableSource(FileSet(tuple(parts)), form, "python", asked=repr(roots))
    return FileSource(
        FileSet(tuple(parts)),
        decoder_named("bytes", description["format"]),
        format=description["format"],
        asked=repr(roots),
        version=None,
    )


def _find_run(
    run: Run, files: Sequence[Mapping[str, Any]], format_name: str, *, index_dir: str | None
) -> Part | str:
    why = "it is not noted in which folder the files are"
    for root in run.roots:
        place = find_place(root, index_dir=index_dir)
        folders = dict.fromkeys(folder for folder in (place.folder, place.shared, run.index_folder) if folder)
        for folder in folders:
            found = _find_in(root, folder, files, format_name)
            if not isinstance(found, str):
                return found
            why = found
    return why


def _find_in(root: str, folder: str, files: Sequence[Mapping[str, Any]], format_name: str) -> Part | str:
    table = read_table(folder)
    if table is None:
        return f"there is no index in {folder!r}"
    rows = table.rows([file["name"] for file in files], format_name=format_named(format_name).scanner.name)
    why = _differs(table, rows, files, folder) or _changed(table, rows, files, root)
    return why or part_of(root, folder, table, rows)


def _differs(
    table: Table, rows: NDArray[np.int64], files: Sequence[Mapping[str, Any]], folder: str
) -> str | None:
    if (rows < 0).any():
        return f"the index in {folder!r} does not know {files[int(np.argmax(rows < 0))]['name']!r}"
    whole = whole_segments(folder, table)[table.column("segment", rows)]
    for file, row, is_whole in zip(files, rows.tolist(), whole.tolist(), strict=True):
        known = {
            "size": int(table.column("size")[row]),
            "records": int(table.column("records")[row]),
            "head_tail": digest_text(table.digest("head_tail", row)),
            "offsets": digest_text(table.digest("offsets", row)),
        }
        other = next((key for key in known if known[key] != file[key]), None)
        if other:
            return (
                f"the index in {folder!r} knows another {file['name']!r}: {other} was {file[other]!r}, "
                f"is {known[other]!r}"
            )
        if not is_whole:
            return f"the index in {folder!r} is damaged: the offsets of {file['name']!r} are gone"
    return None


def _changed(
    table: Table, rows: NDArray[np.int64], files: Sequence[Mapping[str, Any]], root: str
) -> str | None:
    for file, row in zip(files, rows.tolist(), strict=True):
        try:
            status = stat_file(os.path.join(root, file["name"]))
        except DataNotFound as error:
            return str(error)
        known = int(table.column("size")[row]), int(table.column("mtime_ns")[row])
        if (status.st_size, status.st_mtime_ns) != known:
            return f"{os.path.join(root, file['name'])!r} was changed after it was indexed"
    return None
