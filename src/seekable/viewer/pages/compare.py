"""Two pipelines side by side, at one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument
from seekable.viewer.facts.comparison import compare_pipelines
from seekable.viewer.page import Page

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def compare(opened: Opened, asked: Asked) -> Page:
    """Return the differences of two open pipelines.

    Raises:
        InvalidArgument: fewer than two pipelines are open.
    """
    names = tuple(opened.pipelines)
    if len(names) < 2:  # noqa: PLR2004 - two are compared
        message = "two pipelines are compared, and fewer are open: start the viewer with both, as NAME=PATH"
        raise InvalidArgument(message)
    a = asked.choice("a", names)
    b = asked.choice("b", tuple(name for name in names if name != a))
    old, new = opened.pipeline(a).loader, opened.pipeline(b).loader
    step = asked.count("step", default=0)
    found = compare_pipelines(old, new, step=step)
    document = {"a": a, "b": b, **found.document()}
    sources = dict.fromkeys(name for side in (found.old, found.new) for name, _ in side.sources)
    return Page("compare", f"{a} and {b}", document, {"names": names, "sources": list(sources)})
