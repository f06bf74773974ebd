"""Records as they are in their files: the bytes between two offsets of the index."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.formats.kaldi.entry_decoder import EntryDecoder
from seekable.formats.lines.line_source import decoder_named
from seekable.nodes.files.byte_source import FileSource

if TYPE_CHECKING:
    from seekable.nodes.contract import Node

__all__ = ["raw_record", "raw_source"]


def raw_source(source: FileSource) -> FileSource:
    """Return the source of the same records as bytes, without the ends of lines."""
    return replace(source, decoder=decoder_named("bytes", source.format), errors=None)


def raw_record(node: Node, row: int) -> bytes | None:
    """Return the bytes of a record; None where a record is no run of bytes of one file.

    Args:
        node: a source of data.
        row: the number of the record.

    Raises:
        IndexStale: the file was changed.

    Example:
        >>> import seekable as sk
        >>> raw_record(sk.from_sequence("ab").node, 0) is None
        True
    """
    if not isinstance(node, FileSource) or isinstance(node.decoder, EntryDecoder):
        return None
    raw: bytes = raw_source(node).record(row)
    return raw
