"""Data that is being opened: the progress of its index, and the heads of its files meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.opened import heads_of
from seekable.viewer.page import Page, Redirect
from seekable.viewer.pages.job import shown_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def opening(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return how far the index of data is; once it is complete, the address of the data.

    Raises:
        KeyNotFound: no such data was opened in the background.
    """
    job, name = opened.opening.get(asked.name), asked.name
    if job is None and name in opened.datasets:
        return Redirect(f"d/{name}/")
    if job is None:
        message = f"no data {name!r} is being opened"
        raise KeyNotFound(message)
    if name in opened.datasets and job.state == "done" and asked.query.get("as") != "json":
        return Redirect(f"d/{name}/")
    path = opened.paths.get(name, name)
    document = {
        "name": name,
        "path": json_safe(path),
        "open": name in opened.datasets,
        "job": job.document(),
        "heads": opened.kept.get(("heads", name), lambda: heads_of(path)),
    }
    return Page("opening", f"{name} is being indexed", document, {"job": document["job"], **shown_of(job)})
