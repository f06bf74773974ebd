"""Small static HTML for notebooks: what ``_repr_html_`` of the public classes returns.

There is no script, no style and no colour here: the notebook has its own. Arguments are texts, which are
escaped, except those that are called ``html``.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["MOST_BYTES", "bar", "details", "facts", "notebook_html", "preformatted", "previewed", "table"]

MOST_BYTES = 20_000
"""The most bytes of what ``notebook_html`` returns, as UTF-8."""

_MOST_CHARACTERS = 300
_MOST_ROWS = 10
_MOST_ITEMS = 20
_DEEPEST = 6
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def notebook_html(make: Callable[[], Iterable[str]], shown: object) -> str:
    """Return the HTML of an object for a notebook: below ``MOST_BYTES``, and never an exception.

    Args:
        make: makes the parts of the HTML. Where it raises, or makes too much, the parts are left out.
        shown: the object: its ``repr`` stands for what was left out.

    Example:
        >>> notebook_html(lambda: [preformatted("a < b")], None)
        '<pre>a &lt; b</pre>'
        >>> notebook_html(lambda: [1 / 0], [3])
        '<pre>[3]</pre>'
    """
    try:
        html = "".join(make())
        if len(html.encode()) < MOST_BYTES:
            return html
    except Exception:  # noqa: BLE001 - a cell must not fail because its result cannot be shown
        html = ""
    try:
        text = repr(shown)
    except Exception:  # noqa: BLE001 - a repr of parts that are the user's may raise anything
        text = f"<{type(shown).__name__}>"
    return preformatted(text, most=_MOST_CHARACTERS * 4)


def preformatted(text: str, *, most: int = MOST_BYTES // 8) -> str:
    """Return lines of text as they are, at most ``most`` characters of them."""
    return f"<pre>{_escaped(text, most)}</pre>"


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return names with their values, as a table without a head.

    Example:
        >>> facts([("records", "1,000")])
        '<table><tbody><tr><th scope="row">records</th><td>1,000</td></tr></tbody></table>'
    """
    lines = [
        f'<tr><th scope="row">{_escaped(name)}</th><td>{_escaped(value)}</td></tr>' for name, value in rows
    ]
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the first ten of some rows, and the number of those that were left out.

    Example:
        >>> table("files", ["file", "rows"], [("a.jsonl", 3)] * 12).count("<td>a.jsonl</td>")
        10
    """
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in heads)
    body = ["".join(f"<td>{_escaped(cell)}</td>" for cell in row) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        body.append(f'<td colspan="{len(heads)}">and {len(rows) - _MOST_ROWS:,} more</td>')
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    return (
        f"<table><caption>{_escaped(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def details(summary: str, html: str) -> str:
    """Return HTML that is folded below a summary."""
    return f"<details><summary>{_escaped(summary)}</summary>{html}</details>"


def bar(label: str, *, done: int, of: int | None) -> str:
    """Return a bar that is ``done / of`` long, with a text; without an end only the text.

    Example:
        >>> bar("2 of 4 batches", done=2, of=4)
        '<p><progress value="2" max="4" aria-label="2 of 4 batches"></progress> 2 of 4 batches</p>'
    """
    text = _escaped(label)
    drawn = f'<progress value="{done}" max="{of}" aria-label="{text}"></progress> ' if of else ""
    return f"<p>{drawn}{text}</p>"


def previewed(value: Any, *, deep: int = 0) -> str:
    """Return a value of a record on one line; of other types than those of JSON, bytes and arrays the type.

    No method of an object that a user's code made is called.

    Example:
        >>> previewed({"id": 1, "tags": ["a", None], "other": object()})
        "{'id': 1, 'tags': ['a', None], 'other': <object>}"
    """
    kind = type(value)
    if kind in {str, bytes}:
        return repr(value[:_MOST_CHARACTERS]) + "..." * (len(value) > _MOST_CHARACTERS)
    if kind in {float, bool, type(None)} or (kind is int and value.bit_length() < _MOST_CHARACTERS):
        return repr(value)
    if deep < _DEEPEST and kind is dict:
        parts = [
            f"{previewed(key, deep=deep + 1)}: {previewed(value[key], deep=deep + 1)}"
            for key in [*value][:_MOST_ITEMS]
        ]
        return f"{{{', '.join(parts)}{', ...' * (len(value) > _MOST_ITEMS)}}}"
    if deep < _DEEPEST and kind in {list, tuple}:
        parts = [previewed(part, deep=deep + 1) for part in value[:_MOST_ITEMS]]
        return f"[{', '.join(parts)}{', ...' * (len(value) > _MOST_ITEMS)}]"
    is_array = (kind.__module__, kind.__name__) == ("numpy", "ndarray")
    return f"<array of {value.dtype}, {value.shape}>" if is_array else f"<{kind.__name__}>"


def _escaped(value: object, most: int = _MOST_CHARACTERS) -> str:
    """Return a text as HTML; characters that cannot be seen, or are none, as their codes."""
    text = str(value)
    cut = text[:most] + " ..." * (len(text) > most)
    return escape(_UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", cut))
