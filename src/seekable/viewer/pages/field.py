"""One key of a dataset's records: types, values, lengths, numbers, and the rows where it is unusual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.charts.plots import bars, histogram
from seekable.viewer.charts.sheet import THEMES
from seekable.viewer.facts.field import EMPTY, MISSING, field
from seekable.viewer.facts.key_paths import path_of, path_text
from seekable.viewer.page import Page, PageRows, Svg
from seekable.viewer.render import one_line

if TYPE_CHECKING:
    from seekable.viewer.facts.field import FieldFacts
    from seekable.viewer.facts.lengths import Histogram
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MOST = 10_000
_CHARTS = ("lengths", "numbers", "values")


def page(opened: Opened, asked: Asked) -> Page:
    """Return the values of a key in a sample.

    Raises:
        InvalidArgument: the key is not written as a key.
    """
    found = _found(opened, asked)
    key = found.key
    table = PageRows(
        ("value", "count", "of"), [(each.value, each.share.count, each.share.of) for each in key.top]
    )
    kinds = [name for name, _ in key.types]
    odd = [name for name in (MISSING, EMPTY, *kinds[1:]) if name in found.rows]
    charts = [name for name in _CHARTS[:2] if _histogram(found, name) is not None]
    charts = ["values"] if key.is_label else charts
    shown = {"found": found, "odd": odd, "charts": charts, "key": path_text(key.path)}
    document = {"name": asked.name, **found.document()}
    return Page("field", f"{asked.name}, {path_text(key.path)}", document, shown, table)


def chart(opened: Opened, asked: Asked) -> Svg:
    """Return the lengths, or the numbers, of a key as a histogram; the values of a label as bars.

    Raises:
        KeyNotFound: its values have none.
    """
    found, name = _found(opened, asked), asked.choice("of", _CHARTS)
    key, theme = path_text(found.key.path), asked.choice("theme", THEMES)
    if name == "values" and found.key.is_label:
        names = [one_line(each.value).striptags() for each in found.key.top]
        counts = [each.share.count for each in found.key.top]
        title = f"{asked.name}: values of {key}"
        return Svg(bars(names, counts, title=title, unit="values", most=len(names), theme=theme))  # type: ignore[arg-type]
    bins = _histogram(found, name) if name != "values" else None
    if bins is None:
        message = f"the values of {key} have no {name}"
        raise KeyNotFound(message)
    unit = found.key.lengths.unit if name == "lengths" and found.key.lengths is not None else "value"
    edges = bins.edges if len(set(bins.edges)) > 1 else (bins.edges[0], bins.edges[0] + 1)
    return Svg(
        histogram(
            edges,
            bins.counts,
            title=f"{asked.name}: {name} of {key}",
            x_name=unit,
            log=bins.scale == "log",
            theme=theme,  # type: ignore[arg-type]  # one of THEMES
        )
    )


def _histogram(found: FieldFacts, name: str) -> Histogram | None:
    return found.lengths if name == "lengths" else found.numbers


def _found(opened: Opened, asked: Asked) -> FieldFacts:
    node, path = opened.dataset(asked.name).node, path_of(asked.text("key"))
    n = asked.count("n", default=opened.sample, least=1, most=_MOST)
    seed = asked.count("seed", default=0)
    work = field(node, path, n=n, seed=seed)
    return opened.kept.get(("field", asked.name, path, n, seed), lambda: list(work)[-1])
