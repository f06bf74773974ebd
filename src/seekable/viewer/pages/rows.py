"""Rows of a dataset: in the order of the files, drawn at random, filtered and sorted."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.node import node_of
from seekable.viewer.facts.filtered_rows import FilteredRows, filtered_rows, is_quick
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.reading import FROM_INDEX, from_sample, sample_rows
from seekable.viewer.facts.row_conditions import conditions_of, order_of
from seekable.viewer.page import Page, Redirect, query_with
from seekable.viewer.pages.job import SOON_SECONDS, AskedJob, PageWork, result_of
from seekable.viewer.pages.page_records import data_key, page_records
from seekable.viewer.pages.row_table import columns_of, table_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable._typing import Int64s
    from seekable.viewer.facts.column_facts import Columns
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked
    from seekable.viewer.pages.row_table import RecordTable

_MOST_ROWS = 500
_KEY = re.compile(r"(?:[^\\,]|\\.)+", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SortLink:
    """What a click on the name of a column does."""

    address: str
    words: str
    now: str
    """"ascending" or "descending"; empty where rows are not sorted by the column."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """The links in the head of the table."""

    sorts: Mapping[str, SortLink]
    """By the keys of columns."""

    has_bars: bool
    made_of: str

    within: str
    """The query with which a row leads to its neighbours among these rows."""

    filtered: Callable[[str], str]
    """Returns the address of the rows that meet a further condition."""


def rows(opened: Opened, asked: Asked) -> Page:
    """Return rows from a place on: all, those that meet conditions, sorted, or drawn at random.

    A filter or an order that cannot be read is shown with the reason, and all rows below it.

    Raises:
        InvalidArgument: a key or a number cannot be read.
    """
    given = {name: asked.text(name) for name in ("where", "sort")}
    try:
        conditions_of(given["where"])
        order_of(given["sort"] or "row")
    except InvalidArgument as error:
        if "as" in asked.query:
            raise
        page = _page(opened, replace(asked, query={**asked.query, "where": "", "sort": ""}))
        document = {**page.document, **given, "error": json_safe(str(error)), "status": 400}
        return replace(page, document=document, status=400)
    return _page(opened, asked)


def _page(opened: Opened, asked: Asked) -> Page:
    size = node_of(opened.dataset(asked.name)).size or 0
    count, at = asked.count("n", default=50, least=1, most=_MOST_ROWS), asked.count("at", default=0)
    order, seed = asked.choice("order", ("file", "sample")), asked.count("seed", default=0)
    job = filtered(opened, asked)
    found: FilteredRows | None = job.partial
    chosen = None if found is None and not job.document else _kept(found)
    of = size if chosen is None else int(chosen.size)
    numbers, made_of = _numbers(chosen, of, at, count, seed if order == "sample" else None)
    if job.document or found is not None:
        made_of = "not looked at yet" if found is None else found.made_of
    # They are read at the same time as the rows.
    began = time.monotonic()
    columns_of(opened, asked.name, seconds=0)
    read = page_records(opened, asked, numbers)
    left = max(0.0, SOON_SECONDS - (time.monotonic() - began))
    survey = columns_of(opened, asked.name, seconds=left)
    keys = _keys_of(asked.text("keys"))
    about = [each.path for each in conditions_of(asked.text("where"))]
    about += [order_of(asked.text("sort")).path] if asked.text("sort") else []
    table = table_of(opened, asked, read, keys=keys, asked_about=about, found=survey.partial)
    document = {
        "name": asked.name,
        "records": size,
        "order": order,
        "seed": seed if order == "sample" else None,
        "where": asked.text("where"),
        "sort": asked.text("sort"),
        "at": at,
        "n": count,
        "made_of": made_of,
        "filter": None if found is None else found.document(),
        **job.document,
        "rows": table.places,
    }
    last = max(0, of - count)
    more: dict[str, Any] = {"before": max(0, at - count), "after": at + count, "last": last, "of": of}
    more |= {"records": table, "survey": survey.partial, "found": found, "is_filter": chosen is not None}
    more |= {"chips": _chips(asked), "head": _head(asked, table, survey.partial)}
    more |= {"survey_live": survey.shown.get("job_live", False) or not table.is_read}
    more |= {"choices": _choices(survey.partial, table), "job_live": False, **job.shown}
    title = f"{asked.name}, rows"
    return Page("rows", title, document, more, table.table, facts=lambda: {"rows": table.documents()})


def filter_again(opened: Opened, asked: Asked) -> Redirect:
    """Start to look for rows again after that was stopped or failed, and return where they are shown."""
    filtered(opened, asked, anew=True)
    return Redirect(f"d/{asked.name}/rows{query_with(asked.query, {})}")


def filtered(opened: Opened, asked: Asked, *, anew: bool = False) -> AskedJob:
    """Return the rows that the address asks for by conditions and an order; nothing where it has neither.

    Args:
        opened: what is open.
        asked: the address, with the name of the dataset.
        anew: True to look for them again after that was stopped or failed.

    Raises:
        InvalidArgument: the conditions or the order cannot be read.
    """
    where, sort = asked.text("where"), asked.text("sort")
    conditions, order = conditions_of(where), order_of(sort) if sort else None
    if not conditions and order is None:
        return AskedJob()
    node = node_of(opened.dataset(asked.name))
    words = (" and ".join(map(str, conditions)), str(order or ""))
    work = PageWork(
        "filter",
        (*data_key(opened, asked.name), *words),
        lambda: filtered_rows(node, conditions, order),
        again=f"d/{asked.name}/filter-again{query_with(asked.query, {})}",
        page=f"d/{asked.name}/rows{query_with(asked.query, {})}",
    )
    # A regular expression may take long, or be none.
    small = is_quick(node) and not any(each.operator == "matches" for each in conditions)
    return result_of(opened, work, small=small, anew=anew)


def _chips(asked: Asked) -> list[tuple[str, str | None]]:
    """Return the conditions of an address, each with what is left without it."""
    words = [str(each) for each in conditions_of(asked.text("where"))]
    return [(each, " and ".join(words[:at] + words[at + 1 :]) or None) for at, each in enumerate(words)]


def _head(asked: Asked, table: RecordTable, found: Columns | None) -> TableHead:
    """Return the links in the head of a table: what sorts by each column, and what filters."""
    words = [str(each) for each in conditions_of(asked.text("where"))]
    given = asked.text("sort")
    current = str(order_of(given)) if given else ""

    def with_condition(condition: str) -> str:
        added = [str(each) for each in conditions_of(condition)]
        where = " and ".join([*words, *(each for each in added if each not in words)])
        return "rows" + query_with(asked.query, {"where": where, "at": None})

    sorts = {}
    for each in table.columns:
        by, down = each.sort, f"-{each.sort}"
        state, then = {by: ("ascending", down), down: ("descending", None)}.get(current, ("", by))
        told = "the order of the files" if then is None else f"sort by {then}"
        address = "rows" + query_with(asked.query, {"sort": then, "at": None, "order": None})
        sorts[each.key] = SortLink(address, told, state)
    has_bars = any(each.bars or each.missing for each in table.columns)
    within = query_with({}, {name: asked.text(name) or None for name in ("where", "sort")})
    return TableHead(sorts, has_bars, "" if found is None else found.made_of, within, with_condition)


def _kept(found: FilteredRows | None) -> Int64s:
    return np.zeros(0, np.int64) if found is None else found.rows


def _numbers(chosen: Int64s | None, of: int, at: int, count: int, seed: int | None) -> tuple[Int64s, str]:
    """Return the rows that a page shows, chosen ones or all, and what they are made of."""
    if seed is None:
        places, made_of = np.arange(min(at, of), min(at + count, of)), FROM_INDEX
    else:
        places = sample_rows(of, min(at + count, of), seed)[at:]
        made_of = from_sample(int(places.size), of=of, seed=seed)
    return places if chosen is None else chosen[places], made_of


def _keys_of(text: str) -> list[str]:
    r"""Return the keys that stand between commas; a comma of a key has a backslash before it.

    Example:
        >>> _keys_of(r"a,b\,c,d\.e"), _keys_text(["a", "b,c"])
        (['a', 'b,c', 'd\\.e'], 'a,b\\,c')
    """
    return [
        _ESCAPED.sub(lambda found: "," if found[0] == r"\," else found[0], key) for key in _KEY.findall(text)
    ]


def _keys_text(keys: Sequence[str]) -> str:
    return ",".join([key.replace(",", r"\,") for key in keys])


def _choices(found: Columns | None, table: RecordTable) -> list[dict[str, Any]]:
    """Return the keys of the data: whether each is a column, and the keys of a page that changes that."""
    shown = [each.key for each in table.columns]
    names = [each.name for each in found.columns] if found is not None else []
    out = []
    for name in [*shown, *(name for name in names if name not in shown)]:
        is_shown = name in shown
        left = [key for key in shown if key != name] if is_shown else [*shown, name]
        out.append({"key": name, "is_shown": is_shown, "keys": _keys_text(left) or None})
    return out if len(out) > 1 else []
