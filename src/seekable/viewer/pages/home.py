"""The first page: what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.loader.loader import Loader
from seekable.viewer.facts.data_survey import data_facts
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked


def home(opened: Opened, _: Asked) -> Page:
    """Return the datasets, pipelines, folders of states and jobs that are open."""
    document = {
        "datasets": [
            {"name": name, **data_facts(dataset.node)} for name, dataset in list(opened.datasets.items())
        ],
        "pipelines": [_pipeline(name, each) for name, each in opened.pipelines.items()],
        "states": [{"name": name, "path": json_safe(path)} for name, path in opened.states.items()],
        "opening": [name for name in opened.opening if name not in opened.datasets],
        "jobs": [job.document() for job in opened.jobs.all() if job.kind != "index"],
    }
    return Page("home", "What is open", document)


def _pipeline(name: str, each: OpenPipeline) -> dict[str, Any]:
    pipeline = each.pipeline
    if each.is_stream:
        stream = pipeline.dataset if isinstance(pipeline, Loader) else pipeline
        return {"name": name, "kind": "stream", "pipeline": json_safe(repr(stream))}
    loader = each.loader
    return {
        "name": name,
        "kind": "pipeline",
        "pipeline": json_safe(loader.dataset.node.expression()),
        "records": loader.dataset.size,
        "batch": loader.global_batch_size if each.has_batch else None,
        "world_size": loader.world_size,
        "step": loader.step,
    }
