"""The sources over indexed files, as one type for annotations and ``isinstance``."""

from __future__ import annotations

from seekable.formats.shar.shar_source import SharSource
from seekable.formats.tables.tables import TableSource
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tokens.source.token_source import TokenSource
from seekable.nodes.files.byte_source import FileSource

__all__ = ["DataSource", "IndexedSource"]

IndexedSource = FileSource | SampleSource | TableSource | TokenSource
"""A source over one set of indexed files."""

DataSource = IndexedSource | SharSource
"""A source of data that ``sk.open`` makes: also one of several sets of files."""
