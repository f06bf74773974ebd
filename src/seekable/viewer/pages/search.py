"""The rows of data with a text in them: of a sample at once, of all records as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.nodes.graph import known_size
from seekable.viewer.facts.documents import json_value, place_as_json
from seekable.viewer.facts.search import MOST_HITS, SearchResult, search_all, search_sample
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.row import comings

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset
    from seekable.viewer.facts.search import Hit
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SHOWN = 50
_HEADER = ("row", "file", "row in file", "key", "before", "text", "after")


def search(opened: Opened, asked: Asked) -> Page:
    """Return the rows with a text: those of a sample, or what the job of the address found so far.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
    """
    dataset, text = opened.dataset(asked.name), asked.text("q")
    at, n = (
        asked.count("at", default=0, most=MOST_HITS),
        asked.count("n", default=opened.sample, most=10_000),
    )
    document: dict[str, Any] = {"name": asked.name, "text": json_value(text)}
    shown: dict[str, Any] = {"rows": dataset.size, "job": None, "job_live": False, "found": None, "hits": []}
    shown |= {"at": at, "n": _SHOWN}
    found = None
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        found = job.partial if isinstance(job.partial, SearchResult) else None
        document["job"] = {**job.document(), "result": None}
        shown |= {"job": document["job"], **shown_of(job)}
    elif text:
        found = _of_sample(opened, asked.name, text, n)
    table = None
    if found is not None:
        document |= found.document()
        hits = found.hits[at : at + _SHOWN]
        shown |= {"found": found, "hits": _shown_hits(opened, dataset, hits)}
        table = PageRows(_HEADER, _rows(dataset, found))
    return Page("search", f"{asked.name}, search", document, shown, table=table)


def search_everything(opened: Opened, asked: Asked) -> Redirect:
    """Start the search of all records, and return where it is shown."""
    text = asked.text("q")
    work = search_all(opened.dataset(asked.name).node, text)
    job = opened.jobs.start("search", (asked.name, text), work)
    return Redirect(f"d/{asked.name}/search?job={job.name}")


def _of_sample(opened: Opened, name: str, text: str, n: int) -> SearchResult:
    """Return the rows of a sample with a text."""
    node = opened.dataset(name).node
    work = search_sample(node, text, n=min(n, known_size(node, "a search")))
    return opened.kept.get(("search", name, text, n), lambda: list(work)[-1])


def _shown_hits(opened: Opened, dataset: Dataset, hits: tuple[Hit, ...]) -> list[dict[str, Any]]:
    """Return what the page shows of some rows: each with its file, and when it comes in training."""
    places = dataset.locate([hit.row for hit in hits]) if hits else []
    return [
        {"hit": hit, "place": _first(place_as_json(place)), "training": comings(opened, place)}
        for hit, place in zip(hits, places, strict=True)
    ]


def _rows(dataset: Dataset, found: SearchResult) -> list[list[Any]]:
    """Return the rows of the table of all that was kept."""
    places = dataset.locate([hit.row for hit in found.hits]) if found.hits else []
    files = [_first(place_as_json(place)) for place in places]
    return [
        [hit.row, file["path"], file["row"], hit.key, hit.before, found.text, hit.after]
        for hit, file in zip(found.hits, files, strict=True)
    ]


def _first(location: Any) -> dict[str, Any]:
    found: dict[str, Any] = location[0] if isinstance(location, list) else location
    return found
