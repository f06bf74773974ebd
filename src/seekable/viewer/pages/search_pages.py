"""The rows that have a text or match a regular expression, and rows that are equal to others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from seekable.nodes.graph import known_size
from seekable.nodes.node import node_of
from seekable.viewer.facts.duplicates import Duplicates, duplicates
from seekable.viewer.facts.filtered_rows import is_quick, is_small
from seekable.viewer.facts.json_documents import json_value, place_as_json
from seekable.viewer.facts.key_paths import path_of, path_text, values_at
from seekable.viewer.facts.reading import read_rows
from seekable.viewer.facts.search import MOST_HITS, SearchResult, search_all, search_sample
from seekable.viewer.page import Page, PageRows, Redirect, query_with
from seekable.viewer.pages.job import PageWork, asked_job, result_of, started
from seekable.viewer.pages.page_records import data_key
from seekable.viewer.pages.row import comings
from seekable.viewer.pages.searched import query_of, searched_of

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset
    from seekable.viewer.facts.search import Hit, Searched
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked
    from seekable.viewer.pages.job import AskedJob

_HITS_SHOWN = 50
_HIT_HEADER = ("row", "file", "row in file", "key", "before", "text", "after")

_GROUPS_SHOWN = 20


def search(opened: Opened, asked: Asked) -> Page:
    """Return the rows with a text: those of a sample, or what the job of the address found so far.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
        InvalidArgument: the key is not written as one.
    """
    dataset, what = opened.dataset(asked.name), searched_of(asked)
    at = asked.count("at", default=0, most=MOST_HITS)
    job = asked_job(opened, asked)
    if what.text and not job.document:
        job = _at_once(opened, asked, what, anew=False)
    found = job.partial if isinstance(job.partial, SearchResult) else None
    what = what if found is None else found.searched
    document: dict[str, Any] = {"name": asked.name, "text": json_value(what.text), **job.document}
    shown: dict[str, Any] = {"rows": node_of(dataset).size, "found": found, "hits": [], "what": what}
    shown |= {"at": at, "n": _HITS_SHOWN, "job_live": False, **job.shown, "again": query_of(what)}
    shown |= {"key": "" if what.path is None else path_text(what.path)}
    shown["of_sample"] = not asked.query.get("job")
    table = None
    if found is not None:
        document |= found.document()
        shown["hits"] = _shown_hits(opened, dataset, found.hits[at : at + _HITS_SHOWN])
        table = PageRows(_HIT_HEADER, _hit_rows(dataset, found))
    return Page("search", f"{asked.name}, search", document, shown, table=table)


def search_everything(opened: Opened, asked: Asked) -> Redirect:
    """Start the search of all records, and return where it is shown."""
    what = searched_of(asked)
    work = search_all(node_of(opened.dataset(asked.name)), what)
    key = (*data_key(opened, asked.name), what)
    return started(opened, asked, "search", key, work, f"d/{asked.name}/search?job={{job}}&{query_of(what)}")


def search_again(opened: Opened, asked: Asked) -> Redirect:
    """Start the search of a page again after it was stopped or failed, and return where it is shown."""
    _at_once(opened, asked, searched_of(asked), anew=True)
    return Redirect(f"d/{asked.name}/search{query_with(asked.query, {})}")


def _at_once(opened: Opened, asked: Asked, what: Searched, *, anew: bool) -> AskedJob:
    """Return the rows that are found among all where these are small, else in a sample.

    It is a job where that takes long, as expressions may.
    """
    node = node_of(opened.dataset(asked.name))
    n = min(asked.count("n", default=opened.sample, most=10_000), known_size(node, "a search"))
    is_whole = is_small(node) and not asked.query.get("n")
    work = PageWork(
        "search" if is_whole else "search of a sample",
        (*data_key(opened, asked.name), what, None if is_whole else n),
        lambda: search_all(node, what) if is_whole else search_sample(node, what, n=n),
        again=f"d/{asked.name}/search-again{query_with(asked.query, {})}",
        page=f"d/{asked.name}/search{query_with(asked.query, {})}",
        at_once=True,
    )
    return result_of(opened, work, small=not what.regex and is_quick(node), anew=anew)


def _shown_hits(opened: Opened, dataset: Dataset, hits: tuple[Hit, ...]) -> list[dict[str, Any]]:
    """Return what the page shows of some rows: each with its file, and when it comes in training."""
    places = dataset.locate([hit.row for hit in hits]) if hits else []
    return [
        {"hit": hit, "place": _first(place_as_json(place)), "training": comings(opened, place)}
        for hit, place in zip(hits, places, strict=True)
    ]


def _hit_rows(dataset: Dataset, found: SearchResult) -> list[list[Any]]:
    """Return the table's rows, one for each hit that was kept."""
    places = dataset.locate([hit.row for hit in found.hits]) if found.hits else []
    files = [_first(place_as_json(place)) for place in places]
    return [
        [hit.row, file["path"], file["row"], hit.key, *_around(hit)]
        for hit, file in zip(found.hits, files, strict=True)
    ]


def _around(hit: Hit) -> tuple[str, str, str]:
    """Return what stands before the first place of a hit, the place, and what follows."""
    start, stop = hit.spans[0] if hit.spans else (0, 0)
    return hit.excerpt[:start], hit.excerpt[start:stop], hit.excerpt[stop:]


def _first(location: Any) -> dict[str, Any]:
    found: dict[str, Any] = location[0] if isinstance(location, list) else location
    return found


def duplicates_page(opened: Opened, asked: Asked) -> Page:
    """Return the groups of equal rows that the job of the address found so far.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
    """
    dataset, key = opened.dataset(asked.name), asked.text("key")
    job = asked_job(opened, asked)
    document: dict[str, Any] = {"name": asked.name, **job.document}
    shown: dict[str, Any] = {"job_live": False, "found": None, "groups": [], "key": key, **job.shown}
    shown["rows"] = node_of(dataset).size
    table, found = None, job.partial
    if isinstance(found, Duplicates):
        document |= found.document()
        groups = found.groups[:_GROUPS_SHOWN]
        firsts = np.array([group.rows[0] for group in groups], np.int64)
        records = read_rows(node_of(dataset), firsts) if groups else []
        if found.key:
            values = [values_at(record, path_of(found.key)) for record in records]
            records = [each[0] if len(each) == 1 else each for each in values]
        shown |= {"found": found, "groups": list(zip(groups, records, strict=True)), "key": found.key}
        rows = [(at, group.count, row) for at, group in enumerate(found.groups) for row in group.rows]
        table = PageRows(("group", "count", "row"), rows)
    return Page("duplicates", f"{asked.name}, duplicates", document, shown, table=table)


def find_duplicates(opened: Opened, asked: Asked) -> Redirect:
    """Start to compare all rows, and return where the groups are shown.

    Raises:
        InvalidArgument: the key is not written as a key.
    """
    key = asked.text("key")
    work = duplicates(node_of(opened.dataset(asked.name)), path=path_of(key) if key else ())
    keyed = (*data_key(opened, asked.name), key)
    page = f"d/{asked.name}/duplicates?job={{job}}" + (f"&{urlencode({'key': key})}" if key else "")
    return started(opened, asked, "duplicates", keyed, work, page)
