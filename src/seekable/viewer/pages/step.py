"""One global batch: its records by rank, the sources and the files that they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from seekable.loader.step_plan import own_bytes, places_of
from seekable.viewer.facts.data_survey import requests_of
from seekable.viewer.facts.loss_log import compared_loss
from seekable.viewer.facts.made_of import COMPUTED
from seekable.viewer.facts.mixture import mixture
from seekable.viewer.facts.odd import MEASURES, Oddness
from seekable.viewer.facts.pipelines import step_document
from seekable.viewer.facts.sources import SEVERAL, source_names, sources_of
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.beginnings import add_texts
from seekable.viewer.pages.job import shown_of
from seekable.viewer.pages.odd import can_rank, oddness_of, why
from seekable.viewer.pages.sequence import is_packed

if TYPE_CHECKING:
    from seekable._typing import Int64s
    from seekable.loader.loader import Loader
    from seekable.loader.step_plan import PlannedRecord, StepPlan
    from seekable.viewer.facts.loss_log import LossLog
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SHOWN = 100
_MOST_SHOWN = 500
_HEADER = ("position", "epoch", "rank", "source", "path", "row", "bytes")


def step(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the records of a step, of all ranks or of one; of a stream where it can be replayed."""
    found, number = opened.pipeline(asked.name), int(asked.path["step"])
    if found.is_stream:
        return Redirect(f"p/{asked.name}/replay/{number}")
    rank = asked.optional("rank", most=found.loader.world_size - 1)
    plan = found.loader.plan(step=number, rank=rank)
    node = found.loader.dataset.node
    positions = np.array([record.position for record in plan.records], dtype=np.int64)
    owners = sources_of(node, positions).tolist() if positions.size else []
    document = {
        "name": asked.name,
        "step": plan.step,
        "batch": plan.batch,
        "world_size": plan.world_size,
        "rank": rank,
        "notes": list(found.notes),
        "after_end": after_end(found, number),
        "sources": _sources(found.loader, plan, owners, is_whole=rank is None),
        "loss": _loss(opened.logs.get(asked.name), number),
    }
    by, header = asked.choice("by", ("position", "rank", "length", "odd")), list(_HEADER)
    more: dict[str, Any] = {"job": None, "by": by, **_totals(plan)}
    rows = _Rows(opened, source_names(node), _ordered(plan, owners, by))
    if by == "odd" and plan.records:
        document["odd"], ranked, job = _by_oddness(opened, asked, list(rows))
        header += [*MEASURES, "why", "same_text_at"]
        more |= {**job, **_shown(opened, asked, ranked)}
        table = PageRows(header, [[row[key] for key in header] for row in ranked])
    else:
        more |= _shown(opened, asked, rows)
        table = PageRows(header, ([row[key] for key in header] for row in rows))
    return Page(
        "step",
        f"{asked.name}, step {number:,}",
        document,
        more,
        table=table,
        facts=lambda: _facts(found.loader, plan, positions),
    )


def _facts(loader: Loader, plan: StepPlan, positions: Int64s) -> dict[str, Any]:
    """Return the records and the files of a step, and the requests where the data is in a store."""
    requests = requests_of(loader.dataset.node, positions.tolist())
    return {**step_document(plan), **({} if requests is None else {"requests": requests})}


def _totals(plan: StepPlan) -> dict[str, Any]:
    """Return what the template shows of all records of a step together."""
    sizes = [own_bytes(record.place) for record in plan.records]
    paths = {place.path for record in plan.records for place in places_of(record.place)}
    return {
        "is_last": not plan.records,
        "count": len(plan.records),
        "bytes": None if None in sizes else sum(size or 0 for size in sizes),
        "files": len(paths),
        "ends": [plan.records[at].position for at in (0, -1)] if plan.records else [],
        "made_of": COMPUTED,
    }


def _shown(opened: Opened, asked: Asked, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the template needs besides the document: the rows of the page, with their beginnings."""
    first, n = asked.count("at", default=0), asked.count("n", default=_SHOWN, least=1, most=_MOST_SHOWN)
    page = list(rows[first : first + n])
    add_texts(opened, page)
    return {
        "rows": page,
        "first": first,
        "n": n,
        "fetches_odd": opened.scans and can_rank(opened, asked.name),
        "packed": is_packed(opened, asked.name),
    }


def _ordered(plan: StepPlan, owners: list[int], by: str) -> list[tuple[PlannedRecord, int]]:
    """Return the records with the numbers of their sources, sorted; those that are odd are found by a job."""
    pairs = list(zip(plan.records, owners, strict=True))
    if by == "rank":
        pairs.sort(key=lambda pair: (pair[0].rank, pair[0].position))
    elif by == "length":
        pairs.sort(key=lambda pair: -(own_bytes(pair[0].place) or 0))
    return pairs


class _Rows(Sequence[dict[str, Any]]):
    """The rows of the table, each made when it is used: a page shows some of thousands."""

    def __init__(
        self, opened: Opened, names: tuple[str, ...], records: Sequence[tuple[PlannedRecord, int]]
    ) -> None:
        self._opened, self._names, self._records = opened, names, records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, at: slice) -> _Rows: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | _Rows:
        if isinstance(at, slice):
            return _Rows(self._opened, self._names, self._records[at])
        record, owner = self._records[at]
        place = next(places_of(record.place), None)
        return {
            "position": record.position,
            "epoch": record.epoch,
            "rank": record.rank,
            "source": self._names[owner] if owner != SEVERAL else "several",
            "bytes": own_bytes(record.place),
            "path": "" if place is None else place.path,
            "row": None if place is None else place.row,
            **self._opened.linked(record.place),
        }


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


def _loss(log: LossLog | None, number: int) -> dict[str, Any] | None:
    """Return the loss of a step and the median of those before it; None where no log has it."""
    loss = None if log is None else log.loss_of(number)
    if log is None or loss is None:
        return None
    compared = compared_loss(log, number)
    if compared is not None:
        return compared.document()
    nothing = dict.fromkeys(("median", "mad", "times"))
    return {"step": number, "loss": loss if np.isfinite(loss) else None, **nothing}
