"""A pipeline: what it is, how it differs from another, and the states of its runs."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.checkpoint_files import generations_in, read_saved, state_name
from seekable.loader.loader import Loader
from seekable.nodes.display import explained
from seekable.resume.from_description import described_sources
from seekable.state.descriptions import outline
from seekable.viewer.facts.comparison import compare_pipelines
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.saved_state import (
    consumed_between,
    generation_document,
    pipeline_differences,
    place_differences,
    state_document,
)
from seekable.viewer.facts.sources import source_names, source_nodes
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.loader.checkpoint_files import Generation, Saved
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked


_MOST_MISSING = 10


def pipeline(opened: Opened, asked: Asked) -> Page:
    """Return what a pipeline is: the records of an epoch, batches, ranks, lanes and sources."""
    found = opened.pipeline(asked.name)
    if found.is_stream:
        return _stream(asked.name, found)
    each = found.loader
    node = each.dataset.node
    sources = zip(source_names(node), source_nodes(node), strict=True)
    document = {
        "name": asked.name,
        "kind": "pipeline",
        "pipeline": json_safe(node.expression()),
        "records": node.size,
        "steady": node.steady,
        "lanes": node.lanes,
        "fingerprint": node.fingerprint,
        "batch": each.global_batch_size if found.has_batch else None,
        "world_size": each.world_size,
        "step": each.step,
        "epoch": each.epoch,
        "sources": [{"name": name, "records": source.size} for name, source in sources],
        "nodes": [json_safe(line) for line in explained(node)],
        "notes": list(found.notes),
    }
    return Page("pipeline", asked.name, document, {"has_log": asked.name in opened.logs})


def _stream(name: str, found: OpenPipeline) -> Page:
    loader = found.pipeline if isinstance(found.pipeline, Loader) else None
    stream: Any = found.root
    document = {
        "name": name,
        "kind": "stream",
        "lanes": stream.lanes,
        "endless": stream.endless,
        "fingerprint": stream.fingerprint,
        "batch": None if loader is None else loader.global_batch_size,
        "world_size": None if loader is None else loader.world_size,
        "step": None if loader is None else loader.step,
        "nodes": json_safe(stream.explain()).splitlines(),
    }
    return Page("stream", name, document)


def compare(opened: Opened, asked: Asked) -> Page:
    """Return the differences of two open pipelines.

    Raises:
        InvalidArgument: fewer than two pipelines are open.
    """
    names = tuple(opened.pipelines)
    if len(names) < 2:  # noqa: PLR2004 - two are compared
        message = "two pipelines are compared, and fewer are open: start the viewer with both, as NAME=PATH"
        raise InvalidArgument(message)
    a = asked.choice("a", names)
    b = asked.choice("b", tuple(name for name in names if name != a))
    old, new = opened.pipeline(a).loader, opened.pipeline(b).loader
    step = asked.count("step", default=0)
    found = compare_pipelines(old, new, step=step)
    document = {"a": a, "b": b, **found.document()}
    sources = dict.fromkeys(name for side in (found.old, found.new) for name, _ in side.sources)
    return Page("compare", f"{a} and {b}", document, {"names": names, "sources": list(sources)})


def states(opened: Opened, asked: Asked) -> Page:
    """Return the generations of a folder, the newest first."""
    folder = opened.folder(asked.name)
    found = [
        {**generation_document(generation), "missing": _missing(generation)}
        for generation in reversed(generations_in(folder))
    ]
    why = opened.unopened.get(asked.name)
    document = {
        "name": asked.name,
        "path": json_safe(folder),
        "generations": found,
        "pipeline_unknown": None if why is None else json_safe(why),
    }
    return Page("states", asked.name, document)


def _missing(generation: Generation) -> list[int]:
    """Return the first ranks without a file, at most ten."""
    step, ranks = generation.step, generation.ranks
    lacking = (
        rank for rank in range(ranks) if state_name(step, rank=rank, ranks=ranks) not in generation.names
    )
    return list(islice(lacking, _MOST_MISSING))


def state(opened: Opened, asked: Asked) -> Page:
    """Return one state: where the run was, and how far each source."""
    folder, number = opened.folder(asked.name), int(asked.path["step"])
    saved = _saved(opened, asked.name, number)
    document = state_document(folder, saved, generations_in(folder))
    tree = [json_safe(line) for line in outline(saved.description)] if saved.description is not None else []
    title = f"{asked.name}, step {number:,}"
    return Page("state", title, {"name": asked.name, **document}, {"tree": tree, "at": number})


def compared(opened: Opened, asked: Asked) -> Page:
    """Return how two states differ, as ``seekable state diff`` prints it, and what came between them."""
    old, new = int(asked.path["old"]), int(asked.path["new"])
    was, now = _saved(opened, asked.name, old), _saved(opened, asked.name, new)
    pipeline, place = pipeline_differences(was, now), place_differences(was, now)
    document = {
        "name": asked.name,
        "old": old,
        "new": new,
        "same": not pipeline and not place,
        "same_pipeline": not pipeline,
        "differences": [*pipeline, *place],
        "sources": None if now.description is None else len(described_sources(now.description)),
        "delivered": consumed_between(was, now),
    }
    return Page("compared", f"{asked.name}, steps {old:,} and {new:,}", document)


def _saved(opened: Opened, name: str, step: int) -> Saved:
    folder = opened.folder(name)
    found = [generation for generation in generations_in(folder) if generation.step == step]
    if not found:
        message = f"{name} has no state of step {step:,}"
        raise KeyNotFound(message)
    best = max(found, key=lambda generation: generation.complete)
    return read_saved(os.path.join(folder, best.names[0]))
