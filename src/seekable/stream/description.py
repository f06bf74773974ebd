"""The description of a stream that its states carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.nodes.filter.node import row_files_of
from seekable.state.description_text import Description, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.dataset.base import Dataset
    from seekable.stream.base import Stream
    from seekable.stream.contract import Stage

__all__ = ["datasets_of", "text_of_stream"]


def text_of_stream(stream: Stream) -> str:
    """Return the description of a stream as text, with the paths of the row files that its datasets use."""
    return text_of(stream, lambda: _described(stream))


def datasets_of(stage: Stage) -> Iterator[Dataset]:
    """Yield the datasets that a stream reads, in the order in which its description has them."""
    for source in stage.inputs:
        yield from datasets_of(source)
    yield from getattr(stage, "datasets", ())


def _described(stream: Stream) -> Description:
    files = {
        digest: path for dataset in datasets_of(stream) for digest, path in row_files_of(dataset).items()
    }
    return Description(stream.describe(), files)
