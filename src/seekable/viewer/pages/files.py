"""The files of a dataset, and one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import KeyNotFound
from seekable.formats.shar.shar_source import DataSource
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.data_survey import file_sizes, files_of
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.made_of import FROM_INDEX
from seekable.viewer.figures import files_figure
from seekable.viewer.page import Page, PageRows, Svg
from seekable.viewer.pages.rows import table_of
from seekable.viewer.stale import status_of

if TYPE_CHECKING:
    from seekable.index.fileset import FileSet
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SORTS = ("name", "records", "bytes")


def files(opened: Opened, asked: Asked) -> Page:
    """Return the files of a dataset: the records and bytes of each, and whether it is as it was indexed."""
    found = _files(opened, asked.name)
    sort, at = asked.choice("sort", _SORTS), asked.count("at", default=0)
    count = asked.count("n", default=50, least=1, most=500)
    records, sizes = found.records, found.data_sizes
    order = np.arange(len(found))
    if sort != "name":
        order = np.argsort(-(records if sort == "records" else sizes), kind="stable")
    rows = [
        [
            int(number),
            json_safe(found.name(int(number))),
            int(records[number]),
            int(sizes[number]),
            status_of(found, int(number))[0],
        ]
        for number in order[at : at + count]
    ]
    header = ["file", "name", "records", "bytes", "index"]
    document = {
        "name": asked.name,
        "files": len(found),
        "records": int(records.sum()),
        "bytes": int(sizes.sum()),
        "made_of": FROM_INDEX,
        "sort": sort,
        "at": at,
        "n": count,
        "rows": [dict(zip(header, row, strict=True)) for row in rows],
    }
    more = {
        "before": max(0, at - count),
        "after": at + count,
        "last": max(0, len(found) - count),
        "rows": rows,
    }
    return Page("files", f"{asked.name}, files", document, more, table=PageRows(header, rows))


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the largest files as bars of their bytes."""
    _files(opened, asked.name)
    node = opened.dataset(asked.name).node
    assert isinstance(node, DataSource)
    figure = opened.kept.get(("files", asked.name), lambda: files_figure(asked.name, file_sizes([node])))
    return Svg(figure.draw(asked.choice("theme", THEMES)))  # type: ignore[arg-type]  # one of THEMES


def file(opened: Opened, asked: Asked) -> Page:
    """Return one file, and its first rows."""
    found, number = _files(opened, asked.name), int(asked.path["file"])
    if number >= len(found):
        message = f"{asked.name} has {len(found):,} files, 0 to {len(found) - 1:,} (asked for: {number:,})"
        raise KeyNotFound(message)
    entry = found.entry(number)
    first, records = int(found.starts[number]), int(found.records[number])
    numbers = np.arange(first, first + min(records, 20))
    table, rows = table_of(opened.dataset(asked.name), numbers)
    document: dict[str, Any] = {
        "name": asked.name,
        "file": number,
        "path": json_safe(found.shown_path(number)),
        "format": entry.format,
        "records": records,
        "bytes": int(found.data_sizes[number]),
        "first_row": first,
        "index": status_of(found, number)[0],
        "content": entry.content_digest,
        "made_of": FROM_INDEX,
    }
    shown = {"table": table, "rows": rows, "count": len(found)}
    return Page("file", f"{asked.name}, file {number:,}", document, shown, table=table)


def _files(opened: Opened, name: str) -> FileSet:
    node = opened.dataset(name).node
    if not isinstance(node, DataSource):
        message = f"{name} is not made of files"
        raise KeyNotFound(message)
    return files_of([node])[0]
