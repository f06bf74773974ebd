"""Text as HTML. Characters that are not seen, or change how others are seen, are shown as boxed codes.

They are control characters, bidi overrides, zero-width characters and lone surrogates.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

__all__ = ["text_html"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def text_html(text: str) -> Markup:
    r"""Return a text as HTML, unseen characters as boxed codes.

    Example:
        >>> str(text_html("<b>\u202e"))
        '&lt;b&gt;<span class="esc" title="U+202E">202E</span>'
    """
    if _UNSEEN.search(text) is None:
        return escape(text)
    out: list[Markup] = []
    end = 0
    for found in _UNSEEN.finditer(text):
        code = f"{ord(found[0]):04X}"
        out += [
            escape(text[end : found.start()]),
            Markup('<span class="esc" title="U+{0}">{0}</span>').format(code),
        ]
        end = found.end()
    out.append(escape(text[end:]))
    return Markup("").join(out)
