"""Rows of a dataset as a table: columns, with bars of their values that lead to filters, and cells."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptRecord
from seekable.formats.tokens.token_source import TokenSource
from seekable.nodes.node import LeafNode, node_of
from seekable.viewer.cells import CellMaker, value_of
from seekable.viewer.engine_at_hand import engine_at_hand
from seekable.viewer.facts.column_facts import ColumnFacts, Columns, columns, shown_number, top_paths
from seekable.viewer.facts.filtered_rows import is_quick
from seekable.viewer.facts.json_documents import json_safe, json_value, place_as_json
from seekable.viewer.facts.key_paths import path_of, path_text
from seekable.viewer.facts.row_conditions import subject_text
from seekable.viewer.page import PageRows
from seekable.viewer.pages.job import AskedJob, PageWork, result_of
from seekable.viewer.pages.page_records import data_key, rows_looked_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.viewer.cells import Cell
    from seekable.viewer.facts.column_facts import ColumnBar
    from seekable.viewer.facts.key_paths import KeyPath
    from seekable.viewer.facts.key_statistics import TopValue
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked
    from seekable.viewer.pages.page_records import PageRecords

MOST_COLUMNS = 8
"""The columns that a table has where none are chosen."""

_MOST_CHARACTERS = 400
_MOST_LABELS = 4
_FEW_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class FilterBar:
    """Some values of a column as a bar that leads to the rows that have them."""

    words: str
    """The values and their number, for people."""

    label: str
    """The value, where the bar stands for one."""

    count: int

    height: int
    """The length of the bar: 1 to 24; 0 without rows."""

    where: str
    """The condition on rows that have these values."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table of records."""

    key: str
    path: tuple[str, ...]
    is_number: bool
    bars: tuple[FilterBar, ...] = ()
    labels: bool = False
    """True if each bar is one value."""

    caption: str = ""
    """The range of the values, or of their lengths."""

    sort: str = ""
    """The order by the values that the bars are of."""

    missing: int = 0
    """The rows without the key, or with null."""

    missing_where: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table of records."""

    number: int
    path: str
    row: int
    """The row in its file."""

    error: str | None
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Some records as a table, their places, and their values as documents."""

    columns: Sequence[TableColumn]
    rows: Sequence[TableRow]
    table: PageRows
    places: list[dict[str, Any]]
    """The number and the location of each row, JSON-safe."""

    records: Sequence[Any]

    is_read: bool = True
    """False while the records are read, longer than a page may take."""

    def documents(self) -> list[dict[str, Any]]:
        """Return the rows with their records, or their errors, JSON-safe; long values have their beginnings.

        A page does not show it, so it is made for programs alone: arrays become long lists.
        """
        return [
            {**place, **({"error": row.error} if row.error else {"record": _short(json_value(record))})}
            for place, row, record in zip(self.places, self.rows, self.records, strict=True)
        ]


def columns_of(opened: Opened, name: str, *, seconds: float) -> AskedJob:
    """Return the columns: from all rows if these are small, else from a sample that may still be read."""
    node = node_of(opened.dataset(name))
    if not opened.scans or not node.size:
        return AskedJob()
    key, n = data_key(opened, name), rows_looked_at(opened, name)
    work = PageWork("keys", key, lambda: columns(node, n=n), at_once=True)
    return result_of(opened, work, small=is_quick(node), seconds=seconds)


def table_of(
    opened: Opened,
    asked: Asked,
    read: PageRecords,
    *,
    keys: Sequence[str] = (),
    asked_about: Iterable[KeyPath] = (),
    found: Columns | None = None,
    up: str = "../../",
) -> RecordTable:
    """Return some rows as a table, and as JSON documents with their places; a corrupt record is its error.

    Args:
        opened: what is open.
        asked: the address, with the name of the dataset.
        read: the rows and their records.
        keys: the keys that are shown; those that most records have if there are none.
        asked_about: keys that are shown too, if they are columns.
        found: the columns of the data, for their bars; None where they are not known.
        up: leads from the page to the root of the viewer.

    Raises:
        InvalidArgument: a key is not written as one.
    """
    name, numbers, records = asked.name, read.numbers, read.records or []
    places = opened.dataset(name).locate(numbers.tolist()) if records else []
    paths = [tuple(map(str, path_of(key))) for key in keys] or usual_paths(records, found)
    others = [tuple(map(str, path)) for path in asked_about if path and None not in path]
    paths = [*(path for path in dict.fromkeys(others) if path not in paths), *paths] if not keys else paths
    facts = {} if found is None else {each.path: each for each in found.columns}
    maker = CellMaker(
        f"{up}d/{name}/row",
        f"{up}media/d/{name}",
        opened.media,
        engine_of_rows(opened, name),
        most=120 if len(paths) <= _FEW_COLUMNS else 60,
    )
    rows, located, values = [], [], []
    for number, place, record in zip(numbers.tolist() if records else (), places, records, strict=True):
        location = place_as_json(place)
        at = location[0] if isinstance(location, list) else location
        error = str(record) if isinstance(record, CorruptRecord) else None
        cells = [] if error else maker.cells(number, record, paths)
        rows.append(TableRow(number, at["path"], at["row"], error, cells))
        located.append({"row": number, "location": location})
        values.append(
            [number, at["path"], at["row"]]
            + ([error, *[""] * (len(paths) - 1)] if error else [value_of(record, path) for path in paths])
        )
    heads = [_column(path, facts.get(path), place, rows) for place, path in enumerate(paths)]
    header = ["row", "file", "row in file", *(each.key for each in heads)]
    table = PageRows(
        header, [[json_safe(str(row[1])) if at == 1 else row[at] for at in range(len(row))] for row in values]
    )
    return RecordTable(heads, rows, table, located, records, is_read=read.records is not None)


def engine_of_rows(opened: Opened, name: str) -> Engine | None:
    """Return the tokenizer whose ids the data may have."""

    def made() -> Engine | None:
        dataset = opened.dataset(name)
        node = node_of(dataset)
        is_store = isinstance(node, TokenSource) and isinstance(node, LeafNode) and node.size
        return engine_at_hand(opened, dataset.locate([0])[0].path if is_store else None)[0]

    return opened.kept.get(("engine", name), made)


def usual_paths(records: Sequence[Any], found: Columns | None) -> list[tuple[str, ...]]:
    """Return the keys that most records have, at most eight; the record itself where none has keys."""
    if found is not None and found.columns:
        return [tuple(map(str, each.path)) for each in found.columns[:MOST_COLUMNS]]
    counts: Counter[tuple[str, ...]] = Counter()
    for record in records:
        if isinstance(record, dict):
            counts.update(path for path, _ in top_paths(record))
    # A Counter keeps the order of what came as often.
    return [path for path, _ in counts.most_common(MOST_COLUMNS)] or [()]


def _column(
    path: tuple[str, ...], facts: ColumnFacts | None, place: int, rows: Sequence[TableRow]
) -> TableColumn:
    kinds = [row.cells[place].kind for row in rows if row.cells]
    subject = subject_text(path)
    column = TableColumn(path_text(path), path, "num" in kinds, sort=subject)
    if facts is None:
        return column
    column = replace(column, missing=facts.missing, missing_where=f"{subject} is missing")
    if facts.labels:
        shown = facts.labels[:_MOST_LABELS]
        most = max(each.share.count for each in shown)
        left = len(facts.labels) - len(shown)
        caption = f"and {left} more" if left else ""
        bars = tuple(_of_label(subject, each, most) for each in shown)
        return replace(column, bars=bars, labels=True, caption=caption)
    of = subject_text(path, of_length=True) if facts.lengths else subject
    bins = facts.lengths or facts.numbers
    most = max((each.count for each in bins), default=0)
    bars = tuple(_of_bin(of, each, most) for each in bins)
    return replace(column, bars=bars, caption=facts.range, sort=of)


def _of_label(subject: str, each: TopValue, most: int) -> FilterBar:
    value = json.dumps(each.value, ensure_ascii=False)
    label = each.value if isinstance(each.value, str) else value
    return FilterBar(
        f"{label}: {each.share.count:,} of {each.share.of:,}",
        label,
        each.share.count,
        _height(each.share.count, most),
        f"{subject} == {value}",
    )


def _of_bin(subject: str, each: ColumnBar, most: int) -> FilterBar:
    low, high = json.dumps(each.low), json.dumps(each.high)
    words = f"{shown_number(each.low)} to {shown_number(each.high)}: {each.count:,}"
    if each.low == each.high:
        return FilterBar(words, "", each.count, _height(each.count, most), f"{subject} == {low}")
    upper = "<=" if each.has_high else "<"
    return FilterBar(
        words, "", each.count, _height(each.count, most), f"{subject} >= {low} and {subject} {upper} {high}"
    )


def _height(count: int, most: int) -> int:
    return max(1, round(24 * count / most)) if count else 0


def _short(value: Any) -> Any:
    """Return a value with the beginnings of long texts."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value[:_MOST_CHARACTERS]]
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"{value[:_MOST_CHARACTERS]}... ({len(value):,} characters)"
    return value
