"""The little of SVG that the pictures need: text, cells and lines on a sheet that is light or dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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

_STYLE = """
.paper{fill:#fff}text{fill:#1f2328;font:12px system-ui,sans-serif}.small{font-size:11px}
.bold{font-weight:600}.on{fill:#15181c}.line{stroke:#57606a;fill:none}.dots{stroke:#0b6bb8;fill:none}
@media(prefers-color-scheme:dark){.paper{fill:#15181c}text{fill:#e6e8ea}.on{fill:#15181c}
.line{stroke:#9aa4ae}.dots{stroke:#6cb6ff}}
"""


class Sheet:
    """A picture in the making."""

    def __init__(self, title: str, description: str, *, width: int, height: int) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'role="img" aria-labelledby="title description">\n'
            f'<title id="title">{escape(title)}</title>\n'
            f'<desc id="description">{escape(description)}</desc>\n'
            f"<style>{_STYLE}</style>\n"
            f'<rect class="paper" width="{width}" height="{height}" rx="6"/>\n'
        )
        self._body: list[str] = []

    def text(self, x: float, y: float, words: object, *, anchor: str = "start", kind: str = "") -> None:
        """Write words; ``anchor`` is ``start``, ``middle`` or ``end``."""
        role = f' class="{kind}"' * bool(kind)
        place = f' text-anchor="{anchor}"' * (anchor != "start")
        self._body.append(f'<text x="{x:g}" y="{y:g}"{role}{place}>{escape(str(words))}</text>')

    def cell(self, x: float, y: float, width: float, height: float, *, tint: int, label: object = "") -> None:
        """Draw a cell in one of the tints, with a word in its middle."""
        colour = TINTS[tint % len(TINTS)]
        self._body.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"/>'
        )
        if label != "":
            self.text(x + width / 2, y + height / 2 + 4, label, anchor="middle", kind="on small")

    def line(self, *points: tuple[float, float], width: float = 1) -> None:
        """Draw a line through some points."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self._body.append(f'<path class="line" d="M{path}" stroke-width="{width:g}"/>')

    def dots(self, points: Iterable[tuple[float, float]], *, width: float = 2.4) -> None:
        """Draw a dot at each of some points."""
        path = "".join(f"M{x:g} {y:g}h0" for x, y in points)
        self._body.append(f'<path class="dots" d="{path}" stroke-width="{width:g}" stroke-linecap="round"/>')

    def ticks(self, x: Iterable[float], y: float, height: float) -> None:
        """Draw a short upright line at each of some places."""
        path = "".join(f"M{at:g} {y:g}v{height:g}" for at in x)
        self._body.append(f'<path class="dots" d="{path}" stroke-width="0.6"/>')

    def __str__(self) -> str:
        return self._head + "\n".join(self._body) + "\n</svg>\n"
