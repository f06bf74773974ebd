"""Where the index of a dataset lies, and how large it is."""

from __future__ import annotations

import os

from seekable.nodes.sources.files import FileSource
from seekable.nodes.sources.tables import TableSource


def index_folder(dataset: FileSource | TableSource) -> str:
    """Return the folder of the index; there is one, because a PATH has one root."""
    (folder,) = dataset.files.folders
    return folder


def folder_bytes(folder: str) -> int:
    """Return how many bytes the files in a folder have."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
