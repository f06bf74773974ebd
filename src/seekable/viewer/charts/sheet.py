"""The sheet that every chart is drawn on: text, cells, lines and areas, in light or in dark colours."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        """Fill what points go around, shape (points, 2)."""
        self._body.append(f'<path fill="{TINTS[tint % len(TINTS)]}" d="{_relative(points)}z"/>')

    def curve(self, points: NDArray[np.float64], *, kind: str = "line", width: float = 1.5) -> None:
        """Draw a line through points, shape (points, 2); ``kind`` is its class."""
        self._body.append(f'<path class="{kind}" d="{_relative(points)}" stroke-width="{width:g}"/>')

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
    """Return a name of at most so many letters, its beginning or its end; a wide letter counts as two.

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
