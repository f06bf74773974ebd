"""One global batch, its records and the unusual ones among them; one position, and when a row comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from seekable.errors import DataNotFound, KeyNotFound
from seekable.formats.tokens.chats.conversations import turns_of
from seekable.loader.steerable import entries_at, made_by
from seekable.loader.step_plan import own_bytes, places_of
from seekable.nodes.bases import calls_functions
from seekable.nodes.node import node_of
from seekable.viewer.cells import ids_text
from seekable.viewer.conversation import last_words
from seekable.viewer.facts.data_survey import requests_of
from seekable.viewer.facts.json_documents import json_safe, place_as_json
from seekable.viewer.facts.loss_log import compared_loss
from seekable.viewer.facts.named_sources import (
    SEVERAL,
    as_in_files,
    has_row,
    paths_named,
    source_names,
    sources_of,
)
from seekable.viewer.facts.odd import MEASURES, Oddness, odd, usual
from seekable.viewer.facts.pipelines import step_document
from seekable.viewer.facts.reading import COMPUTED, read_sample
from seekable.viewer.facts.run_mixture import mixture
from seekable.viewer.facts.saved_state import journal_facts
from seekable.viewer.facts.token_counts import text_of
from seekable.viewer.opened import after_end, coming_document, position_after_end
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import asked_job, started
from seekable.viewer.pages.row_table import engine_of_rows
from seekable.viewer.pages.sequence import is_packed, packed_node_at

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.loader.loader import Loader
    from seekable.loader.step_plan import PlannedRecord, StepPlan
    from seekable.nodes.node import Node
    from seekable.viewer.facts.loss_log import LossLog
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SHOWN = 100
_MOST_SHOWN = 500
_HEADER = ("position", "epoch", "rank", "source", "path", "row", "bytes")


_AROUND = 10
_RARE = 98.0
"""A percentile that is at least this, or at most 100 less this, is a reason."""

_HIGH = {"bytes": "longer", "compressed": "repeats itself less", "letters": "more letters"}
_LOW = {"bytes": "shorter", "compressed": "repeats itself more", "letters": "fewer letters"}

_CHARACTERS = 320
"""More than a cell of a table shows."""

_NEIGHBOURS = 5

_MOST_EPOCHS = 100


def step(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return the records of a step, for all ranks or one; lead to the replay of a stream."""
    found, number = opened.pipeline(asked.name), int(asked.path["step"])
    if found.is_stream:
        return Redirect(f"p/{asked.name}/replay/{number}")
    rank = asked.optional("rank", most=found.loader.world_size - 1)
    plan = found.loader.plan(step=number, rank=rank)
    node = made_by(found.loader, number)
    positions = np.array([record.position for record in plan.records], dtype=np.int64)
    owners = sources_of(node, positions).tolist() if positions.size else []
    document: dict[str, Any] = {
        "name": asked.name,
        "step": plan.step,
        "batch": plan.batch,
        "world_size": plan.world_size,
        "rank": rank,
        "notes": list(found.notes),
        "after_end": after_end(found, number),
        "sources": _sources(found.loader, plan, owners, is_whole=rank is None),
        "loss": _loss(opened.logs.get(asked.name), number),
        **(
            {"journal": journal_facts(entries, source_names(node))}
            if (entries := entries_at(found.loader, number))
            else {}
        ),
    }
    if entries := entries_at(found.loader, number):
        document["journal"] = journal_facts(entries, source_names(node))
    by, header = asked.choice("by", ("position", "rank", "length", "odd")), list(_HEADER)
    more: dict[str, Any] = {"job": None, "by": by, **_totals(plan)}
    rows = _StepRows(opened, source_names(node), _ordered(plan, owners, by))
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
    requests = requests_of(made_by(loader, plan.step), positions.tolist())
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
    _add_texts(opened, page)
    return {
        "rows": page,
        "first": first,
        "n": n,
        "fetches_odd": opened.scans and can_rank(opened, asked.name),
        "packed": is_packed(opened, asked.name),
    }


def _ordered(plan: StepPlan, owners: list[int], by: str) -> list[tuple[PlannedRecord, int]]:
    """Return the records with the indices of their sources, in order; a job finds the odd ones."""
    pairs = list(zip(plan.records, owners, strict=True))
    if by == "rank":
        pairs.sort(key=lambda pair: (pair[0].rank, pair[0].position))
    elif by == "length":
        pairs.sort(key=lambda pair: -(own_bytes(pair[0].place) or 0))
    return pairs


class _StepRows(Sequence[dict[str, Any]]):
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
    def __getitem__(self, at: slice) -> _StepRows: ...

    def __getitem__(self, at: int | slice) -> dict[str, Any] | _StepRows:
        if isinstance(at, slice):
            return _StepRows(self._opened, self._names, self._records[at])
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
    job = asked_job(opened, asked, has_result=True)
    found = job.partial
    if not isinstance(found, Oddness):
        planned = opened.pipeline(asked.name).loader.plan(step=int(asked.path["step"]))
        positions = np.array([record.position for record in planned.records], dtype=np.int64)
        found = _oddness_of(opened, asked.name, positions)
    document = found.document()
    by_position = {row["position"]: row for row in rows}
    ranked = []
    for each in document["records"]:
        row = by_position.get(each["position"])
        if row is not None:
            values = {name: measure and measure["value"] for name, measure in each["measures"].items()}
            more = {**values, "same_text_at": each["same_text_at"], "why": ", ".join(reasons(each))}
            ranked.append({**more, **row})
    return document, ranked, dict(job.shown)


def _sources(loader: Loader, plan: StepPlan, owners: list[int], *, is_whole: bool) -> list[dict[str, Any]]:
    """Return how many records of each source a step has, and how many the weights plan."""
    names, counts = source_names(node_of(loader.dataset)), Counter(owners)
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


def search_around(opened: Opened, asked: Asked) -> Redirect:
    """Start the search for the texts of a step in the steps around it, and return where it is shown."""
    number = int(asked.path["step"])
    records = opened.pipeline(asked.name).loader.plan(step=number).records
    positions = np.array([record.position for record in records], dtype=np.int64)
    work, page = _work(opened, asked.name, positions), f"p/{asked.name}/step/{number}?by=odd&job={{job}}"
    return started(opened, asked, "same texts", (asked.name, number), work, page)


def _oddness_of(opened: Opened, name: str, positions: Int64s) -> Oddness:
    """Return the oddness of a batch, with the texts that come twice in it.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    found: Oddness = next(_work(opened, name, positions, steps=0))
    return found


def can_rank(opened: Opened, name: str) -> bool:
    """Return True if records can be read as they are in files: the files are here, and no function runs."""
    try:
        return not calls_functions(records_of(opened, name))
    except DataNotFound:
        return False


def reasons(record: dict[str, Any]) -> list[str]:
    """Return what is unusual about a record of the document of ``Oddness``, in words.

    Example:
        >>> reasons({"measures": {"bytes": {"value": 9000.0, "percentile": 99.95}}})
        ['longer than 99.9 %']
    """
    reasons = []
    for name, measure in record["measures"].items():
        if measure is None:
            return ["cannot be read"]
        percentile = measure["percentile"]
        if percentile is None or name not in _HIGH:
            continue
        if percentile >= _RARE:
            reasons.append(f"{_HIGH[name]} than {_share(percentile)}")
        elif percentile <= 100 - _RARE:
            reasons.append(f"{_LOW[name]} than {_share(100 - percentile)}")
    return reasons


def _share(percent: float) -> str:
    return "all" if percent >= 100 else f"{int(percent * 10) / 10:g} %"  # noqa: PLR2004 - percent


def _work(opened: Opened, name: str, positions: Int64s, *, steps: int = _AROUND) -> Generator[Oddness]:
    node = records_of(opened, name)
    kept: dict[int, NDArray[np.float64]] = opened.kept.get(("usual", name), dict)
    sources = np.unique(sources_of(node, positions)).tolist()
    missing = [source for source in sources if source not in kept]
    if missing:
        kept.update(usual(node, missing, sample=opened.sample, text_key=opened.text_key))
    yield from odd(node, positions, kept, steps=steps, text_key=opened.text_key)


def records_of(opened: Opened, name: str) -> Node:
    """Return a pipeline's order over the records as they are in files; its own where they are grouped.

    Raises:
        DataNotFound: the files of a source are not on this machine.
    """
    return opened.kept.get(("as in files", name), lambda: as_in_files(made_by(opened.pipeline(name).loader)))


def _add_texts(opened: Opened, rows: list[dict[str, Any]]) -> None:
    """Read the records of some rows whose data is open, source by source, and add their beginnings."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row["text"] = None
        if row["dataset"] is not None:
            by_name.setdefault(row["dataset"], []).append(row)
    for name, some in by_name.items():
        numbers = np.array([row["number"] for row in some], dtype=np.int64)
        engine = engine_of_rows(opened, name)
        for row, record in zip(some, read_sample(node_of(opened.dataset(name)), numbers), strict=True):
            row["text"] = _text_of(record, opened.text_key, engine)


def _text_of(record: Any, key: str | None, engine: Engine | None) -> Any:
    """Return what a table shows for a record: the named field, the last turn, the longest text, or tokens."""
    turns = [] if key else [last_words(each) for each in turns_of(record)]
    text = ": ".join(turns[0]) if turns else text_of(record, key)
    if text is None and engine is not None and isinstance(record, dict):
        texts = (ids_text(engine, str(name), value) for name, value in record.items())
        text = next((each for each in texts if each is not None), None)
    return record if text is None else text[:_CHARACTERS]


def position(opened: Opened, asked: Asked) -> Page:
    """Return one position of a pipeline, with its neighbours."""
    pipeline, number = opened.pipeline(asked.name), int(asked.path["position"])
    node = made_by(pipeline.loader)
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
    document["after_end"] = position_after_end(pipeline, number)
    packed = packed_node_at(node, number) is not None
    return Page("position", f"{asked.name}, position {number:,}", document, {"packed": packed})


def when(opened: Opened, asked: Asked) -> Page:
    """Return the steps at which a row of a file comes, in some epochs.

    The file is named by its path or the end of it; the row of each file of that name is looked for.

    Raises:
        KeyNotFound: the pipeline reads no such file, or none of them has the row.
    """
    pipeline = opened.pipeline(asked.name)
    loader = pipeline.loader
    path, row = asked.text("file"), asked.count("row", default=0)
    start = asked.count("from", default=loader.epoch)
    epochs = asked.count("epochs", default=5, least=1, most=_MOST_EPOCHS)
    paths = _paths(loader, path, row) if path else []
    found = [
        (at, file) for file in paths for at in loader.when(file, row, epochs=range(start, start + epochs))
    ]
    found.sort(key=lambda pair: pair[0].position)
    comes = [{"path": json_safe(file), **coming_document(pipeline, at)} for at, file in found]
    document = {
        "name": asked.name,
        "file": path,
        "row": row,
        "paths": list(map(json_safe, paths)),
        "from": start,
        "epochs": epochs,
        "made_of": COMPUTED,
        "comes": comes,
    }
    header = ["epoch", "step", "rank", "position", "path", "after_end"]
    table = PageRows(header, [[each[key] for key in header] for each in comes])
    return Page("when", f"{asked.name}, when a row comes", document, table=table)


def _paths(loader: Loader, name: str, row: int) -> list[str]:
    """Return the paths of the files that a name means and that have a row; for other data the name.

    Raises:
        KeyNotFound: there are none.
    """
    node = node_of(loader.dataset)
    if has_row(node, name, row):
        return [name]
    files = paths_named(node, name)
    found = [path for path, records in files.items() if row < records]
    if not found:
        message = f"the pipeline reads no file {name!r}"
        if files:
            message = f"{name!r} has {max(files.values()):,} rows, and no row {row:,}"
        raise KeyNotFound(message)
    return found
