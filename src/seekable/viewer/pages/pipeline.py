"""A pipeline: its tree, its sizes, and the steps before and after the saved one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.facts.documents import json_safe
from seekable.facts.source_counts import source_names, source_nodes
from seekable.loader.loader import Loader
from seekable.nodes.display import explained
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["pipeline"]


def pipeline(opened: Opened, asked: Asked) -> Page:
    """Return what a pipeline is: the records of an epoch, batches, ranks, lanes and sources."""
    found = opened.pipeline(asked.name)
    each = found.pipeline
    if not isinstance(each, Loader) or not hasattr(each.dataset, "node"):
        stream = each.dataset if isinstance(each, Loader) else each
        document: dict[str, Any] = {
            "name": asked.name,
            "kind": "stream",
            "lanes": stream.lanes,
            "endless": stream.endless,
            "fingerprint": stream.fingerprint,
            "nodes": json_safe(stream.explain()).splitlines(),
        }
        return Page("stream", asked.name, document)
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
        "batch": each.plan(step=each.step).batch if found.has_batch else None,
        "world_size": each.world_size,
        "step": each.step,
        "epoch": each.epoch,
        "sources": [{"name": name, "records": source.size} for name, source in sources],
        "nodes": [json_safe(line) for line in explained(node)],
        "notes": list(found.notes),
    }
    return Page("pipeline", asked.name, document, {"has_log": opened.log is not None})
