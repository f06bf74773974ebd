"""Other names of a row: counted from the end, its key, its place in a file, or none, for a row at random."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.nodes.contract import Leaf
from seekable.nodes.keys.lookup import lookup_of
from seekable.viewer.facts.documents import json_safe, place_as_json
from seekable.viewer.facts.sources import files_named
from seekable.viewer.page import Page, Redirect
from seekable.viewer.pages.row import check_row

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset
    from seekable.nodes.keys.lookup import Lookup
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MOST_SHOWN = 100
_MOST_NAMED = 5


def from_end(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of a row that is counted from the end."""
    dataset, back = opened.dataset(asked.name), int(asked.path["back"])
    number = (dataset.size or 0) - back
    if not back or number < 0:
        check_row(dataset, -back, asked.name)
    return Redirect(f"d/{asked.name}/row/{number}")


def at_random(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of a row that is drawn anew each time.

    Raises:
        OutOfRange: there are no rows.
    """
    dataset = opened.dataset(asked.name)
    if not dataset.size:
        check_row(dataset, 0, asked.name)
    return Redirect(f"d/{asked.name}/row/{secrets.randbelow(dataset.size or 1)}")


def by_key(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the address of the row of a key, or a page of all rows that have it.

    The key is a part of the path or of the query. One with a slash or dots, as those of tar files are, can
    stand in the query alone: the guard lets no such path through.

    Raises:
        KeyNotFound: no record has the key.
    """
    dataset = opened.dataset(asked.name)
    key = str(asked.path["key"]) if "key" in asked.path else asked.text("key")
    found = _rows_with(lookup_of(dataset.node), key)
    if len(found) == 1:
        return Redirect(f"d/{asked.name}/row/{found[0]}")
    places = dataset.locate(found[:_MOST_SHOWN])
    rows = [
        {"row": row, "location": place_as_json(place)}
        for row, place in zip(found[:_MOST_SHOWN], places, strict=True)
    ]
    document = {"name": asked.name, "key": json_safe(key), "count": len(found), "rows": rows}
    return Page("same_key", f"{asked.name}, key {key}", document)


def by_place(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of a row of a file, which is named by its path or the end of it.

    Both are parts of the path or of the query, as a key is.

    Raises:
        KeyNotFound: there is no such file or row.
    """
    dataset = opened.dataset(asked.name)
    if "file" in asked.path:
        name, number = str(asked.path["file"]), int(asked.path["row"])
    else:
        name, number = asked.text("file"), asked.count("row", default=0)
    try:
        return Redirect(f"d/{asked.name}/row/{row_of_place(dataset, name, number)}")
    except KeyNotFound as error:
        message = f"{asked.name} has no such row: {error}"
        raise KeyNotFound(message) from None


def row_of_place(dataset: Dataset, name: str, number: int) -> int:
    """Return the row of a dataset that is a row of a file, which is named by its path or the end of it.

    Raises:
        KeyNotFound: there is no such file or row.
        InvalidArgument: several files have this name.
    """
    if os.path.isabs(name) and isinstance(dataset.node, Leaf):
        rows = dataset.node.rows_of(name, number)
        if rows:
            return rows[0]
    files = getattr(dataset.node, "files", None)
    found = files_named(files, name) if files is not None else []
    if files is None or not found:
        message = f"there is no file {name!r}"
        raise KeyNotFound(message)
    if len(found) > 1:
        paths = ", ".join(repr(files.name(at)) for at in found[:_MOST_NAMED])
        message = f"{len(found):,} files are named {name!r}: write more of the path, as in {paths}"
        raise InvalidArgument(message)
    first, records = int(files.starts[found[0]]), int(files.records[found[0]])
    if number >= records:
        message = f"{files.name(found[0])} has {records:,} rows, 0 to {records - 1:,} (asked for: {number:,})"
        raise KeyNotFound(message)
    return first + number


def _rows_with(lookup: Lookup, text: str) -> list[int]:
    """Return the rows that have a key, which is a text or the number that it writes.

    Raises:
        KeyNotFound: no record has the key.
    """
    found = lookup.positions(text)
    if not found and text.isdecimal() and str(int(text)) == text:
        found = lookup.positions(int(text))
    return found or [lookup.position(text)]
