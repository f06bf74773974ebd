"""From the options of a command to a dataset."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from seekable.cli.progress import BuildWatch
from seekable.dataset.open import open as open_dataset
from seekable.nodes.sources.files import FileSource
from seekable.nodes.sources.tables import TableSource


@dataclass(frozen=True)
class Opening:
    """One PATH, and how it is to be opened."""

    path: str
    format: str | None = field(kw_only=True)
    index_dir: str | None = field(kw_only=True)
    jobs: int | None = field(kw_only=True)
    progress: bool = field(kw_only=True)
    """Whether a bar may be drawn."""

    quiet: bool = field(kw_only=True)
    key: str | None = field(default=None, kw_only=True)

    @cached_property
    def watch(self) -> BuildWatch:
        """What follows the index builds of this opening."""
        return BuildWatch(bar=self.progress, notices=not self.quiet)

    def open(self) -> FileSource | TableSource:
        """Open the data, after indexing what is new or changed; the source is the one node of a dataset."""
        try:
            opened = open_dataset(
                self.path,
                format=self.format,
                index_dir=self.index_dir,
                jobs=self.jobs,
                progress=self.watch,
                key=self.key,
            )
        finally:
            self.watch.close()
        source = opened.node
        assert isinstance(source, FileSource | TableSource)
        return source
