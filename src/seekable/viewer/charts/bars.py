"""Horizontal bars with names beside them: sizes of files, of sources, of parts of a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.viewer.charts.names import shortened
from seekable.viewer.charts.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.charts.sheet import Theme

_WIDTH, _TOP, _ROW = 860, 36, 20
_NAMES, _NUMBERS = 260, 110
"""The pixels of the names at the left, and of the numbers behind the longest bar."""

_LETTERS = 40
"""The letters of 11 pixels that the names have room for."""

MOST_BARS = 30
"""Beyond so many, the others are only counted."""


def bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    unit: str,
    theme: Theme = "auto",
    most: int = MOST_BARS,
) -> str:
    """Return horizontal bars as SVG, in the order given; beyond ``most`` the number of others stands below.

    Args:
        names: the name of each bar; of a long one the end is shown, in which names of files differ.
        values: the length of each bar, at least 0.
        title: what is shown.
        unit: the unit of the values, for the description.
        theme: the colours.
        most: the most bars.

    Example:
        >>> picture = bars(["a.jsonl", "b.jsonl"], [1200, 300], title="files", unit="bytes")
        >>> picture.count("<rect"), "from 1,200 bytes of a.jsonl to 300 bytes of b.jsonl" in picture
        (3, True)
    """
    shown, rest = len(names[:most]), len(names) - len(names[:most])
    height = _TOP + _ROW * (shown + bool(rest)) + 10
    sheet = Sheet(title, _seen(names[:shown], values[:shown], unit), width=_WIDTH, height=height, theme=theme)
    sheet.text(14, 20, title, kind="bold")
    scale = (_WIDTH - _NAMES - 14 - _NUMBERS) / (max(values, default=0) or 1)
    for row, (name, value) in enumerate(zip(names[:shown], values[:shown], strict=True)):
        y, length = _TOP + _ROW * row, round(value * scale, 1)
        sheet.text(_NAMES, y + 13, shortened(name, _LETTERS, keeps_end=True), anchor="end", kind="small")
        sheet.bar(_NAMES + 8, y + 2, max(length, 0.5), _ROW - 5)
        sheet.text(_NAMES + 14 + length, y + 13, f"{value:,}", kind="small")
    if rest:
        sheet.text(_NAMES, _TOP + _ROW * shown + 13, f"and {rest:,} others", anchor="end", kind="small")
    return str(sheet)


def _seen(names: Sequence[str], values: Sequence[float], unit: str) -> str:
    if not names:
        return "There is no bar."
    ends = f"from {values[0]:,} {unit} of {names[0]}"
    if len(names) > 1:
        ends += f" to {values[-1]:,} {unit} of {names[-1]}"
    return f"{len(names)} bars, {ends}"
