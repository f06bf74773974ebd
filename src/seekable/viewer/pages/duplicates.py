"""The rows of data that equal another one, by a job over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.facts.duplicates import Duplicates, duplicates
from seekable.viewer.facts.key_paths import path_of
from seekable.viewer.facts.reading import read_rows
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import shown_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SHOWN = 20


def page(opened: Opened, asked: Asked) -> Page:
    """Return the groups of equal rows that the job of the address found so far.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
    """
    dataset, key = opened.dataset(asked.name), asked.text("key")
    document: dict[str, Any] = {"name": asked.name}
    shown: dict[str, Any] = {"job": None, "job_live": False, "found": None, "groups": [], "key": key}
    shown["rows"] = dataset.size
    table = None
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        document["job"] = {**job.document(), "result": None}
        shown |= {"job": document["job"], **shown_of(job)}
        if isinstance(job.partial, Duplicates):
            found = job.partial
            document |= found.document()
            groups = found.groups[:_SHOWN]
            firsts = np.array([group.rows[0] for group in groups], np.int64)
            records = read_rows(dataset.node, firsts) if groups else []
            shown |= {"found": found, "groups": list(zip(groups, records, strict=True)), "key": found.key}
            rows = [(at, group.count, row) for at, group in enumerate(found.groups) for row in group.rows]
            table = PageRows(("group", "count", "row"), rows)
    return Page("duplicates", f"{asked.name}, duplicates", document, shown, table=table)


def find(opened: Opened, asked: Asked) -> Redirect:
    """Start to compare all rows, and return where the groups are shown.

    Raises:
        InvalidArgument: the key is not written as a key.
    """
    key = asked.text("key")
    work = duplicates(opened.dataset(asked.name).node, path=path_of(key) if key else ())
    job = opened.jobs.start("duplicates", (asked.name, key), work)
    return Redirect(f"d/{asked.name}/duplicates?job={job.name}")
