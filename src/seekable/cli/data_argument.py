"""The dataset that the options of a command name, and the folder of its index."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from seekable.cli.progress_output import BuildWatch
from seekable.dataset.open import open as open_dataset
from seekable.nodes.sources.file_source import FileSource
from seekable.nodes.sources.tables import TableSource

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset


@dataclass(frozen=True)
class Opening:
    """One PATH and the options with which it is opened."""

    path: str
    format: str | None = field(kw_only=True)
    index_dir: str | None = field(kw_only=True)
    jobs: int | None = field(kw_only=True)
    progress: bool = field(kw_only=True)
    """True if a progress bar may be drawn."""

    quiet: bool = field(kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    partitions: Literal["hive"] | None = field(default=None, kw_only=True)

    @cached_property
    def watch(self) -> BuildWatch:
        """The reporter of this opening's index builds."""
        return BuildWatch(bar=self.progress, notices=not self.quiet)

    def open(self) -> FileSource | TableSource:
        """Index new and changed files, and return the source, which is the only node of its dataset."""
        source = self.dataset().node
        assert isinstance(source, FileSource | TableSource)
        return source

    def dataset(self) -> Dataset:
        """Index new and changed files, and return the dataset."""
        try:
            return open_dataset(
                self.path,
                format=self.format,
                index_dir=self.index_dir,
                jobs=self.jobs,
                progress=self.watch,
                key=self.key,
                partitions=self.partitions,
            )
        finally:
            self.watch.close()


def index_folder(dataset: FileSource | TableSource) -> str:
    """Return the folder of the index: exactly one, because a PATH has one root."""
    (folder,) = dataset.files.folders
    return folder


def folder_bytes(folder: str) -> int:
    """Return the size in bytes of the files in a folder, subfolders excluded."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.is_file())
