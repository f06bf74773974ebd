"""A step of a stream: the batches before it are made again from the nearest saved state, as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.loader.loader import Loader
from seekable.viewer.facts.replay import MOST_RECORDS, Replay, nearest_state, replay
from seekable.viewer.page import Page, Redirect
from seekable.viewer.pages.job import shown_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def page(opened: Opened, asked: Asked) -> Page:
    """Return what a replay of a step would make, or how far the job of the address is and the step's records.

    Raises:
        KeyNotFound: there is no such job, or no such pipeline.
    """
    loader, step = _loader(opened, asked.name), int(asked.path["step"])
    began, _ = nearest_state(opened.states.values(), loader.dataset.fingerprint, step)
    document: dict[str, Any] = {
        "name": asked.name,
        "step": step,
        "began": began,
        "batch": loader.global_batch_size,
        "batches": step - began + 1,
    }
    shown: dict[str, Any] = {"job": None, "records": None}
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        partial = job.partial
        # As they are and not as in JSON, so that arrays are shown in a line.
        records = partial.records if isinstance(partial, Replay) else None
        document["job"] = job.document()
        shown = {"job": document["job"], "records": records and records[:MOST_RECORDS], **shown_of(job)}
    return Page("replay", f"{asked.name}, step {step:,}", document, shown)


def start(opened: Opened, asked: Asked) -> Redirect:
    """Start the replay of a step, and return where it is shown."""
    loader, step = _loader(opened, asked.name), int(asked.path["step"])
    began, state = nearest_state(opened.states.values(), loader.dataset.fingerprint, step)
    batch, ranks = loader.global_batch_size, loader.world_size
    work = replay(loader.dataset, batch=batch, world_size=ranks, step=step, began=began, state=state)
    job = opened.jobs.start("replay", (asked.name, step, began), work)
    return Redirect(f"p/{asked.name}/replay/{step}?job={job.name}")


def _loader(opened: Opened, name: str) -> Loader:
    """Return the loader of a stream.

    Raises:
        InvalidArgument: it is a stream by itself, without batches.
    """
    found = opened.pipeline(name).pipeline
    if not isinstance(found, Loader) or not opened.pipeline(name).is_stream:
        message = f"{name} is a stream without batches: open the Loader of the run to replay its steps"
        raise InvalidArgument(message)
    return found
