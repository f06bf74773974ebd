"""A histogram: counts of values in bins, on a logarithmic or a linear scale."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seekable.viewer.charts.axes import tick_text
from seekable.viewer.charts.frame import Frame
from seekable.viewer.charts.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.charts.sheet import Theme

_WIDTH, _HEIGHT = 860, 220


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    title: str,
    x_name: str,
    log: bool = False,
    theme: Theme = "auto",
) -> str:
    """Return a histogram as SVG.

    Args:
        edges: the edges of the bins, ascending, one more than there are bins.
        counts: the number of values in each bin.
        title: what is counted.
        x_name: the name and the unit of the values.
        log: True if the bins grow by powers of ten.
        theme: the colours.

    Example:
        >>> picture = histogram([0, 10, 20], [3, 1], title="lengths", x_name="bytes")
        >>> picture.count("<rect"), "most, 3, are from 0 to 10 bytes" in picture
        (3, True)
    """
    most = max(counts, default=0)
    at = counts.index(most) if most else 0
    seen = f"{sum(counts):,} values in {len(counts)} bins"
    if most:
        seen += f"; most, {most:,}, are from {tick_text(edges[at])} to {tick_text(edges[at + 1])} {x_name}"
    sheet = Sheet(title, seen, width=_WIDTH, height=_HEIGHT, theme=theme)
    frame = Frame(_WIDTH, _HEIGHT, (edges[0], 0), (edges[-1], most), log=log, least=(float(log), 1))
    frame.grid(sheet)
    for (start, stop), count in zip(pairwise(edges), counts, strict=True):
        left, right, top = frame.x(start), frame.x(stop), frame.y(count)
        if count:
            width, height = max(right - left - 1, 1), max(frame.y(0) - top, 1)
            sheet.bar(round(left, 1), round(frame.y(0) - height, 1), round(width, 1), round(height, 1))
    frame.draw(sheet, title=title, x_name=x_name)
    return str(sheet)
