"""The health of data: a comparison of its files with their index, as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.viewer.facts.data_survey import data_facts
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import shown_of
from seekable.viewer.verification import verification_work

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_DEPTHS = ("ends", "deep", "decode")
_HEADER = ("kind", "path", "row", "offset", "message")


def health(opened: Opened, asked: Asked) -> Page:
    """Return what a comparison would read, or how far the job of the address is and what it found.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
    """
    dataset = opened.dataset(asked.name)
    document: dict[str, Any] = {"name": asked.name, **data_facts(dataset.node)}
    shown: dict[str, Any] = {"job": None, "problems": (), "depths": _DEPTHS}
    table = None
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        document["job"] = job.document()
        shown |= {"job": document["job"], **shown_of(job)}
        result = document["job"]["result"] or {}
        rows = [[problem[key] for key in _HEADER] for problem in result.get("problems", ())]
        shown["problems"] = rows
        table = PageRows(_HEADER, rows)
    return Page("health", f"{asked.name}, health", document, shown, table=table)


def verify(opened: Opened, asked: Asked) -> Redirect:
    """Start the comparison of a dataset with its index, and return where it is shown."""
    dataset, depth = opened.dataset(asked.name), asked.choice("depth", _DEPTHS)
    work = verification_work(
        dataset.node,
        opened.paths.get(asked.name, asked.name),
        deep=depth != "ends",
        decode=depth == "decode",
        index_dir=opened.index_dir,
    )
    # Of a comparison that runs there is one; one that has ended is done anew, because files change.
    ended = sum(job.kind == "verify" and not job.is_live for job in opened.jobs.all())
    job = opened.jobs.start("verify", (asked.name, depth, ended), work)
    return Redirect(f"d/{asked.name}/health?job={job.name}")
