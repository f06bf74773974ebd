"""One global batch: its records by rank, the sources and the files that they come from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.facts.loss_log import compared_loss
from seekable.facts.made_of import COMPUTED
from seekable.facts.mixture import mixture
from seekable.facts.odd import MEASURES, Oddness
from seekable.facts.source_counts import SEVERAL, source_names, sources_of
from seekable.facts.step_document import step_document
from seekable.facts.store_contents import requests_of
from seekable.loader.step_plan import places_of
from seekable.viewer.page import Page, Redirect, Table
from seekable.viewer.pages.beginnings import add_texts
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.odd import can_rank, oddness_of, why
from seekable.viewer.pages.sequence import is_packed

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable._typing import Int64s
    from seekable.loader.loader import Loader
    from seekable.loader.step_plan import StepPlan
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["step"]

_SHOWN = 100
_MOST_SHOWN = 500
_HEADER = ("position", "epoch", "rank", "source", "path", "row", "bytes")

_ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rank": lambda row: (row["rank"], row["position"]),
    "length": lambda row: -(row["bytes"] or 0),
}
"""The keys by which rows are sorted; they come by position, and the odd ones are found by a job."""


def step(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the records of a step, of all ranks or of one; of a stream where it can be replayed."""
    found, number = opened.pipeline(asked.name), int(asked.path["step"])
    if found.is_stream:
        return Redirect(f"p/{asked.name}/replay/{number}")
    rank = asked.optional("rank", most=found.loader.world_size - 1)
    plan = found.loader.plan(step=number, rank=rank)
    positions = np.array([record.position for record in plan.records], dtype=np.int64)
    node = found.loader.dataset.node
    owners = sources_of(node, positions).tolist() if positions.size else []
    document = {
        **_document(found.loader, plan, positions),
        "rank": rank,
        "notes": list(found.notes),
        "sources": _sources(found.loader, plan, owners, is_whole=rank is None),
        "loss": _loss(opened, number),
    }
    rows = _rows(opened, plan, owners, source_names(node))
    by, header = asked.choice("by", ("position", "rank", "length", "odd")), list(_HEADER)
    more: dict[str, Any] = {"job": None, "by": by, "is_last": not plan.records}
    if by in _ORDERS:
        rows.sort(key=_ORDERS[by])
    elif by == "odd" and rows:
        document["odd"], rows, job = _by_oddness(opened, asked, rows)
        header += [*MEASURES, "why", "same_text_at"]
        more |= job
    more |= _shown(opened, asked, rows)
    table = Table(header, [[row[key] for key in header] for row in rows])
    return Page("step", f"{asked.name}, step {number:,}", {"name": asked.name, **document}, more, table=table)


def _document(loader: Loader, plan: StepPlan, positions: Int64s) -> dict[str, Any]:
    """Return the records and the files of a step, and the requests where the data is in a store."""
    requests = requests_of(loader.dataset.node, positions.tolist())
    return {**step_document(plan), **({} if requests is None else {"requests": requests})}


def _shown(opened: Opened, asked: Asked, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the template needs besides the document: the rows of the page, with their beginnings."""
    first, n = asked.count("at", default=0), asked.count("n", default=_SHOWN, least=1, most=_MOST_SHOWN)
    page = rows[first : first + n]
    add_texts(opened, page)
    sizes = [row["bytes"] for row in rows if row["bytes"] is not None]
    return {
        "rows": page,
        "count": len(rows),
        "first": first,
        "n": n,
        "fetches_odd": opened.scans and can_rank(opened, asked.name),
        "bytes": sum(sizes) if len(sizes) == len(rows) else None,
        "made_of": COMPUTED,
        "packed": is_packed(opened, asked.name),
    }


def _rows(opened: Opened, plan: StepPlan, owners: list[int], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a row of the table for each record of a step."""
    rows = []
    for record, owner in zip(plan.records, owners, strict=True):
        places = list(places_of(record.place))
        sizes: list[Any] = [getattr(place, "length", None) for place in places]
        rows.append(
            {
                "position": record.position,
                "epoch": record.epoch,
                "rank": record.rank,
                "source": names[owner] if owner != SEVERAL else "several",
                "bytes": sum(sizes) if None not in sizes else None,
                "path": places[0].path if places else "",
                "row": places[0].row if places else None,
                **opened.linked(record.place),
            }
        )
    return rows


def _by_oddness(
    opened: Opened, asked: Asked, rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return the oddness of a step as a document, its rows with their measures in order, and its job."""
    shown: dict[str, Any] = {"job": None}
    found = None
    if asked.query.get("job"):
        job = opened.jobs[asked.text("job")]
        shown = {"job": job.document(), **shown_of(job)}
        found = job.partial
    if not isinstance(found, Oddness):
        planned = opened.pipeline(asked.name).loader.plan(step=int(asked.path["step"]))
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


def _sources(loader: Loader, plan: StepPlan, owners: list[int], *, is_whole: bool) -> list[dict[str, Any]]:
    """Return how many records of each source a step has, and how many the weights plan."""
    names, counts = source_names(loader.dataset.node), Counter(owners)
    planned: list[float | None] = [None] * len(names)
    if is_whole and plan.records:
        planned = mixture(loader, start=plan.step, stop=plan.step + 1).planned[0].tolist()
    return [{"name": name, "records": counts[at], "planned": planned[at]} for at, name in enumerate(names)]


def _loss(opened: Opened, number: int) -> dict[str, Any] | None:
    """Return the loss of a step and the median of those before it; None where no log has it."""
    loss = None if opened.log is None else opened.log.loss_of(number)
    if opened.log is None or loss is None:
        return None
    compared = compared_loss(opened.log, number)
    if compared is not None:
        return compared.document()
    nothing = dict.fromkeys(("median", "mad", "times"))
    return {"step": number, "loss": loss if np.isfinite(loss) else None, **nothing}
