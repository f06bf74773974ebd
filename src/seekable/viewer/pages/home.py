"""The first page: what is open, and the box that goes anywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from seekable.errors import InvalidArgument
from seekable.facts.documents import json_safe
from seekable.facts.survey import data_facts
from seekable.loader.loader import Loader
from seekable.viewer.page import Page, Redirect

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked

__all__ = ["go", "home"]

_STEP = re.compile(r"step\s+([\d,]+)(?:\s+rank\s+(\d+))?", re.IGNORECASE)
_ROW = re.compile(r"(?:row\s+)?(-?[\d,]+)", re.IGNORECASE)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_PLACE = re.compile(r"(.+):(\d+)")
_HELP = (
    "write a row (1,234,567 or -1), a share (50%), a step (step 48210 rank 3), a key (key:utt-17), or a file "
    "and its row (part-00012.jsonl:531)"
)


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


def go(opened: Opened, asked: Asked) -> Redirect:
    """Return the address that a text names: a row, a share, a step, a key, or a file and its row.

    Raises:
        InvalidArgument: the text is none of these, or nothing of its kind is open.
    """
    text = asked.text("to").strip()
    given = asked.text("in")
    if found := _STEP.fullmatch(text):
        if not opened.pipelines:
            message = f"{text!r} names a step, and no pipeline is open: seekable view CHECKPOINTS opens one"
            raise InvalidArgument(message)
        name = given if given in opened.pipelines else next(iter(opened.pipelines))
        rank = f"?rank={int(found[2])}" if found[2] else ""
        return Redirect(f"p/{name}/step/{_number(found[1])}{rank}")
    if not opened.datasets:
        message = f"{text[:80]!r} cannot be looked for: no data is open"
        raise InvalidArgument(message)
    name = given if given in opened.datasets else next(iter(opened.datasets))
    if found := _ROW.fullmatch(text):
        return Redirect(f"d/{name}/row/{_number(found[1])}")
    if found := _PERCENT.fullmatch(text):
        size = opened.dataset(name).size or 0
        return Redirect(f"d/{name}/rows?at={min(int(size * float(found[1]) / 100), max(size - 1, 0))}")
    if text.startswith("key:"):
        return Redirect(f"d/{name}/key?{urlencode({'key': text.removeprefix('key:')})}")
    if found := _PLACE.fullmatch(text):
        return Redirect(f"d/{name}/at?{urlencode({'file': found[1], 'row': int(found[2])})}")
    message = f"{text[:80]!r} cannot be read: {_HELP}"
    raise InvalidArgument(message)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


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
