"""The description of a stream, which its states carry for ``resume="rows"``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.nodes.evaluated import row_files_of
from seekable.state.descriptions import PipelineDescription, text_of
from seekable.stream.stage import described

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.node import Node
    from seekable.stream.stage import Stage

__all__ = ["datasets_of", "text_of_stream"]


def text_of_stream(stage: Stage) -> str:
    """Return a stream's description as text, with the paths of the row files that its datasets use."""
    return text_of(stage, lambda: _described(stage))


def datasets_of(stage: Stage) -> Iterator[Node]:
    """Yield the datasets that a stage and all stages below it read, in the order of the description."""
    for source in stage.inputs:
        yield from datasets_of(source)
    yield from stage.datasets


def _described(stage: Stage) -> PipelineDescription:
    files = {digest: path for dataset in datasets_of(stage) for digest, path in row_files_of(dataset).items()}
    return PipelineDescription(described(stage), files)
