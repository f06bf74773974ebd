"""The text of an object as a notebook shows it: what ``_repr_html_`` of the public classes returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seekable._lazy import lazy

if TYPE_CHECKING:
    import html
    from collections.abc import Callable
else:
    html = lazy("html")

__all__ = ["MOST_CHARACTERS", "preformatted"]

MOST_CHARACTERS = 5_000

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def preformatted(make: Callable[[], str], shown: object) -> str:
    """Return the first characters of a text as HTML, without script and style; never raise.

    Characters that cannot be seen stand as their codes.

    Args:
        make: makes the text. Where it raises, the ``repr`` of the object takes its place.
        shown: the object.

    Example:
        >>> preformatted(lambda: "a < b", None)
        '<pre>a &lt; b</pre>'
        >>> preformatted(lambda: 1 / 0, [3])
        '<pre>[3]</pre>'
    """
    try:
        text = make()
    except Exception:  # noqa: BLE001 - a cell must not fail because its result cannot be shown
        try:
            text = repr(shown)
        except Exception:  # noqa: BLE001 - a repr of parts that are the user's may raise anything
            text = f"<{type(shown).__name__}>"
    cut = text[:MOST_CHARACTERS] + " ..." * (len(text) > MOST_CHARACTERS)
    return f"<pre>{html.escape(_UNSEEN.sub(lambda found: f'[U+{ord(found[0]):04X}]', cut))}</pre>"
