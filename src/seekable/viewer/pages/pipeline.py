"""A pipeline: its tree, its sizes, and the steps before and after the saved one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.loader.loader import Loader
from seekable.nodes.display import explained
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.sources import source_names, source_nodes
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.stream.stream import Stream
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def pipeline(opened: Opened, asked: Asked) -> Page:
    """Return what a pipeline is: the records of an epoch, batches, ranks, lanes and sources."""
    found = opened.pipeline(asked.name)
    if found.is_stream:
        return _stream(asked.name, found.pipeline)
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


def _stream(name: str, pipeline: Loader | Stream) -> Page:
    loader = pipeline if isinstance(pipeline, Loader) else None
    stream: Any = pipeline if loader is None else loader.dataset
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
