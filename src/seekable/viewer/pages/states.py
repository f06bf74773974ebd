"""A folder of states: its generations, one of them explained, and two compared."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.loader.checkpoint_files import generations_in, read_saved, state_name
from seekable.resume.from_description import described_sources
from seekable.state.descriptions import outline
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.saved_state import (
    consumed_between,
    pipeline_differences,
    place_differences,
    state_document,
)
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.loader.checkpoint_files import Generation, Saved
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MOST_MISSING = 10


def states(opened: Opened, asked: Asked) -> Page:
    """Return the generations of a folder, the newest first."""
    folder = opened.folder(asked.name)
    found = [
        {
            "step": generation.step,
            "ranks": generation.ranks,
            "present": len(generation.names),
            "complete": generation.complete,
            "missing": _missing(generation),
        }
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
    """Return the differences of two states, as ``seekable state diff`` prints them, and what came between."""
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
