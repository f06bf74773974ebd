"""One global batch: its records by rank, the sources and the files that they come from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.facts.documents import place_as_json
from seekable.facts.made_of import COMPUTED
from seekable.facts.mixture import mixture
from seekable.facts.odd import MEASURES, Oddness
from seekable.facts.sample import read_sample
from seekable.facts.sequence import packed_node_at
from seekable.facts.source_counts import SEVERAL, source_names, sources_of
from seekable.facts.step_document import step_document
from seekable.facts.store_contents import requests_of
from seekable.facts.token_rates import text_of
from seekable.loader.step_plan import places_of
from seekable.viewer.page import Page, Redirect, Table
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.odd import oddness_of, runs_functions, why
from seekable.viewer.pages.sequence import is_packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader.loader import Loader
    from seekable.loader.step_plan import PlannedRecord, StepPlan
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["position", "step", "when"]

_SHOWN = 100
_MOST_SHOWN = 500
_NEIGHBOURS = 5
_CHARACTERS = 160
_MOST_EPOCHS = 100


def step(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the records of a step, of all ranks or of one; of a stream where it can be replayed."""
    found, number = opened.pipeline(asked.name), int(asked.path["step"])
    if found.is_stream:
        return Redirect(f"p/{asked.name}/replay/{number}")
    loader = found.loader
    planned = loader.plan(step=number)
    rank = asked.optional("rank", most=max(0, planned.world_size - 1))
    shown = planned if rank is None else planned.of_rank(rank)
    node = loader.dataset.node
    positions = np.array([record.position for record in shown.records], dtype=np.int64)
    names = source_names(node)
    owners = sources_of(node, positions) if positions.size else positions
    by = asked.choice("by", ("position", "rank", "length", "odd"))
    document = {
        **step_document(shown),
        "requests": requests_of(node, positions.tolist()),
        "rank": rank,
        "notes": list(found.notes),
        "sources": _sources(loader, planned, names, owners.tolist(), is_whole=rank is None),
    }
    if document["requests"] is None:
        del document["requests"]
    rows = _rows(opened, shown.records, [names[at] if at != SEVERAL else "several" for at in owners.tolist()])
    order = {"rank": lambda row: (row["rank"], row["position"]), "length": lambda row: -(row["bytes"] or 0)}
    if by in order:
        rows.sort(key=order[by])
    more: dict[str, Any] = {"job": None}
    header = ["position", "epoch", "rank", "source", "path", "row", "bytes"]
    if by == "odd" and rows:
        document["odd"], rows, more = _by_oddness(opened, asked, planned, rows)
        header = [*header, *MEASURES, "why", "same_text_at"]
    first, n = asked.count("at", default=0), asked.count("n", default=_SHOWN, least=1, most=_MOST_SHOWN)
    page = rows[first : first + n]
    _add_texts(opened, page)
    table = Table(header, [[row[key] for key in header] for row in rows])
    sizes = [row["bytes"] for row in rows if row["bytes"] is not None]
    more |= {
        "rows": page,
        "count": len(rows),
        "first": first,
        "n": n,
        "fetches_odd": by != "odd" and opened.scans and not runs_functions(opened, asked.name),
        "by": by,
        "bytes": sum(sizes) if len(sizes) == len(rows) else None,
        "made_of": COMPUTED,
        "loss": _loss(opened, number),
        "is_last": not shown.records,
        "packed": is_packed(opened, asked.name),
    }
    return Page("step", f"{asked.name}, step {number:,}", {"name": asked.name, **document}, more, table=table)


def position(opened: Opened, asked: Asked) -> Page:
    """Return one position of a pipeline, with its neighbours."""
    loader, number = opened.pipeline(asked.name).loader, int(asked.path["position"])
    node = loader.dataset.node
    start = max(0, number - _NEIGHBOURS)
    positions = np.arange(start, number + _NEIGHBOURS + 1)
    names = source_names(node)
    owners = sources_of(node, positions).tolist()
    places = node.plan(positions).locate()
    rows = [
        {
            "position": at,
            "epoch": at // node.size if node.size else 0,
            "source": names[owner] if owner != SEVERAL else "several",
            "location": place_as_json(place),
            **opened.linked(place),
        }
        for at, owner, place in zip(positions.tolist(), owners, places, strict=True)
    ]
    _add_texts(opened, rows)
    document = {"name": asked.name, "position": number, "made_of": COMPUTED, "rows": rows}
    packed = packed_node_at(node, number) is not None
    return Page("position", f"{asked.name}, position {number:,}", document, {"packed": packed})


def when(opened: Opened, asked: Asked) -> Page:
    """Return the steps at which a row of a file comes, in some epochs."""
    loader = opened.pipeline(asked.name).loader
    path, row = asked.text("file"), asked.count("row", default=0)
    start = asked.count("from", default=loader.epoch)
    epochs = asked.count("epochs", default=5, least=1, most=_MOST_EPOCHS)
    found = loader.when(path, row, epochs=range(start, start + epochs)) if path else []
    comes = [{"step": at.step, "position": at.position, "epoch": at.epoch, "rank": at.rank} for at in found]
    document = {
        "name": asked.name,
        "file": path,
        "row": row,
        "from": start,
        "epochs": epochs,
        "made_of": COMPUTED,
        "comes": comes,
    }
    header = ["epoch", "step", "rank", "position"]
    table = Table(header, [[each[key] for key in header] for each in comes])
    return Page("when", f"{asked.name}, when a row comes", document, table=table)


def _rows(opened: Opened, records: Sequence[PlannedRecord], sources: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for record, source in zip(records, sources, strict=True):
        places = list(places_of(record.place))
        sizes: list[Any] = [getattr(place, "length", None) for place in places]
        rows.append(
            {
                "position": record.position,
                "epoch": record.epoch,
                "rank": record.rank,
                "source": source,
                "bytes": sum(sizes) if None not in sizes else None,
                "path": places[0].path if places else "",
                "row": places[0].row if places else None,
                **opened.linked(record.place),
            }
        )
    return rows


def _by_oddness(
    opened: Opened, asked: Asked, planned: StepPlan, rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return the oddness of a step as a document, its rows with their measures in order, and its job."""
    shown: dict[str, Any] = {"job": None}
    found = None
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        shown = {"job": job.document(), **shown_of(job)}
        found = job.partial
    if not isinstance(found, Oddness):
        positions = np.array([record.position for record in planned.records], dtype=np.int64)
        found = oddness_of(opened, asked.name, positions)
    document = found.document()
    by_position = {row["position"]: row for row in rows}
    ranked = []
    for each in document["records"]:
        row = by_position.get(each["position"])
        if row is not None:
            values = {name: measure and measure["value"] for name, measure in each["measures"].items()}
            more = {**values, "same_text_at": each["same_text_at"], "why": ", ".join(why(each))}
            ranked.append({**more, **row})
    return document, ranked, shown


def _add_texts(opened: Opened, rows: list[dict[str, Any]]) -> None:
    """Read the records of some rows whose data is open, source by source, and add their beginnings."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row["text"] = None
        if row["dataset"] is not None:
            by_name.setdefault(row["dataset"], []).append(row)
    for name, some in by_name.items():
        numbers = np.array([row["number"] for row in some], dtype=np.int64)
        for row, record in zip(some, read_sample(opened.dataset(name).node, numbers), strict=True):
            row["text"] = _text_of(record, opened.text_key)


def _text_of(record: Any, key: str | None) -> Any:
    """Return what a row of a table shows of a record: its longest text, or the field that the user named."""
    text = text_of(record, key)
    return record if text is None else text[: 2 * _CHARACTERS]


def _sources(
    loader: Loader, planned: StepPlan, names: Sequence[str], owners: Sequence[int], *, is_whole: bool
) -> list[dict[str, Any]]:
    """Return how many records of each source a step has, and how many the weights plan."""
    counts = Counter(owners)
    plan: list[float | None] = [None] * len(names)
    if is_whole and planned.records:
        found = mixture(loader, start=planned.step, stop=planned.step + 1)
        plan = found.planned[0].tolist()
    return [{"name": name, "records": counts[at], "planned": plan[at]} for at, name in enumerate(names)]


def _loss(opened: Opened, number: int) -> float | None:
    if opened.log is None:
        return None
    at = int(np.searchsorted(opened.log.steps, number))
    is_there = at < opened.log.steps.size and opened.log.steps[at] == number
    return float(opened.log.losses[at]) if is_there else None
