"""What a state keeps of a stream that goes on by rows: enough to make it again of the plain one.

    {"0": {"start": 0, "begin": 900, "parts": {...}}}

Each source has an entry under its number; ``parts`` is that of its dataset (`seekable.resume.serialize`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import SeekableError, StateMismatch
from seekable.resume.serialize import made_of, recipe_of
from seekable.resume.simplify import settled
from seekable.resume.streams.resume import left_of, with_sources
from seekable.stream.lineage import joint_of, rows_held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.kept import Kept
    from seekable.stream.source import FromDataset

__all__ = ["settled_stream", "stream_made_of", "stream_recipe_of"]


def stream_recipe_of(stream: Stream) -> dict[str, Any]:
    """Return what makes a stream that goes on by rows of its plain one."""
    return {
        str(number): {
            "start": source.start,
            "begin": source.begin,
            **({"parts": parts} if (parts := recipe_of(source.dataset)) else {}),
        }
        for number, source in enumerate(_sources(stream))
    }


def stream_made_of(recipe: Mapping[str, Any], plain: Stream) -> Stream:
    """Return the stream that a recipe is of.

    Raises:
        StateMismatch: it is no recipe for this stream, or the sources are not those it was made for.
    """
    sources = _sources(plain)
    try:
        for number, entry in recipe.items():
            source = sources[int(number)]
            dataset = made_of(entry.get("parts", {}), source.dataset)
            start, begin = int(entry["start"]), int(entry["begin"])
            sources[int(number)] = replace(source, dataset=dataset, start=start, begin=begin)
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the state's 'rows' are not of this stream: {type(error).__name__}: {error}"
        raise StateMismatch(message) from error
    return with_sources(plain, sources)


def settled_stream(stream: Stream, lanes: Mapping[int, Sequence[Kept]]) -> Stream:
    """Return a stream without the pieces that all its lanes have come past, and that wait in no stage.

    Args:
        stream: what goes on by rows.
        lanes: what the stages of each of its lanes remember.
    """
    if len(lanes) < stream.lanes:
        return stream
    sources = _sources(stream)
    if not any(recipe_of(source.dataset) for source in sources):
        return stream
    graph = joint_of(stream)
    places = [place for place, joint in enumerate(graph.all()) if not joint.inputs]
    held: list[list[int]] = [[] for _ in sources]
    for stages in lanes.values():
        for number, position in rows_held(graph, stages):
            held[number].append(position)
    made = []
    for source, place, waiting in zip(sources, places, held, strict=True):
        taken = [lanes[lane][place].memory.get("at", 0) for lane in range(stream.lanes)]
        left = left_of(source.dataset.size, source.first, taken)
        dataset = settled(source.dataset, left.with_more(np.array(waiting, dtype=np.int64)))
        made.append(source if dataset is source.dataset else replace(source, dataset=dataset))
    if all(new is old for new, old in zip(made, sources, strict=True)):
        return stream
    return with_sources(stream, made)


def _sources(stream: Stream) -> list[FromDataset]:
    return [joint.source for _, joint in joint_of(stream).sources()]
