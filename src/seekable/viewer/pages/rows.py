"""Rows of a dataset as tables: some in file order, drawn at random, with a text, or equal to others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptRecord
from seekable.nodes.graph import known_size
from seekable.nodes.node import node_of
from seekable.viewer.facts.json_documents import json_safe, json_value, place_as_json
from seekable.viewer.facts.key_paths import path_of
from seekable.viewer.facts.reading import FROM_INDEX, from_sample, read_rows, read_sample, sample_rows
from seekable.viewer.facts.search import (
    MOST_HITS,
    Duplicates,
    SearchResult,
    duplicates,
    search_all,
    search_sample,
)
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import asked_job
from seekable.viewer.pages.row import comings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.dataset.dataset import Dataset
    from seekable.viewer.facts.search import Hit
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MOST_ROWS = 500
_MOST_COLUMNS = 8
_MOST_CHARACTERS = 400


_HITS_SHOWN = 50
_HIT_HEADER = ("row", "file", "row in file", "key", "before", "text", "after")

_GROUPS_SHOWN = 20


def rows(opened: Opened, asked: Asked) -> Page:
    """Return rows from a place on, or the first ones of a sample."""
    dataset = opened.dataset(asked.name)
    size = node_of(dataset).size or 0
    count = asked.count("n", default=50, least=1, most=_MOST_ROWS)
    order = asked.choice("order", ("file", "sample"))
    seed = asked.count("seed", default=0)
    at = asked.count("at", default=0)
    if order == "sample":
        numbers = sample_rows(size, min(at + count, size), seed)[at:]
        made_of = from_sample(int(numbers.size), of=size, seed=seed)
    else:
        numbers, made_of = np.arange(min(at, size), min(at + count, size)), FROM_INDEX
    given = [key for key in asked.text("keys").split(",") if key]
    table, shown = table_of(dataset, numbers, given)
    document = {
        "name": asked.name,
        "records": node_of(dataset).size,
        "order": order,
        "seed": seed if order == "sample" else None,
        "at": at,
        "n": count,
        "made_of": made_of,
        "rows": shown,
    }
    more = {"table": table, "before": max(0, at - count), "after": at + count, "last": max(0, size - count)}
    return Page("rows", f"{asked.name}, rows", document, more, table=table)


def table_of(
    dataset: Dataset, numbers: Int64s, keys: Sequence[str] = ()
) -> tuple[PageRows, list[dict[str, Any]]]:
    """Return some rows as a table of their most frequent keys, and as JSON documents with their places.

    A corrupt record is a row with its error.
    """
    records = read_sample(node_of(dataset), numbers) if numbers.size else []
    places = dataset.locate(numbers.tolist()) if numbers.size else []
    columns = [(key, tuple(key.split("."))) for key in keys] or _frequent_keys(records)
    header = ["row", "file", "row in file", *(name for name, _ in columns)]
    out: list[list[Any]] = []
    shown: list[dict[str, Any]] = []
    for number, place, record in zip(numbers.tolist(), places, records, strict=True):
        location = place_as_json(place)
        first = location[0] if isinstance(location, list) else location
        error = str(record) if isinstance(record, CorruptRecord) else None
        cells = (
            [error, *[""] * (len(columns) - 1)] if error else [_value_of(record, path) for _, path in columns]
        )
        out.append([number, first["path"], first["row"], *cells])
        value = {"error": error} if error else {"record": _short(json_value(record))}
        shown.append({"row": number, "location": location, **value})
    return PageRows(
        header, [[json_safe(str(row[1])) if at == 1 else row[at] for at in range(len(row))] for row in out]
    ), shown


def _frequent_keys(records: Sequence[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the keys that most records have, at most eight; the record itself where none has keys."""
    counts: Counter[tuple[str, ...]] = Counter()
    for record in records:
        if isinstance(record, dict):
            counts.update(_paths(record))
    if not counts:
        return [("record", ())]
    # A Counter keeps the order of what came as often.
    found = [path for path, _ in counts.most_common(_MOST_COLUMNS)]
    return [(".".join(path), path) for path in found]


def _value_of(record: Any, path: Sequence[str]) -> Any:
    """Return the value at a key of a record; None without one."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _paths(record: dict[Any, Any]) -> list[tuple[str, ...]]:
    """Return the keys of a record, and the inner keys in place of one that holds a dict."""
    found: list[tuple[str, ...]] = []
    for key, value in record.items():
        if isinstance(value, dict) and value:
            found += [(str(key), str(inner)) for inner in value]
        else:
            found.append((str(key),))
    return found


def _short(value: Any) -> Any:
    """Return a value with the beginnings of long texts."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value[:_MOST_CHARACTERS]]
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"{value[:_MOST_CHARACTERS]}... ({len(value):,} characters)"
    return value


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
    job = asked_job(opened, asked)
    document: dict[str, Any] = {"name": asked.name, "text": json_value(text), **job.document}
    shown: dict[str, Any] = {
        "rows": node_of(dataset).size,
        "job_live": False,
        "found": None,
        "hits": [],
        **job.shown,
    }
    shown |= {"at": at, "n": _HITS_SHOWN}
    found = job.partial if isinstance(job.partial, SearchResult) else None
    if text and not job.document:
        found = _of_sample(opened, asked.name, text, n)
    table = None
    if found is not None:
        document |= found.document()
        hits = found.hits[at : at + _HITS_SHOWN]
        shown |= {"found": found, "hits": _shown_hits(opened, dataset, hits)}
        table = PageRows(_HIT_HEADER, _hit_rows(dataset, found))
    return Page("search", f"{asked.name}, search", document, shown, table=table)


def search_everything(opened: Opened, asked: Asked) -> Redirect:
    """Start the search of all records, and return where it is shown."""
    text = asked.text("q")
    work = search_all(node_of(opened.dataset(asked.name)), text)
    job = opened.jobs.start("search", (asked.name, text), work)
    return Redirect(f"d/{asked.name}/search?job={job.name}")


def _of_sample(opened: Opened, name: str, text: str, n: int) -> SearchResult:
    """Return the rows of a sample with a text."""
    node = node_of(opened.dataset(name))
    work = search_sample(node, text, n=min(n, known_size(node, "a search")))
    return opened.kept.last(("search", name, text, n), work)


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
        [hit.row, file["path"], file["row"], hit.key, hit.before, found.text, hit.after]
        for hit, file in zip(found.hits, files, strict=True)
    ]


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
    job = opened.jobs.start("duplicates", (asked.name, key), work)
    return Redirect(f"d/{asked.name}/duplicates?job={job.name}")
