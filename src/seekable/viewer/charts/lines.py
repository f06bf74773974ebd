"""A line of values over steps, with marks: the losses of a run and their spikes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from seekable.viewer.charts.frame import Frame
from seekable.viewer.charts.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.viewer.charts.sheet import Theme

_WIDTH, _HEIGHT = 860, 240

_MOST_POINTS = 1200


def lines(
    steps: NDArray[np.int64],
    values: NDArray[np.float64],
    *,
    marks: Sequence[tuple[int, float]] = (),
    title: str,
    x_name: str = "step",
    from_zero: bool = False,
    theme: Theme = "auto",
) -> str:
    """Return a line as SVG; of very many points the least and the greatest of each stretch.

    Args:
        steps: the places, ascending, int64.
        values: the value of each; those that are not finite are left out.
        marks: places and values that get a mark, such as spikes.
        title: what is shown.
        x_name: what the places are.
        from_zero: True to begin the upright axis at 0; else it begins at the least value.
        theme: the colours.

    Example:
        >>> import numpy as np
        >>> picture = lines(np.arange(3), np.array([2.0, 1.0, 1.5]), title="loss", marks=[(2, 1.5)])
        >>> "from 2 at step 0 to 1.5 at step 2" in picture
        True
    """
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    if not values.size:
        return str(Sheet(title, "There is no value.", width=_WIDTH, height=_HEIGHT, theme=theme))
    seen = (
        f"A line from {values[0]:.4g} at {x_name} {steps[0]:,} to {values[-1]:.4g} at {x_name} {steps[-1]:,}"
    )
    seen += f", between {values.min():.4g} and {values.max():.4g}; {len(marks)} marks"
    sheet = Sheet(title, seen, width=_WIDTH, height=_HEIGHT, theme=theme)
    low, high = 0.0 if from_zero else float(values.min()), float(values.max())
    ends = (int(steps[0]), low), (int(steps[-1]), high if high > low else low + 1)
    frame = Frame(_WIDTH, _HEIGHT, *ends, least=(1, 0))
    frame.grid(sheet)
    at = _kept(values)
    sheet.curve(frame.places(steps[at], values[at]), kind="dots", width=1.4)
    there = [(frame.x(step), frame.y(value)) for step, value in marks if np.isfinite(value)]
    sheet.dots(there, width=7)
    frame.draw(sheet, title=title, x_name=x_name)
    return str(sheet)


def _kept(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places to draw: all, or the least and the greatest of each of 600 stretches."""
    if values.size <= _MOST_POINTS:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, _MOST_POINTS // 2 + 1).astype(np.int64)
    kept = []
    for start, stop in itertools.pairwise(edges.tolist()):
        part = values[start:stop]
        kept.append(start + np.sort([part.argmin(), part.argmax()]))
    return np.unique(np.concatenate(kept))
