"""Curves of several runs on one chart as SVG, with rules at some steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable.viewer.charts import Frame, Sheet, drawn_places, places_apart, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.viewer.charts import Theme

__all__ = ["CURVES_RIGHT", "CURVES_WIDTH", "MOST_CURVES", "Curve", "curves", "rule_words"]

CURVES_WIDTH, CURVES_RIGHT = 1100, 150
"""The pixels of the chart, and of the names at its right."""

MOST_CURVES = 6
_HEIGHT = 320
_NAME_LETTERS = 17
_STROKES = (
    ("#2f7fd1", ""),
    ("#cf6a12", "7 3"),
    ("#2c9460", "2 3"),
    ("#b25bc4", "9 3 2 3"),
    ("#cc5a5a", "4 4"),
    ("#7d8791", "12 4"),
)
"""The colour and the dashes of each curve: seen on light and dark paper, told apart without colours."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A value by step."""

    name: str
    steps: Int64s
    """Ascending."""

    values: NDArray[np.float64]
    """The value of each step; those that are not finite are left out."""

    marks: Sequence[tuple[int, float]] = ()
    """Steps and values that get a dot, such as spikes."""


def curves(
    drawn: Sequence[Curve],
    *,
    title: str,
    rules: Sequence[tuple[int, str]] = (),
    theme: Theme = "auto",
) -> str:
    """Return curves over the same steps as SVG, each with its name at its end.

    Args:
        drawn: the curves, at most 6; the first one lies above the others.
        title: what is shown.
        rules: steps with a line across the chart, and a short word above it.
        theme: the colours.

    Example:
        >>> import numpy as np
        >>> steps = np.arange(3)
        >>> two = [Curve("a", steps, steps / 2), Curve("b", steps, steps / 4)]
        >>> picture = curves(two, title="loss", rules=[(1, "1")])
        >>> "a from 0 at step 0 to 1 at step 2; b from 0 at step 0 to 0.5 at step 2" in picture
        True
    """
    finite = [_finite(curve) for curve in drawn]
    some = [curve for curve in finite if curve.values.size]
    seen = "; ".join(_in_words(curve) for curve in some) or "There is no value."
    sheet = Sheet(title, seen, width=CURVES_WIDTH, height=_HEIGHT, theme=theme)
    if not some:
        return str(sheet)
    low, high = min(float(each.values.min()) for each in some), max(float(each.values.max()) for each in some)
    ends = min(int(each.steps[0]) for each in some), max(int(each.steps[-1]) for each in some)
    frame = Frame(
        CURVES_WIDTH,
        _HEIGHT,
        (ends[0], low),
        (ends[1], high if high > low else low + 1),
        right=CURVES_RIGHT,
        least=(1, 0),
    )
    frame.grid(sheet)
    frame.rules(sheet, rules)
    for number, curve in reversed([*enumerate(finite)]):
        if curve.values.size:
            colour, dashes = _STROKES[number % len(_STROKES)]
            at = drawn_places(curve.values)
            sheet.stroke(frame.places(curve.steps[at], curve.values[at]), colour=colour, dashes=dashes)
            sheet.dots(((frame.x(step), frame.y(value)) for step, value in curve.marks), width=7)
    _names(sheet, frame, finite)
    frame.draw(sheet, title=title, x_name="step")
    return str(sheet)


def _finite(curve: Curve) -> Curve:
    kept = np.isfinite(curve.values)
    marks = [(step, value) for step, value in curve.marks if np.isfinite(value)]
    return Curve(curve.name, curve.steps[kept], curve.values[kept], marks)


def _in_words(curve: Curve) -> str:
    first, last = (
        f"{value:.4g} at step {step:,}"
        for step, value in ((curve.steps[at], curve.values[at]) for at in (0, -1))
    )
    marks = f", with {len(curve.marks)} marks" if curve.marks else ""
    return f"{curve.name} from {first} to {last}{marks}"


def _names(sheet: Sheet, frame: Frame, drawn: Sequence[Curve]) -> None:
    """Write each name beside the end of its curve, with a piece of its line."""
    shown = [(number, curve) for number, curve in enumerate(drawn) if curve.values.size]
    order = sorted(shown, key=lambda pair: float(pair[1].values[-1]))
    middles = [frame.y(float(curve.values[-1])) for _, curve in order]
    left = CURVES_WIDTH - CURVES_RIGHT + 10
    places = places_apart(middles, frame.y(frame.high[1]) + 4, frame.y(frame.low[1]) - 4)
    for (number, curve), y in zip(order, places, strict=True):
        colour, dashes = _STROKES[number % len(_STROKES)]
        piece = np.array([(left, y), (left + 22, y)])
        sheet.stroke(piece, colour=colour, dashes=dashes, width=2)
        sheet.text(left + 28, round(y + 4, 1), shortened(curve.name, _NAME_LETTERS), kind="small")


def rule_words(steps: Sequence[int]) -> list[tuple[int, str]]:
    """Return rules at steps, numbered from 1 as the rows of the table beside the chart.

    Example:
        >>> rule_words([10, 500])
        [(10, '1'), (500, '2')]
    """
    return [(step, str(number)) for number, step in enumerate(steps, 1)]
