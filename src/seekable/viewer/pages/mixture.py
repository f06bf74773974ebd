"""The mixture over time: what each source was planned to give, and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.mixture import UNITS, mixture, usual_stop
from seekable.viewer.facts.sources import source_counts, source_names, source_nodes, sources_in_files
from seekable.viewer.facts.token_counts import token_rates
from seekable.viewer.figures import mixture_figure
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, PageRows, Svg

if TYPE_CHECKING:
    from seekable.viewer.facts.mixture import RunMixture
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def page(opened: Opened, asked: Asked) -> Page:
    """Return what each source gives from one step to another."""
    found, loader = _found(opened, asked), opened.pipeline(asked.name).loader
    node = loader.dataset.node
    before = source_counts(node, np.array([loader.position_of(int(found.steps[-1]))]))[0].tolist()
    sizes = [source.size for source in source_nodes(node)]
    document = {"name": asked.name, **found.document()}
    planned, delivered = found.planned.sum(axis=0), found.delivered.sum(axis=0)
    rows: list[list[Any]] = []
    for at, name in enumerate(found.names):
        epochs = before[at] / sizes[at] if sizes[at] else None
        share = [100 * float(each[at]) / (float(each.sum()) or 1.0) for each in (planned, delivered)]
        rows.append([name, *share, float(delivered[at]), float(delivered[at] - planned[at]), epochs])
    header = ["source", "planned %", "delivered %", "delivered", "difference", "epochs by the end"]
    stop = int(found.steps[-1])
    more = {"start": int(found.steps[0]), "stop": stop, "rows": rows}
    more["after_end"] = after_end(opened.pipeline(asked.name), stop - 1)
    return Page("mixture", f"{asked.name}, mixture", document, more, table=PageRows(header, rows))


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the delivered mixture as areas, with the plan as lines."""
    figure = mixture_figure(asked.name, _found(opened, asked))
    return Svg(figure.draw(asked.choice("theme", THEMES)))  # type: ignore[arg-type]  # one of THEMES


def _found(opened: Opened, asked: Asked) -> RunMixture:
    loader = opened.pipeline(asked.name).loader
    node = loader.dataset.node
    start = asked.count("from", default=loader.first_step)
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

    return opened.kept.get(("mixture", asked.name, start, stop, unit), make)
