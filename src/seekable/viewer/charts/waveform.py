"""The outline of audio as a picture: one shape around its middle line, and the length below it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.charts.sheet import Theme

_WIDTH, _HEIGHT, _FOOT = 640, 72, 16
_LIGHT = ".wave{fill:#0b6bb8}.rule{stroke:#57606a}.words{fill:#57606a;font:11px system-ui,sans-serif}"
_DARK = ".wave{fill:#6cb6ff}.rule{stroke:#9aa4ae}.words{fill:#9aa4ae}"
_STYLES = {
    "auto": f"{_LIGHT}@media(prefers-color-scheme:dark){{{_DARK}}}",
    "light": _LIGHT,
    "dark": _LIGHT + _DARK,
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
    middle = _HEIGHT / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" '
        f'width="{_WIDTH}" height="{_HEIGHT + _FOOT}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="description">{escape(description)}</desc>\n'
        f"<style>{_STYLES[theme]}</style>\n"
        f'<path class="rule" d="M0 {middle:g}h{_WIDTH}" stroke-opacity=".5"/>\n'
        f'<path class="wave" d="{_shape(low, high)}"/>\n'
        f'<text class="words" x="0" y="{_HEIGHT + 12}">0:00</text>\n'
        f'<text class="words" x="{_WIDTH}" y="{_HEIGHT + 12}" text-anchor="end">{clock(seconds)}</text>\n'
        "</svg>\n"
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


def _shape(low: Sequence[float], high: Sequence[float]) -> str:
    """Return the path along the highest samples and back along the lowest ones, at least a hair wide."""
    if not low:
        return ""
    width = _WIDTH / len(low)
    above = [f"{number * width:.4g} {_y(max(value, 0.01))}h{width:.4g}" for number, value in enumerate(high)]
    below = [
        f"{(number + 1) * width:.4g} {_y(min(value, -0.01))}h{-width:.4g}"
        for number, value in reversed(list(enumerate(low)))
    ]
    return "M" + "L".join(above + below) + "z"


def _y(value: float) -> str:
    return f"{_HEIGHT / 2 - max(-1.0, min(1.0, value)) * (_HEIGHT / 2 - 1):.3g}"


def words_svg(words: str, *, theme: Theme = "auto") -> str:
    """Return a picture of a line of words, which stands where there is no outline. Pure.

    Example:
        >>> "no sound" in words_svg("no sound")
        True
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" '
        f'width="{_WIDTH}" height="{_HEIGHT + _FOOT}" role="img" aria-labelledby="title">\n'
        f'<title id="title">{escape(words)}</title>\n<style>{_STYLES[theme]}</style>\n'
        f'<text class="words" x="0" y="{_HEIGHT // 2}">{escape(words)}</text>\n</svg>\n'
    )
