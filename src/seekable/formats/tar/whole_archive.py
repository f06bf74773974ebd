"""The number of samples of a tar file that was written, if it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.samples import group_samples
from seekable.formats.tar.tar_archive import end_mark
from seekable.formats.tar.walk import walk
from seekable.index.build.content import ForwardStream
from seekable.writing.compressed_files import read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.tar.sample_rule import SampleRule

__all__ = ["samples_in"]


def samples_in(path: str, rule: SampleRule) -> int | None:
    """Return the number of samples of a tar file; None if it is damaged or does not end as ours do.

    Args:
        path: the path of the file, plain or compressed.
        rule: which members make a sample.
    """
    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in read_pieces(path):
            size += len(piece)
            yield piece

    try:
        found = group_samples(walk(ForwardStream(counted(), path=path)), rule, path=path)
    except UnsupportedFormat:
        return None
    end = int(found.starts[-1])
    return len(found.starts) - 1 if size == end + len(end_mark(end)) else None
