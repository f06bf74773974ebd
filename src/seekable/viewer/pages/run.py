"""Figures of a run over its steps, the mixture of sources and the padding of batches; the padding of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.positioned import first_step, position_of
from seekable.loader.steerable import made_by
from seekable.nodes.node import node_of
from seekable.viewer.fact_figures import mixture_figure, padding_figure
from seekable.viewer.facts.filtered_rows import is_quick
from seekable.viewer.facts.lengths import index_unit
from seekable.viewer.facts.named_sources import (
    as_in_files,
    source_counts,
    source_names,
    source_nodes,
    sources_in_files,
)
from seekable.viewer.facts.padding import BATCHES, DataPadding, Padding, data_padding, padding
from seekable.viewer.facts.run_mixture import UNITS, mixture, usual_stop
from seekable.viewer.facts.saved_state import journal_facts
from seekable.viewer.facts.token_counts import record_measure, token_rates
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, PageRows, Redirect, Svg
from seekable.viewer.pages.job import asked_job, started
from seekable.viewer.pages.page_records import data_key

if TYPE_CHECKING:
    from collections.abc import Generator

    from seekable.viewer.facts.run_mixture import RunMixture
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


_WORST = 10


def mixture_page(opened: Opened, asked: Asked) -> Page:
    """Return what each source gives from one step to another."""
    found, loader = _mixture_found(opened, asked), opened.pipeline(asked.name).loader
    last = int(found.steps[-1])
    node = made_by(loader, max(0, last - 1))
    before = source_counts(node, np.array([position_of(loader, last)]))[0].tolist()
    sizes = [source.size for source in source_nodes(node)]
    document = {"name": asked.name, **found.document()}
    planned, delivered = found.planned.sum(axis=0), found.delivered.sum(axis=0)
    rows: list[list[Any]] = []
    for at, name in enumerate(found.names):
        epochs = before[at] / sizes[at] if sizes[at] else None
        share = [100 * float(each[at]) / (float(each.sum()) or 1.0) for each in (planned, delivered)]
        rows.append([name, *share, float(delivered[at]), float(delivered[at] - planned[at]), epochs])
    header = ["source", "planned %", "delivered %", "delivered", "difference", "epochs by the end"]
    more = {"start": int(found.steps[0]), "stop": last, "rows": rows}
    more["after_end"] = after_end(opened.pipeline(asked.name), last - 1)
    more["journal"] = journal_facts(loader.journal, found.names)
    return Page("mixture", f"{asked.name}, mixture", document, more, table=PageRows(header, rows))


def mixture_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the delivered mixture as areas, with the plan as lines."""
    journal = opened.pipeline(asked.name).loader.journal
    figure = mixture_figure(asked.name, _mixture_found(opened, asked), changes=[each.at for each in journal])
    return Svg(figure.draw(asked.theme))


def _mixture_found(opened: Opened, asked: Asked) -> RunMixture:
    loader = opened.pipeline(asked.name).loader
    node = node_of(loader.dataset)
    start = asked.count("from", default=first_step(loader))
    stop = asked.count("to", default=usual_stop(loader, start=start), least=start)
    unit = asked.choice("in", UNITS)
    if stop == start:
        message = f"to= must be above from= (got {start:,} for both)"
        raise InvalidArgument(message)

    def make() -> RunMixture:
        rates = None
        if unit == "tokens":
            rates = token_rates(
                zip(source_names(node), sources_in_files(node), strict=True),
                opened.tokenizer,
                text_key=opened.text_key,
            )
        return mixture(loader, start=start, stop=stop, unit=unit, tokens_per_byte=rates)  # type: ignore[arg-type]  # one of UNITS

    return opened.results.get(("mixture", asked.name, start, stop, unit), make)


def padding_page(opened: Opened, asked: Asked) -> Page:
    """Return the padding from one step to another, the steps with most of it, and how far its job is."""
    start, stop = _window(opened, asked)
    loader = opened.pipeline(asked.name).loader
    found = _padding_found(opened, asked)
    job = asked_job(opened, asked)
    document: dict[str, Any] = {"name": asked.name, "from": start, "to": stop, **job.document}
    shown: dict[str, Any] = {"found": found, "worst": [], "start": start, "stop": stop, **job.shown}
    shown["by_index"] = index_unit(node_of(loader.dataset))
    shown["after_end"] = after_end(opened.pipeline(asked.name), stop - 1)
    table = None
    if found is not None:
        figure = padding_figure(asked.name, found)
        document |= figure.document
        table = figure.table
        order = np.argsort(-found.shares, kind="stable")[:_WORST].tolist()
        rows = list(figure.table.rows)
        shown["worst"] = [rows[at] for at in order]
    return Page("padding", f"{asked.name}, padding", document, shown, table=table)


def padding_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the padding of each step that was looked at as a line.

    Raises:
        KeyNotFound: the records were not read yet, and the index has no lengths.
    """
    found = _padding_found(opened, asked)
    if found is None:
        message = f"the index of {asked.name} has no lengths: its page of padding reads the records"
        raise KeyNotFound(message)
    return Svg(padding_figure(asked.name, found).draw(asked.theme))


def read_padding(opened: Opened, asked: Asked) -> Redirect:
    """Start to read the records of some steps, and return where their padding is shown."""
    start, stop = _window(opened, asked)
    work, key = _read(opened, asked.name, start, stop), (asked.name, start, stop)
    page = f"p/{asked.name}/padding?from={start}&to={stop}&job={{job}}"
    return started(opened, asked, "padding", key, work, page)


def _window(opened: Opened, asked: Asked) -> tuple[int, int]:
    loader = opened.pipeline(asked.name).loader
    start = asked.count("from", default=first_step(loader))
    stop = asked.count("to", default=usual_stop(loader, start=start))
    if stop <= start:
        message = f"to= must be above from= (got {stop:,} and {start:,})"
        raise InvalidArgument(message)
    return start, stop


def _padding_found(opened: Opened, asked: Asked) -> Padding | None:
    """Return the padding that the address's job found, or that of the index; None without lengths."""
    if asked.query.get("job"):
        partial = opened.jobs[asked.text("job")].partial
        return partial if isinstance(partial, Padding) else None
    start, stop = _window(opened, asked)
    loader = opened.pipeline(asked.name).loader
    if index_unit(made_by(loader, start)) is None:
        return None
    return opened.results.last(("padding", asked.name, start, stop), padding(loader, start=start, stop=stop))


def _read(opened: Opened, name: str, start: int, stop: int) -> Generator[Padding]:
    """Yield the padding by the records as they are in the files; no function of the pipeline runs."""
    loader = opened.pipeline(name).loader
    first = as_in_files(made_by(loader, start)).record(position_of(loader, start))
    measure = record_measure(first, text_key=opened.text_key, tokenizer=opened.tokenizer)
    yield from padding(loader, start=start, stop=stop, measure=measure, source=as_in_files)


def data_padding_page(opened: Opened, asked: Asked) -> Page:
    """Return the padding of data by batch and order, and how far the job is that reads the records.

    It is that of the index; of small data without lengths the records are read at once.
    """
    node, job = node_of(opened.dataset(asked.name)), asked_job(opened, asked)
    found = job.partial if isinstance(job.partial, DataPadding) else None
    unit = index_unit(node)
    if not job.document and node.size and (unit is not None or is_quick(node)):
        work = data_padding(node) if unit is not None else _data_read(opened, asked.name)
        found = opened.results.last(("padding", *data_key(opened, asked.name)), work)
    document: dict[str, Any] = {"name": asked.name, "records": node.size, **job.document}
    shown: dict[str, Any] = {
        "found": found,
        "batches": BATCHES,
        "by_order": {},
        "job_live": False,
        **job.shown,
    }
    table = None
    if found is not None:
        document |= found.document()
        for each in found.batches:
            shown["by_order"].setdefault(each.order, []).append(each)
        rows = [(each.order, each.batch, each.share, each.low, each.high) for each in found.batches]
        table = PageRows(("order", "batch", "share", "low", "high"), rows)
    return Page("data_padding", f"{asked.name}, padding", document, shown, table=table)


def read_data_padding(opened: Opened, asked: Asked) -> Redirect:
    """Start to read records for their lengths, and return where the padding is shown."""
    work, key = _data_read(opened, asked.name), data_key(opened, asked.name)
    return started(opened, asked, "padding of data", key, work, f"d/{asked.name}/padding?job={{job}}")


def _data_read(opened: Opened, name: str) -> Generator[DataPadding]:
    node = node_of(opened.dataset(name))
    measure = record_measure(node.record(0), text_key=opened.text_key, tokenizer=opened.tokenizer)
    yield from data_padding(node, measure=measure)
