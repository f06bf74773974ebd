"""The first page, and the addresses to which names lead: what its field takes, keys, places, rows."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.checkpoint_files import generations_in, read_saved
from seekable.loader.positioned import sizes_of
from seekable.nodes.key_lookup import lookup_of
from seekable.nodes.node import LeafNode, node_of
from seekable.viewer.facts.data_survey import data_facts
from seekable.viewer.facts.json_documents import json_safe, place_as_json
from seekable.viewer.facts.named_sources import files_named
from seekable.viewer.page import Page, Redirect
from seekable.viewer.pages.row import check_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.dataset.dataset import Dataset
    from seekable.nodes.key_lookup import Lookup
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked


_STEP = re.compile(r"step\s+([\d,]+)(?:\s+rank\s+(\d+))?", re.IGNORECASE)
_POSITION = re.compile(r"(position|sequence)\s+([\d,]+)", re.IGNORECASE)
_COMPARED = re.compile(r"compare\s+(\S+)\s+(\S+)(?:\s+step\s+([\d,]+))?", re.IGNORECASE)
_ROW = re.compile(r"(?:row\s+)?(-?\d[\d,]*)", re.IGNORECASE)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_NAMED = re.compile(r"(\S+)(?:\s+(.*))?", re.DOTALL)
_STATE = re.compile(r"(?:state\s+)?([\d,]+)(?:\s*\.\.\.\s*([\d,]+))?", re.IGNORECASE)
_FINGERPRINT = re.compile(r"xxh3:([0-9a-f]{4,32})(?:\.\.\.)?", re.IGNORECASE)
_MESSAGE = re.compile(r"(.+?): record (\d+)\b.*", re.DOTALL)
_PLACE = re.compile(r"(.+):(\d+)")
_PAGE = re.compile(r"([a-z]+)(?:\s+(\S.*))?", re.DOTALL)
_PAGES = {
    "d": frozenset({"padding", "rows", "stats", "files", "search", "duplicates", "health", "lengths"}),
    "p": frozenset({"mixture", "padding", "loss", "when"}),
}
"""The pages of data and of a pipeline that are called by their names."""

_OF_PAGES = {"rows": "where", "search": "q", "duplicates": "key"}
"""What a text after the name of such a page is, as a parameter of its address."""

_MOST_STATES = 200
_MOST_WAYS = 20
_HELP = (
    "write a row (1,234,567 or -1); a share of the rows (50%); a step (step 48210 rank 3); a position "
    "(position 17); a packed sample (sequence 17); a key (key:utt-17); a file and its row "
    "(part-00012.jsonl:531, or the message of a corrupt record); a state (xxh3:9f3c); two pipelines (compare "
    "old new step 48210); or the name of what is open, alone, before one of these, or before a page (train "
    "padding, web duplicates url, web rows lang == de)"
)

_MOST_SHOWN = 100
_MOST_NAMED = 5


def home(opened: Opened, _: Asked) -> Page:
    """Return the datasets, pipelines, folders of states and jobs that are open."""
    document = {
        "datasets": [
            {"name": name, **data_facts(node_of(dataset))} for name, dataset in list(opened.datasets.items())
        ],
        "pipelines": [_pipeline_document(name, each) for name, each in opened.pipelines.items()],
        "states": [{"name": name, "path": json_safe(path)} for name, path in opened.states.items()],
        "opening": [name for name in opened.opening if name not in opened.datasets],
        "jobs": [job.document() for job in opened.jobs.all() if job.kind != "index" and not job.is_brief],
    }
    return Page("home", "What is open", document)


def _pipeline_document(name: str, each: OpenPipeline) -> dict[str, Any]:
    if each.is_stream:
        return {"name": name, "kind": "stream", "pipeline": json_safe(repr(each.root))}
    loader = each.loader
    return {
        "name": name,
        "kind": "pipeline",
        "pipeline": json_safe(node_of(loader.dataset).expression()),
        "records": node_of(loader.dataset).size,
        "batch": sizes_of(loader) if each.has_batch else None,
        "world_size": loader.world_size,
        "step": loader.step,
    }


def go(opened: Opened, asked: Asked) -> Redirect:
    """Return the address that a text names.

    Raises:
        InvalidArgument: the text names nothing, nothing of its kind is open, or several things are.
    """
    return Redirect(_address_of(opened, asked.text("to").strip(), asked.text("in")))


def _address_of(opened: Opened, text: str, within: str = "") -> str:
    """Return the address that a text names, relative to the root of the viewer.

    Args:
        opened: what is open.
        text: what a user wrote; it may begin with the name of something open.
        within: the name of the dataset or pipeline that is meant where the text names none.

    Raises:
        InvalidArgument: the text names nothing, nothing of its kind is open, or several things are.
    """
    found = _named(opened, text) or _by_value(opened, text, within) or _placed(opened, text, within)
    if found is None:
        message = f"{text[:80]!r} cannot be read: {_HELP}"
        raise InvalidArgument(message)
    return found


def _by_value(opened: Opened, text: str, within: str) -> str | None:  # noqa: PLR0911 - a case for each kind
    """Return the address of a row, a step, a key and so on; None for names and places."""
    if found := _STEP.fullmatch(text):
        rank = f"?rank={int(found[2])}" if found[2] else ""
        return f"p/{_pipeline_meant(opened, text, within)}/step/{_number(found[1])}{rank}"
    if found := _POSITION.fullmatch(text):
        return f"p/{_pipeline_meant(opened, text, within)}/{found[1].lower()}/{_number(found[2])}"
    if found := _COMPARED.fullmatch(text):
        step = {"step": _number(found[3])} if found[3] else {}
        return f"compare?{urlencode({'a': found[1], 'b': found[2], **step})}"
    if found := _ROW.fullmatch(text):
        return f"d/{_dataset_meant(opened, text, within)}/row/{_number(found[1])}"
    if found := _PERCENT.fullmatch(text):
        name = _dataset_meant(opened, text, within)
        size = node_of(opened.dataset(name)).size or 0
        return f"d/{name}/rows?at={min(int(size * float(found[1]) / 100), max(size - 1, 0))}"
    if text.startswith("key:"):
        return f"d/{_dataset_meant(opened, text, within)}/key?{urlencode({'key': text.removeprefix('key:')})}"
    if found := _FINGERPRINT.fullmatch(text):
        return _state_of(opened, found[1].lower())
    return None


def _named(opened: Opened, text: str) -> str | None:
    """Return the address of what begins with the name of something open; None if it does not.

    Raises:
        InvalidArgument: what is named has nothing of the kind that the rest names.
    """
    found = _NAMED.fullmatch(text)
    name, rest = (found[1], found[2] or "") if found else ("", "")
    if name in opened.states and (state := _STATE.fullmatch(rest)) and _has_state(opened, name, state[1]):
        first, second = state.groups()
        return f"s/{name}/{_number(first)}" + (f"...{_number(second)}" if second else "")
    kind = "d" if name in opened.datasets else "p"
    if (name in opened.datasets or name in opened.pipelines) and (page := _page_of(kind, name, rest)):
        return page
    if name in opened.datasets:
        why = {name: f"{name} is data"}
        only = replace(opened, pipelines={}, datasets={name: opened.datasets[name]}, unopened=why)
        return f"d/{name}/" if not rest else _by_value(only, rest, name) or _placed(only, rest, name)
    if name in opened.pipelines:
        return f"p/{name}/" if not rest else _of_pipeline(opened, name, rest)
    return f"s/{name}/" if name in opened.states and not rest else None


def _page_of(kind: str, name: str, text: str) -> str | None:
    """Return the address of a page that a text names, as ``padding`` or ``duplicates meta.lang``."""
    found = _PAGE.fullmatch(text)
    if found is None or found[1] not in _PAGES[kind] or (found[2] and found[1] not in _OF_PAGES):
        return None
    more = f"?{urlencode({_OF_PAGES[found[1]]: found[2]})}" if found[2] else ""
    return f"{kind}/{name}/{found[1]}{more}"


def _has_state(opened: Opened, name: str, step: str) -> bool:
    """Return True if a number after a name means a state: the pipeline of this name may have such a step."""
    return name not in opened.pipelines or any(
        generation.step == _number(step) for generation in generations_in(opened.states[name])
    )


def _of_pipeline(opened: Opened, name: str, rest: str) -> str | None:
    """Return the address of what a text names in a pipeline: a number is a step, a place is when it comes."""
    if found := _ROW.fullmatch(rest):
        return f"p/{name}/step/{_number(found[1])}"
    if found := _MESSAGE.fullmatch(rest) or _PLACE.fullmatch(rest):
        return f"p/{name}/when?{urlencode({'file': _unquoted(found[1]), 'row': int(found[2])})}"
    return _by_value(replace(opened, pipelines={name: opened.pipelines[name]}, datasets={}), rest, name)


def _placed(opened: Opened, text: str, within: str) -> str | None:
    """Return the address of a file and its row, in the data that has it; None if the text names no place.

    Raises:
        InvalidArgument: no data is open, or several have the file.
    """
    found = _MESSAGE.fullmatch(text) or _PLACE.fullmatch(text)
    if not found:
        return None
    _check_data(opened, text)
    path, row = _unquoted(found[1]), int(found[2])
    rows: dict[str, int] = {}
    for name in [within] if within in opened.datasets else opened.datasets:
        with suppress(KeyNotFound):
            rows[name] = _row_of_place(opened.datasets[name], path, row)
    if not rows and within in opened.datasets:
        return _placed(opened, text, "")
    if not rows:
        return f"d/{next(iter(opened.datasets))}/at?{urlencode({'file': path, 'row': row})}"
    name = _the_one(rows, text, "datasets with this file")
    return f"d/{name}/row/{rows[name]}"


def _state_of(opened: Opened, digits: str) -> str:
    """Return the address of the newest state of the pipeline with a fingerprint.

    Raises:
        InvalidArgument: there is none in the folders that are open, or there are several pipelines.
    """
    found: dict[str, str] = {}
    for name, folder in opened.states.items():
        for generation in generations_in(folder)[: -_MOST_STATES - 1 : -1]:
            saved = read_saved(os.path.join(folder, generation.names[0]))
            if saved.fingerprint.rpartition(":")[2].startswith(digits):
                found.setdefault(saved.fingerprint, f"s/{name}/{generation.step}")
    if not found:
        message = f"no state of a pipeline with the fingerprint xxh3:{digits} is in a folder that is open"
        raise InvalidArgument(message)
    if len(found) > 1:
        message = f"the fingerprints of several pipelines begin with these digits: {', '.join(found)}"
        raise InvalidArgument(message)
    return next(iter(found.values()))


def _pipeline_meant(opened: Opened, text: str, within: str) -> str:
    """Return the name of the pipeline that a text without a name means."""
    if not opened.pipelines:
        why = "; ".join(opened.unopened.values()) or "seekable view CHECKPOINTS opens one"
        message = f"{text!r} names a step, and no pipeline is open: {why}"
        raise InvalidArgument(message)
    return within if within in opened.pipelines else _the_one(opened.pipelines, text, "open pipelines")


def _dataset_meant(opened: Opened, text: str, within: str) -> str:
    """Return the name of the data that a text without a name means."""
    _check_data(opened, text)
    return within if within in opened.datasets else _the_one(opened.datasets, text, "open datasets")


def _check_data(opened: Opened, text: str) -> None:
    if not opened.datasets:
        message = f"{text[:80]!r} names a row or a key, and there is no data to look in"
        raise InvalidArgument(message)


def _the_one(names: Iterable[str], text: str, those: str) -> str:
    """Return the only name.

    Raises:
        InvalidArgument: there are several.
    """
    first, *others = names
    if others:
        ways = " or ".join(repr(f"{name} {text[:80]}") for name in [first, *others][:_MOST_WAYS])
        message = f"{text[:80]!r} does not say in which of {1 + len(others)} {those}: write {ways}"
        raise InvalidArgument(message)
    return first


def _unquoted(path: str) -> str:
    return path.strip("'\"")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def from_end(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of a row that is counted from the end."""
    dataset, back = opened.dataset(asked.name), int(asked.path["back"])
    number = (node_of(dataset).size or 0) - back
    if not back or number < 0:
        check_row(dataset, -back, asked.name)
    return Redirect(f"d/{asked.name}/row/{number}")


def at_random(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of a row that is drawn anew each time.

    Raises:
        OutOfRange: there are no rows.
    """
    dataset = opened.dataset(asked.name)
    if not node_of(dataset).size:
        check_row(dataset, 0, asked.name)
    return Redirect(f"d/{asked.name}/row/{secrets.randbelow(node_of(dataset).size or 1)}")


def by_key(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the address of the row with a key, or a page of all rows that have it.

    The key is a part of the path or of the query. One with a slash or dots, such as those of tar files, can
    stand in the query alone, because the guard refuses such a path.

    Raises:
        KeyNotFound: no record has the key.
    """
    dataset = opened.dataset(asked.name)
    key = str(asked.path["key"]) if "key" in asked.path else asked.text("key")
    found = _rows_with(lookup_of(node_of(dataset)), key)
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
    """Return the address of a row in a file, which is named by its path or the end of it.

    Both are parts of the path or of the query.

    Raises:
        KeyNotFound: there is no such file or row.
    """
    dataset = opened.dataset(asked.name)
    if "file" in asked.path:
        name, number = str(asked.path["file"]), int(asked.path["row"])
    else:
        name, number = asked.text("file"), asked.count("row", default=0)
    try:
        return Redirect(f"d/{asked.name}/row/{_row_of_place(dataset, name, number)}")
    except KeyNotFound as error:
        message = f"{asked.name} has no such row: {error}"
        raise KeyNotFound(message) from None


def _row_of_place(dataset: Dataset, name: str, number: int) -> int:
    """Return the row of a dataset for a row in a file, which is named by its path or the end of it.

    Raises:
        KeyNotFound: there is no such file or row.
        InvalidArgument: several files have this name.
    """
    node = node_of(dataset)
    if os.path.isabs(name) and isinstance(node, LeafNode):
        rows = node.rows_of(name, number)
        if rows:
            return rows[0]
    files = getattr(node, "files", None)
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
