"""Some rows of a dataset as a table: in the order of the files, or drawn at random."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptRecord
from seekable.viewer.facts.documents import json_safe, json_value, place_as_json
from seekable.viewer.facts.made_of import FROM_INDEX, from_sample
from seekable.viewer.facts.reading import read_sample, sample_rows
from seekable.viewer.page import Page, PageRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.dataset.dataset import Dataset
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

MOST_ROWS = 500
_MOST_COLUMNS = 8
_MOST_CHARACTERS = 400


def rows(opened: Opened, asked: Asked) -> Page:
    """Return rows from a place on, or the first ones of a sample."""
    dataset = opened.dataset(asked.name)
    size = dataset.size or 0
    count = asked.count("n", default=50, least=1, most=MOST_ROWS)
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
        "records": dataset.size,
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
    records = read_sample(dataset.node, numbers) if numbers.size else []
    places = dataset.locate(numbers.tolist()) if numbers.size else []
    columns = [(key, tuple(key.split("."))) for key in keys] or frequent_keys(records)
    header = ["row", "file", "row in file", *(name for name, _ in columns)]
    out: list[list[Any]] = []
    shown: list[dict[str, Any]] = []
    for number, place, record in zip(numbers.tolist(), places, records, strict=True):
        location = place_as_json(place)
        first = location[0] if isinstance(location, list) else location
        error = str(record) if isinstance(record, CorruptRecord) else None
        cells = (
            [error, *[""] * (len(columns) - 1)] if error else [value_at(record, path) for _, path in columns]
        )
        out.append([number, first["path"], first["row"], *cells])
        value = {"error": error} if error else {"record": _short(json_value(record))}
        shown.append({"row": number, "location": location, **value})
    return PageRows(
        header, [[json_safe(str(row[1])) if at == 1 else row[at] for at in range(len(row))] for row in out]
    ), shown


def frequent_keys(records: Sequence[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the keys that most records have, at most eight; of records without keys, the record itself."""
    counts: Counter[tuple[str, ...]] = Counter()
    for record in records:
        if isinstance(record, dict):
            counts.update(_paths(record))
    if not counts:
        return [("record", ())]
    # A Counter keeps the order of what came as often.
    found = [path for path, _ in counts.most_common(_MOST_COLUMNS)]
    return [(".".join(path), path) for path in found]


def value_at(record: Any, path: Sequence[str]) -> Any:
    """Return the value of a key of a record, None if there is none."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _paths(record: dict[Any, Any]) -> list[tuple[str, ...]]:
    """Return the keys of a record, and in place of a key with a dict the keys of that."""
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
