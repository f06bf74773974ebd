"""The sources over indexed files, as one type for annotations and ``isinstance``."""

from __future__ import annotations

from seekable.nodes.sources.file_source import FileSource
from seekable.nodes.sources.sample_source import SampleSource
from seekable.nodes.sources.shar_source import SharSource
from seekable.nodes.sources.tables import TableSource
from seekable.nodes.sources.token_source import TokenSource

__all__ = ["DataSource", "IndexedSource"]

IndexedSource = FileSource | SampleSource | TableSource | TokenSource
"""A source over one set of indexed files."""

DataSource = IndexedSource | SharSource
"""A source of data that ``sk.open`` makes: also one of several sets of files."""
