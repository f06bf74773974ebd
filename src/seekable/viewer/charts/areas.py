"""Shares over time as areas on top of each other, with the plan as a line over them: a mixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.viewer.charts.frame import Frame
from seekable.viewer.charts.names import shortened
from seekable.viewer.charts.sheet import TINTS, Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.viewer.charts.sheet import Theme

_WIDTH, _HEIGHT = 860, 260

_RIGHT = 200
"""The pixels of the names and shares beside the areas."""

_LETTERS = 16
"""The letters of 11 pixels that a name has room for, behind its share."""

_LINE = 15.5
"""The pixels from one name to the next, at least."""

MOST_AREAS = 12
"""Beyond so many, the largest are drawn, and the others together."""


def areas(
    names: Sequence[str],
    steps: Sequence[int],
    shares: NDArray[np.float64],
    planned: NDArray[np.float64],
    *,
    title: str,
    x_name: str = "step",
    theme: Theme = "auto",
) -> str:
    """Return areas as SVG.

    Args:
        names: the name of each area.
        steps: the places, ascending, one more than there are rows.
        shares: what each area has from one place to the next, shape (rows, areas); each row is scaled
            to 100 %.
        planned: the same as planned; a line at the upper end of each area.
        title: what is shown.
        x_name: what the places are.
        theme: the colours.

    Example:
        >>> import numpy as np
        >>> row = np.array([[3.0, 1.0]])
        >>> picture = areas(["web", "code"], [0, 10], row, row, title="delivered")
        >>> "web 75.0 %, code 25.0 %" in picture
        True
    """
    names, shares, planned = _largest(names, shares, planned)
    upper, plan = (np.cumsum(_scaled(each), axis=1) for each in (shares, planned))
    totals = _scaled(shares.sum(axis=0, keepdims=True))[0]
    seen = ", ".join(f"{name} {total:.1f} %" for name, total in zip(names, totals, strict=True))
    sheet = Sheet(
        title,
        f"Shares from {x_name} {steps[0]:,} to {steps[-1]:,}: {seen}",
        width=_WIDTH,
        height=_HEIGHT,
        theme=theme,
    )
    frame = Frame(_WIDTH, _HEIGHT, (steps[0], 0), (steps[-1], 100), right=_RIGHT, least=(1, 0), unit=" %")
    below = np.zeros(len(upper))
    for number in range(len(names)):
        top = upper[:, number]
        there, back = _steps(frame, steps, top), _steps(frame, steps, below)[::-1]
        sheet.area(np.concatenate([there, back]), tint=number)
        below = top
    for number in range(len(names) - 1):
        sheet.curve(_steps(frame, steps, upper[:, number]), kind="edge", width=0.6)
        sheet.curve(_steps(frame, steps, plan[:, number]), kind="over", width=1.2)
    _names(sheet, frame, names, totals, upper[-1])
    frame.draw(sheet, title=title, x_name=x_name)
    return str(sheet)


def _names(
    sheet: Sheet, frame: Frame, names: Sequence[str], totals: NDArray[np.float64], upper: NDArray[np.float64]
) -> None:
    """Write each name and share beside the end of its area, in the order of the areas."""
    middles = [frame.y(each) for each in (upper - np.diff(upper, prepend=0) / 2).tolist()]
    left = _WIDTH - _RIGHT + 12
    for number, y in enumerate(_apart(middles, frame.y(100) + 4, frame.y(0) - 4)):
        sheet.cell(left, round(y - 5.5, 1), 11, 11, tint=number)
        sheet.text(left + 60, round(y + 4, 1), f"{totals[number]:.1f} %", anchor="end", kind="small")
        sheet.text(left + 68, round(y + 4, 1), shortened(names[number], _LETTERS), kind="small")


def _apart(middles: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return places near some others, from the lowest on the sheet up, a line apart and between two ends."""
    places: list[float] = []
    for middle in reversed(middles):
        places.append(max(middle, places[-1] + _LINE if places else top))
    for number in reversed(range(len(places))):
        places[number] = min(places[number], bottom)
        bottom = places[number] - _LINE
    return places[::-1]


def _steps(frame: Frame, steps: Sequence[int], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners of a line that has a value from each place to the next."""
    return frame.places(np.repeat(np.array(steps, dtype=np.float64), 2)[1:-1], np.repeat(values, 2))


def _scaled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows in percent of their sums."""
    sums = rows.sum(axis=1, keepdims=True)
    return 100 * rows / np.where(sums > 0, sums, 1)


def _largest(
    names: Sequence[str], shares: NDArray[np.float64], planned: NDArray[np.float64]
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest areas, and the others as one."""
    if len(names) <= min(MOST_AREAS, len(TINTS)):
        return list(names), shares, planned
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    kept = np.sort(order[: MOST_AREAS - 1])
    rest = np.setdiff1d(order, kept)
    out = [
        np.concatenate([each[:, kept], each[:, rest].sum(axis=1, keepdims=True)], axis=1)
        for each in (shares, planned)
    ]
    return [*(names[at] for at in kept.tolist()), f"{rest.size} others"], out[0], out[1]
