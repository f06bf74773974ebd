"""The files of data that a person means by a name: a path, or the end of one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from seekable.index.fileset import FileSet
from seekable.nodes.bases import leaves_of
from seekable.resume.placeholders import PlaceholderSource
from seekable.viewer.facts.as_in_files import data_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.nodes.contract import Node

__all__ = ["files_named", "has_row", "paths_named"]

T = TypeVar("T")


def files_named(files: FileSet, name: str) -> list[int]:
    """Return the numbers of the files with a path, else of all whose paths end with it, part by part."""
    last = os.path.basename(name)
    same = [at for at, each in enumerate(files.names()) if os.path.basename(each) == last]
    return _fitting([(files.shown_path(at), at) for at in same], name)


def has_row(node: Node, path: str, row: int) -> bool:
    """Return True if a row of a file is one of a source of a pipeline."""
    return any(leaf.rows_of(path, row) for leaf in leaves_of(node))


def paths_named(node: Node, name: str) -> dict[str, int]:
    """Return the files of a pipeline that a name means, as ``files_named``: the records of each path."""
    found: list[tuple[str, int]] = []
    for leaf in leaves_of(node):
        files = getattr(data_of(leaf), "files", None)
        if isinstance(files, FileSet):
            numbers = files_named(files, name)
            found += [(files.shown_path(at), int(files.records[at])) for at in numbers]
        elif isinstance(leaf, PlaceholderSource):
            found += zip(leaf.names, leaf.records, strict=True)
    return dict(_fitting([(path, (path, records)) for path, records in found], name))


def _fitting(named: Sequence[tuple[str, T]], name: str) -> list[T]:
    """Return what has the path that is named, else what has a path that ends so."""
    whole, end = {name, os.path.abspath(name)}, f"/{name.removeprefix('./')}"
    exact = [each for path, each in named if path in whole]
    return exact or [each for path, each in named if path.endswith(end)]
