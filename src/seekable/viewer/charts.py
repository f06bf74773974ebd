"""Charts as SVG: areas of shares over time, bars, histograms, lines with marks, and waveforms of audio.

Numbers go in and text comes out, byte for byte the same in a page, a notebook, a file and the docs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from unicodedata import east_asian_width

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = ("auto", "light", "dark")

TINTS = (
    "#8ecae6",
    "#ffd166",
    "#95d5b2",
    "#f4a261",
    "#cdb4db",
    "#f2a6a4",
    "#d9d9de",
    "#c5e384",
    "#e9c9a0",
    "#a8b8ef",
    "#f6b8d8",
    "#9fdcd5",
)
"""Light enough for dark text on them, and far enough apart; a number always says the same as the colour."""

_LIGHT = (
    ".paper{fill:#fff}text{fill:#1f2328;font:12px system-ui,sans-serif}.small{font-size:11px}\n"
    ".bold{font-weight:600}.on{fill:#15181c}.line{stroke:#57606a;fill:none}.dots{stroke:#0b6bb8;fill:none}"
    ".over{stroke:#15181c;stroke-dasharray:6 3;fill:none}.edge{stroke:#15181c;stroke-opacity:.4;fill:none}\n"
    ".bar{fill:#3b82b8}.grid{stroke:#57606a;stroke-opacity:.2;fill:none}\n"
)
_DARK = (
    ".paper{fill:#15181c}text{fill:#e6e8ea}.on{fill:#15181c}\n.line{stroke:#9aa4ae}.dots{stroke:#6cb6ff}"
    ".bar{fill:#5aa3d8}.grid{stroke:#9aa4ae}"
)
_STYLES: dict[str, str] = {
    "auto": f"\n{_LIGHT}@media(prefers-color-scheme:dark){{{_DARK}}}\n",
    "light": f"\n{_LIGHT}",
    "dark": f"\n{_LIGHT}{_DARK}\n",
}

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Sheet:
    """A picture in the making; ``str(sheet)`` is its SVG.

    Args:
        title: what it is.
        description: what is seen, for those who do not see it.
        width: in pixels.
        height: in pixels.
        theme: the colours; "auto" follows the reader's system.

    Raises:
        InvalidArgument: there is no such theme.
    """

    def __init__(
        self, title: str, description: str, *, width: int, height: int, theme: Theme = "auto"
    ) -> None:
        if theme not in THEMES:
            message = f"theme must be one of {', '.join(THEMES)} (got {theme!r})"
            raise InvalidArgument(message)
        self.width, self.height = width, height
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'role="img" aria-labelledby="title description">\n'
            f'<title id="title">{_safe(title)}</title>\n'
            f'<desc id="description">{_safe(description)}</desc>\n'
            f"<style>{_STYLES[theme]}</style>\n"
            f'<rect class="paper" width="{width}" height="{height}" rx="6"/>\n'
        )
        self._body: list[str] = []

    def text(self, x: float, y: float, words: object, *, anchor: str = "start", kind: str = "") -> None:
        """Write words; ``anchor`` is ``start``, ``middle`` or ``end``."""
        role = f' class="{kind}"' * bool(kind)
        place = f' text-anchor="{anchor}"' * (anchor != "start")
        self._body.append(f'<text x="{x:g}" y="{y:g}"{role}{place}>{_safe(words)}</text>')

    def cell(self, x: float, y: float, width: float, height: float, *, tint: int, label: object = "") -> None:
        """Draw a cell in one of the tints, with a word in its middle."""
        colour = TINTS[tint % len(TINTS)]
        self._body.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"/>'
        )
        if label != "":
            self.text(x + width / 2, y + height / 2 + 4, label, anchor="middle", kind="on small")

    def bar(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a bar in the colour of bars."""
        self._body.append(f'<rect class="bar" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def line(self, *points: tuple[float, float], width: float = 1) -> None:
        """Draw a line through some points."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self._body.append(f'<path class="line" d="M{path}" stroke-width="{width:g}"/>')

    def area(self, points: NDArray[np.float64], *, tint: int) -> None:
        """Fill the area that points outline, an array of shape (points, 2)."""
        self._body.append(f'<path fill="{TINTS[tint % len(TINTS)]}" d="{_relative(points)}z"/>')

    def curve(self, points: NDArray[np.float64], *, kind: str = "line", width: float = 1.5) -> None:
        """Draw a line through points, shape (points, 2); ``kind`` is its class."""
        self._body.append(f'<path class="{kind}" d="{_relative(points)}" stroke-width="{width:g}"/>')

    def stroke(
        self, points: NDArray[np.float64], *, colour: str, dashes: str = "", width: float = 1.6
    ) -> None:
        """Draw a line through points, shape (points, 2), in a colour of its own, dashed if that says so."""
        pattern = f' stroke-dasharray="{dashes}"' * bool(dashes)
        self._body.append(
            f'<path fill="none" stroke="{colour}" d="{_relative(points)}" stroke-width="{width:g}"{pattern}/>'
        )

    def dots(self, points: Iterable[tuple[float, float]], *, width: float = 2.4) -> None:
        """Draw a dot at each of some points."""
        path = "".join(f"M{x:g} {y:g}h0" for x, y in points)
        self._body.append(f'<path class="dots" d="{path}" stroke-width="{width:g}" stroke-linecap="round"/>')

    def grid(self, x: float, width: float, y: Iterable[float]) -> None:
        """Draw a faint line across at each of some heights."""
        path = "".join(f"M{x:g} {at:g}h{width:g}" for at in y)
        self._body.append(f'<path class="grid" d="{path}"/>')

    def ticks(self, x: Iterable[float], y: float, height: float) -> None:
        """Draw a short upright line at each of some places."""
        path = "".join(f"M{at:g} {y:g}v{height:g}" for at in x)
        self._body.append(f'<path class="dots" d="{path}" stroke-width="0.6"/>')

    def __str__(self) -> str:
        return self._head + "\n".join(self._body) + "\n</svg>\n"


def _safe(words: object) -> str:
    """Return words as they stand in XML; characters that it cannot hold become boxes."""
    return escape(_NOT_IN_XML.sub("\ufffd", str(words)))


def _relative(points: NDArray[np.float64]) -> str:
    """Return the path through points, rounded to a tenth of a pixel, by steps: so the text is short.

    Example:
        >>> _relative(np.array([[1, 2], [1, 2], [3.26, 2], [3, 5]]))
        'M1 2h2.3l-0.3 3'
    """
    tenths = np.rint(points * 10).astype(np.int64)
    x, y = (tenths[0] / 10).tolist()
    # Whole tenths that are divided are the nearest floats, so none has more than one digit after the point.
    steps = (np.diff(tenths, axis=0) / 10).tolist()
    return f"M{x:g} {y:g}" + "".join(
        [
            f"l{over:g} {down:g}" if over and down else f"h{over:g}" if over else f"v{down:g}"
            for over, down in steps
            if over or down
        ]
    )


def shortened(name: str, most: int, *, keeps_end: bool = False) -> str:
    """Shorten a name to ``most`` letters, its beginning or its end; a wide letter counts as two.

    Example:
        >>> shortened("common-crawl", 8), shortened("common-crawl", 8, keeps_end=True), shortened("web", 8)
        ('common-…', '…n-crawl', 'web')
        >>> shortened("新聞記事", 6)
        '新聞…'
    """
    if len(name) <= most and _width(name) <= most:
        return name
    kept = name[-most:] if keeps_end else name[:most]
    while kept and _width(kept) >= most:
        kept = kept[1:] if keeps_end else kept[:-1]
    return f"…{kept}" if keeps_end else f"{kept}…"


def _width(name: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in name)


_WIDTH = 860
_AREAS_HEIGHT, _HISTOGRAM_HEIGHT, _LINES_HEIGHT = 260, 220, 240
_STEPS = (1, 2, 5, 10)


_Place = TypeVar("_Place", float, "NDArray[np.float64]")

LEFT = 58
"""The pixels at the left of the area of a chart with axes."""

_RIGHT, _TOP, _BOTTOM = 14, 34, 34

_FEW = 2
"""An axis of at most this many powers of ten has ticks at twice and five times each of them too."""

_AREAS_RIGHT = 200
"""The pixels of the names and shares beside the areas."""

_THIN = 1.0
"""The percent below which the lines of the plan at both ends of an area would run into one."""

_AREA_LETTERS = 16
"""The letters of 11 pixels that fit for a name, after its share."""

_LINE = 15.5
"""The pixels from one name to the next, at least."""

MOST_AREAS = 12
"""The most areas: of more, the largest are drawn, and the others as one."""

_BARS_TOP, _ROW = 36, 20
_LETTER, _NUMBERS = 6.2, 110
"""The pixels of a letter of the names at the left, and of the numbers after the longest bar."""

_BAR_LETTERS = 40
"""The letters of 11 pixels that the names have room for."""

MOST_BARS = 30
"""The most bars that are drawn; further ones are only counted."""

_MOST_POINTS = 1200


def _ticks(low: float, high: float, *, most: int = 6, least: float = 0.0) -> list[float]:
    """Return about ``most`` round numbers between two bounds, ascending.

    ``least`` is the least step from one to the next: 1 where only whole numbers mean something.

    Example:
        >>> _ticks(0, 97)
        [0.0, 20.0, 40.0, 60.0, 80.0]
        >>> _ticks(0, 2), _ticks(0, 2, least=1)
        ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 1.0, 2.0])
        >>> _ticks(5, 5)
        [5.0]
    """
    if not high > low:
        return [float(low)]
    rough = max((high - low) / most, least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _tick_text(value: float) -> str:
    """Return a number as the text of a tick: short, with k, M, G for thousands.

    Example:
        >>> [_tick_text(value) for value in (0, 0.25, 12, 1500, 2_000_000, 3e9)]
        ['0', '0.25', '12', '1.5k', '2M', '3G']
    """
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{mark}"
    return f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Frame:
    """Maps values to places on a sheet of some size."""

    width: int
    height: int
    low: tuple[float, float]
    """The least value of x, and of y."""

    high: tuple[float, float]
    log: bool = False
    """True if x grows by powers of ten."""

    right: int = _RIGHT
    """The pixels that are free at the right."""

    least: tuple[float, float] = (0.0, 0.0)
    """The least step between ticks of x, and of y: 1 where values are whole."""

    unit: str = ""
    """What follows the number of each tick of y."""

    def x(self, value: float) -> float:
        """Return the pixel of an x."""
        low, high, value = (self._scaled(each) for each in (self.low[0], self.high[0], value))
        span = (high - low) or 1.0
        return LEFT + (value - low) / span * (self.width - LEFT - self.right)

    def y(self, value: _Place) -> _Place:
        """Return the pixel of a y, or those of an array."""
        span = (self.high[1] - self.low[1]) or 1.0
        return self.height - _BOTTOM - (value - self.low[1]) / span * (self.height - _TOP - _BOTTOM)

    def places(self, x: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pixels of many values, float64, shape (values, 2).

        Example:
            >>> Frame(860, 240, (0, 0), (10, 1)).places(np.array([0, 10]), np.array([0.0, 1.0])).tolist()
            [[58.0, 206.0], [846.0, 34.0]]
        """
        low, high = self._scaled(self.low[0]), self._scaled(self.high[0])
        scaled = np.log10(np.maximum(x, 1.0)) if self.log else x
        across = LEFT + (scaled - low) / ((high - low) or 1.0) * (self.width - LEFT - self.right)
        return np.stack([across, self.y(y)], axis=-1)

    def grid(self, sheet: Sheet) -> None:
        """Draw a faint line at each tick of y, before what lies over it."""
        sheet.grid(
            LEFT, self.width - self.right - LEFT, (round(self.y(value), 1) for value in self._y_ticks())
        )

    def rules(self, sheet: Sheet, rules: Iterable[tuple[int, str]]) -> None:
        """Draw an upright line at each of some places within the chart, with a word above it."""
        top = self.y(self.high[1])
        for value, word in rules:
            if self.low[0] <= value <= self.high[0]:
                x = round(self.x(value), 1)
                sheet.line((x, top - 2), (x, self.y(self.low[1])))
                sheet.text(x, top - 4, word, anchor="middle", kind="small")

    def draw(self, sheet: Sheet, *, title: str, x_name: str) -> None:
        """Draw the title and both axes."""
        sheet.text(LEFT, 15, title, kind="bold")
        for value in self._y_ticks():
            words = _tick_text(value) + self.unit
            sheet.text(LEFT - 8, self.y(value) + 4, words, anchor="end", kind="small")
            sheet.line((LEFT - 4, self.y(value)), (LEFT, self.y(value)))
        for value in self._x_ticks():
            sheet.text(
                self.x(value), self.height - _BOTTOM + 16, _tick_text(value), anchor="middle", kind="small"
            )
            sheet.line((self.x(value), self.height - _BOTTOM), (self.x(value), self.height - _BOTTOM + 4))
        sheet.text(self.width - self.right, self.height - 4, x_name, anchor="end", kind="small")
        sheet.line(
            (LEFT, _TOP - 6),
            (LEFT, self.height - _BOTTOM),
            (self.width - self.right, self.height - _BOTTOM),
        )

    def _y_ticks(self) -> list[float]:
        return _ticks(self.low[1], self.high[1], most=5, least=self.least[1])

    def _x_ticks(self) -> list[float]:
        if not self.log:
            return _ticks(self.low[0], self.high[0], least=self.least[0])
        low, high = max(self.low[0], 1.0), self.high[0]
        first, last = math.floor(math.log10(low)), math.ceil(self._scaled(high))
        powers = [10.0**power for power in range(first, last + 1)]
        inside = [power for power in powers if low <= power <= high]
        if len(inside) > _FEW:
            return inside
        finer = [step * power for power in powers for step in (1, 2, 5) if low <= step * power <= high]
        return finer if len(finer) > _FEW else _ticks(low, high, least=self.least[0])

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1.0)) if self.log else value


def areas(
    names: Sequence[str],
    steps: Sequence[int],
    shares: NDArray[np.float64],
    planned: NDArray[np.float64],
    *,
    title: str,
    rules: Sequence[tuple[int, str]] = (),
    theme: Theme = "auto",
) -> str:
    """Return shares over time as SVG: areas on top of each other, with the plan as a line over them.

    Args:
        names: the name of each area.
        steps: ascending, one more than there are rows.
        shares: what each area has from one step to the next, shape (rows, areas); each row is scaled
            to 100 %.
        planned: the same as planned; a line at the upper end of each area.
        title: what is shown.
        rules: steps with a line across the areas, and a short word above it.
        theme: the colours.

    Example:
        >>> import numpy as np
        >>> row = np.array([[3.0, 1.0]])
        >>> picture = areas(["web", "code"], [0, 10], row, row, title="delivered")
        >>> "web 75.0 %, code 25.0 %" in picture
        True
    """
    names, shares, planned = _largest(names, shares, planned)
    upper, plan = (np.cumsum(_in_percent(each), axis=1) for each in (shares, planned))
    totals = _in_percent(shares.sum(axis=0, keepdims=True))[0]
    seen = ", ".join(f"{name} {total:.1f} %" for name, total in zip(names, totals, strict=True))
    sheet = Sheet(
        title,
        f"Shares from step {steps[0]:,} to {steps[-1]:,}: {seen}",
        width=_WIDTH,
        height=_AREAS_HEIGHT,
        theme=theme,
    )
    frame = Frame(
        _WIDTH, _AREAS_HEIGHT, (steps[0], 0), (steps[-1], 100), right=_AREAS_RIGHT, least=(1, 0), unit=" %"
    )
    below = np.zeros(len(upper))
    for number in range(len(names)):
        top = upper[:, number]
        there, back = _corners(frame, steps, top), _corners(frame, steps, below)[::-1]
        sheet.area(np.concatenate([there, back]), tint=number)
        below = top
    for number in range(len(names) - 1):
        sheet.curve(_corners(frame, steps, upper[:, number]), kind="edge", width=0.6)
        if totals[number] >= _THIN or number == len(names) - 2:
            sheet.curve(_corners(frame, steps, plan[:, number]), kind="over", width=1.2)
    frame.rules(sheet, rules)
    _names(sheet, frame, names, totals, upper[-1])
    frame.draw(sheet, title=title, x_name="step")
    return str(sheet)


def _names(
    sheet: Sheet, frame: Frame, names: Sequence[str], totals: NDArray[np.float64], upper: NDArray[np.float64]
) -> None:
    """Write each name and share beside the end of its area, in the order of the areas."""
    middles = [frame.y(each) for each in (upper - np.diff(upper, prepend=0) / 2).tolist()]
    left = _WIDTH - _AREAS_RIGHT + 12
    for number, y in enumerate(places_apart(middles, frame.y(100) + 4, frame.y(0) - 4)):
        sheet.cell(left, round(y - 5.5, 1), 11, 11, tint=number)
        sheet.text(left + 60, round(y + 4, 1), f"{totals[number]:.1f} %", anchor="end", kind="small")
        sheet.text(left + 68, round(y + 4, 1), shortened(names[number], _AREA_LETTERS), kind="small")


def places_apart(middles: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return places near some others, from the lowest on the sheet up, a line apart and between two ends."""
    places: list[float] = []
    for middle in reversed(middles):
        places.append(max(middle, places[-1] + _LINE if places else top))
    for number in reversed(range(len(places))):
        places[number] = min(places[number], bottom)
        bottom = places[number] - _LINE
    return places[::-1]


def _corners(frame: Frame, steps: Sequence[int], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners of a line that has a value from each place to the next."""
    return frame.places(np.repeat(np.array(steps, dtype=np.float64), 2)[1:-1], np.repeat(values, 2))


def _in_percent(rows: NDArray[np.float64]) -> NDArray[np.float64]:
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
    height = _BARS_TOP + _ROW * (shown + bool(rest)) + 10
    sheet = Sheet(title, _seen(names[:shown], values[:shown], unit), width=_WIDTH, height=height, theme=theme)
    sheet.text(14, 20, title, kind="bold")
    words = [shortened(name, _BAR_LETTERS, keeps_end=True) for name in names[:shown]]
    words += [f"and {rest:,} others"] * bool(rest)
    left = 14 + round(_LETTER * max(map(_width, words), default=0))
    scale = (_WIDTH - left - 14 - _NUMBERS) / (max(values, default=0) or 1)
    for row, name in enumerate(words):
        y = _BARS_TOP + _ROW * row
        sheet.text(left, y + 13, name, anchor="end", kind="small")
        if row < shown:
            length = round(values[row] * scale, 1)
            sheet.bar(left + 8, y + 2, max(length, 0.5), _ROW - 5)
            sheet.text(left + 14 + length, y + 13, f"{values[row]:,}", kind="small")
    return str(sheet)


def _seen(names: Sequence[str], values: Sequence[float], unit: str) -> str:
    if not names:
        return "There is no bar."
    ends = f"from {values[0]:,} {unit} of {names[0]}"
    if len(names) > 1:
        ends += f" to {values[-1]:,} {unit} of {names[-1]}"
    return f"{len(names)} bars, {ends}"


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
        seen += f"; most, {most:,}, are from {_tick_text(edges[at])} to {_tick_text(edges[at + 1])} {x_name}"
    sheet = Sheet(title, seen, width=_WIDTH, height=_HISTOGRAM_HEIGHT, theme=theme)
    frame = Frame(_WIDTH, _HISTOGRAM_HEIGHT, (edges[0], 0), (edges[-1], most), log=log, least=(float(log), 1))
    frame.grid(sheet)
    for (start, stop), count in zip(pairwise(edges), counts, strict=True):
        left, right, top = frame.x(start), frame.x(stop), frame.y(count)
        if count:
            width, height = max(right - left - 1, 1), max(frame.y(0) - top, 1)
            sheet.bar(round(left, 1), round(frame.y(0) - height, 1), round(width, 1), round(height, 1))
    frame.draw(sheet, title=title, x_name=x_name)
    return str(sheet)


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
    """Return a line as SVG; where points are many, the least and the greatest of each stretch.

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
        return str(Sheet(title, "There is no value.", width=_WIDTH, height=_LINES_HEIGHT, theme=theme))
    seen = (
        f"A line from {values[0]:.4g} at {x_name} {steps[0]:,} to {values[-1]:.4g} at {x_name} {steps[-1]:,}"
    )
    seen += f", between {values.min():.4g} and {values.max():.4g}; {len(marks)} marks"
    sheet = Sheet(title, seen, width=_WIDTH, height=_LINES_HEIGHT, theme=theme)
    low, high = 0.0 if from_zero else float(values.min()), float(values.max())
    ends = (int(steps[0]), low), (int(steps[-1]), high if high > low else low + 1)
    frame = Frame(_WIDTH, _LINES_HEIGHT, *ends, least=(1, 0))
    frame.grid(sheet)
    at = drawn_places(values)
    sheet.curve(frame.places(steps[at], values[at]), kind="dots", width=1.4)
    there = [(frame.x(step), frame.y(value)) for step, value in marks if np.isfinite(value)]
    sheet.dots(there, width=7)
    frame.draw(sheet, title=title, x_name=x_name)
    return str(sheet)


def drawn_places(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places to draw: all, or the least and the greatest of each of 600 stretches."""
    if values.size <= _MOST_POINTS:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, _MOST_POINTS // 2 + 1).astype(np.int64)
    kept = []
    for start, stop in pairwise(edges.tolist()):
        part = values[start:stop]
        kept.append(start + np.sort([part.argmin(), part.argmax()]))
    return np.unique(np.concatenate(kept))


_WAVE_WIDTH, _WAVE_HEIGHT, _WAVE_FOOT = 640, 72, 16
_WAVE_LIGHT = ".wave{fill:#0b6bb8}.rule{stroke:#57606a}.words{fill:#57606a;font:11px system-ui,sans-serif}"
_WAVE_DARK = ".wave{fill:#6cb6ff}.rule{stroke:#9aa4ae}.words{fill:#9aa4ae}"
_WAVE_STYLES = {
    "auto": f"{_WAVE_LIGHT}@media(prefers-color-scheme:dark){{{_WAVE_DARK}}}",
    "light": _WAVE_LIGHT,
    "dark": _WAVE_LIGHT + _WAVE_DARK,
}


def waveform_svg(
    low: Sequence[float],
    high: Sequence[float],
    *,
    seconds: float,
    title: str,
    theme: Theme = "auto",
) -> str:
    """Return the picture of an outline. Pure.

    The scale is that of full volume, -1 to 1; louder samples are cut at its ends.

    Args:
        low: the lowest sample of each part of equal length.
        high: the highest sample of each part.
        seconds: the length of all parts together.
        title: what the picture shows, for those who do not see it.
        theme: "auto" follows the reader's system.

    Example:
        >>> waveform_svg([-0.5], [0.5], seconds=1, title="a tone").count("<path")
        2
    """
    loudest = max((max(abs(value) for value in pair) for pair in zip(low, high, strict=True)), default=0.0)
    description = (
        f"Outline of {clock(seconds)} of audio; its loudest sample is {100 * loudest:.0f} % of full volume."
    )
    body = (
        f'<path class="rule" d="M0 {_WAVE_HEIGHT / 2:g}h{_WAVE_WIDTH}" stroke-opacity=".5"/>\n'
        f'<path class="wave" d="{_wave_path(low, high)}"/>\n'
        f'<text class="words" x="0" y="{_WAVE_HEIGHT + 12}">0:00</text>\n'
        f'<text class="words" x="{_WAVE_WIDTH}" y="{_WAVE_HEIGHT + 12}" text-anchor="end">'
        f"{clock(seconds)}</text>\n"
    )
    return _wave_sheet(title, body, description=description, theme=theme)


def _wave_sheet(title: str, body: str, *, description: str | None = None, theme: Theme) -> str:
    labels = "title" if description is None else "title description"
    described = "" if description is None else f'<desc id="description">{escape(description)}</desc>\n'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WAVE_WIDTH} {_WAVE_HEIGHT + _WAVE_FOOT}" '
        f'width="{_WAVE_WIDTH}" height="{_WAVE_HEIGHT + _WAVE_FOOT}" role="img" aria-labelledby="{labels}">\n'
        f'<title id="title">{escape(title)}</title>\n{described}<style>{_WAVE_STYLES[theme]}</style>\n'
        f"{body}</svg>\n"
    )


def clock(seconds: float) -> str:
    """Return a length of time as on a player, with tenths below a minute.

    Example:
        >>> clock(3.24), clock(59.97), clock(75), clock(3723)
        ('0:03.2', '1:00', '1:15', '1:02:03')
    """
    tenths = round(10 * seconds)
    if tenths < 600:  # noqa: PLR2004 - a minute
        return f"0:{tenths // 10:02}.{tenths % 10}"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def _wave_path(low: Sequence[float], high: Sequence[float]) -> str:
    """Return the path along the highest samples and back along the lowest ones, at least a hair wide."""
    if not low:
        return ""
    width = _WAVE_WIDTH / len(low)
    above = [
        f"{number * width:.4g} {_wave_y(max(value, 0.01))}h{width:.4g}" for number, value in enumerate(high)
    ]
    below = [
        f"{(number + 1) * width:.4g} {_wave_y(min(value, -0.01))}h{-width:.4g}"
        for number, value in reversed(list(enumerate(low)))
    ]
    return "M" + "L".join(above + below) + "z"


def _wave_y(value: float) -> str:
    return f"{_WAVE_HEIGHT / 2 - max(-1.0, min(1.0, value)) * (_WAVE_HEIGHT / 2 - 1):.3g}"


def words_svg(words: str, *, theme: Theme = "auto") -> str:
    """Return a picture of a line of words, which stands where there is no outline. Pure.

    Example:
        >>> "no sound" in words_svg("no sound")
        True
    """
    body = f'<text class="words" x="0" y="{_WAVE_HEIGHT // 2}">{escape(words)}</text>\n'
    return _wave_sheet(words, body, theme=theme)
