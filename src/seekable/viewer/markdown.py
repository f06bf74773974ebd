r"""A small part of Markdown as HTML, for words of conversations; all else of a text stays as it was written.

Blocks are headings, lists, quotes, fenced code, tables and paragraphs; within them code, bold, italic, struck
words, formulas (``$..$``, ``$$..$$``, ``\(..\)``, ``\[..\]``) and links. All text is escaped, tags of HTML
are text, and links do not lead anywhere: their address stands beside their words.
The work grows with the length of the text alone, whatever is in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup

from seekable.viewer.formula import formula_html
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["markdown_html"]

_DEEPEST = 8
"""Lists and quotes within each other; what is deeper is shown as it was written."""

_MOST_CELLS = 4000
_INDENT = 2

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,30})[^`]*")
_HEADING = re.compile(r" {0,3}#{1,6} +(\S.*)", re.DOTALL)
_RULES = frozenset("-*_")
_LEAST_OF_RULE = 3
_ITEM = re.compile(r"(\s{0,40})([-*+]|\d{1,9}[.)])(?:\s+(.*)|$)", re.DOTALL)
_QUOTE = re.compile(r" {0,3}> ?(.*)", re.DOTALL)
_DELIMITERS = frozenset("|-: \t")

_INLINE = re.compile(
    r"(?P<ticks>``?)(?!`)(?P<code>[^`\n]{1,1000})(?P=ticks)(?!`)"
    r"|\$\$(?P<block>[^$]{1,2000})\$\$"
    r"|\\\[(?P<square>.{1,2000}?)\\\]"
    r"|\\\((?P<round>.{1,1000}?)\\\)"
    r"|(?<![\w$])\$(?=[^\s$])(?P<dollar>[^$\n]{1,500})(?<=\S)\$(?!\d)"
    r"|\*\*(?=\S)(?P<bold>.{1,1000}?)(?<=\S)\*\*"
    r"|~~(?=\S)(?P<struck>[^~]{1,1000})~~"
    r"|(?<![\w*])\*(?=[^\s*])(?P<italic>[^*]{1,1000})(?<=\S)\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])(?P<under>[^_\n]{1,1000})(?<=\S)_(?!\w)"
    r"|!?\[(?P<words>[^\[\]]{0,500})\]\((?P<address>[^()\s]{1,2000})(?:\s+\"[^\"\n]{0,500}\")?\)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])",
    re.DOTALL,
)
_WRAPPED = {
    "bold": Markup("<strong>{}</strong>"),
    "struck": Markup("<s>{}</s>"),
    "italic": Markup("<em>{}</em>"),
    "under": Markup("<em>{}</em>"),
}


def markdown_html(text: str) -> Markup:
    """Return a text as HTML.

    Example:
        >>> str(markdown_html("a **b** <i>"))
        '<p>a <strong>b</strong> &lt;i&gt;</p>'
        >>> str(markdown_html("[here](http://a.example/)"))
        '<p>here <code class="address">http://a.example/</code></p>'
    """
    return _blocks(text.split("\n"), 0)


def _blocks(lines: list[str], depth: int) -> Markup:
    """Return lines as blocks."""
    if depth > _DEEPEST:
        return _written(lines)
    out: list[Markup] = []
    waiting: list[str] = []
    at = 0
    while at < len(lines):
        stop, block = _block_at(lines, at, depth)
        if block is None:
            waiting.append(lines[at])
        if block is not None or not lines[at].strip():
            out += _paragraph(waiting)
            waiting = []
        if block is not None:
            out.append(block)
        at = stop
    return Markup("").join(out + _paragraph(waiting))


def _block_at(  # noqa: PLR0911 - a case for each kind
    lines: list[str], at: int, depth: int
) -> tuple[int, Markup | None]:
    """Return the block that begins at a line, and the line after it; None for a line of a paragraph."""
    line = lines[at]
    if found := _FENCE.fullmatch(line):
        return _fenced(lines, at, found[1], found[2])
    if found := _HEADING.fullmatch(line):
        return at + 1, Markup('<p class="heading">{}</p>').format(
            _inline(found[1].rstrip().rstrip("#").rstrip(), 0)
        )
    if _is_rule(line):
        return at + 1, Markup("<hr>")
    if _QUOTE.match(line):
        return _quoted(lines, at, depth)
    if _ITEM.match(line):
        return _listed(lines, at, depth)
    if "|" in line and at + 1 < len(lines) and _is_delimiter(lines[at + 1]):
        return _table(lines, at)
    return at + 1, None


def _paragraph(lines: list[str]) -> list[Markup]:
    text = "\n".join(lines).strip()
    return [Markup("<p>{}</p>").format(_inline(text, 0))] if text else []


def _written(lines: list[str]) -> Markup:
    return Markup('<p class="text">{}</p>').format(text_html("\n".join(lines)))


def _fenced(lines: list[str], at: int, fence: str, language: str) -> tuple[int, Markup]:
    """Return code between fences, or up to the end of the text."""
    stop = at + 1
    while stop < len(lines) and not (
        (line := lines[stop].strip()).startswith(fence) and not line.strip(fence[0])
    ):
        stop += 1
    name = Markup('<span class="type">{}</span>').format(text_html(language)) if language else Markup("")
    code = text_html("\n".join(lines[at + 1 : stop]))
    return stop + 1, Markup('<pre class="code">{}<code>{}</code></pre>').format(name, code)


def _quoted(lines: list[str], at: int, depth: int) -> tuple[int, Markup]:
    inside = []
    while at < len(lines) and (found := _QUOTE.match(lines[at])):
        inside.append(found[1])
        at += 1
    return at, Markup("<blockquote>{}</blockquote>").format(_blocks(inside, depth + 1))


def _listed(lines: list[str], at: int, depth: int) -> tuple[int, Markup]:
    """Return the items of one list: those with the same indent and the same kind of mark."""
    first = _ITEM.match(lines[at])
    assert first is not None
    indent, is_ordered = len(first[1]), first[2][0].isdigit()
    items = []
    while at < len(lines):
        found = _ITEM.match(lines[at])
        if found is None or len(found[1]) != indent or found[2][0].isdigit() != is_ordered:
            break
        inside, at = _item(lines, at, found[3] or "", indent)
        items.append(Markup("<li>{}</li>").format(_blocks(inside, depth + 1)))
    if not is_ordered:
        return at, Markup("<ul>{}</ul>").format(Markup("").join(items))
    start = int(first[2][:-1])
    return at, Markup('<ol start="{}">{}</ol>').format(start, Markup("").join(items))


def _item(lines: list[str], at: int, first: str, indent: int) -> tuple[list[str], int]:
    """Return the lines of an item, without their indent, and the line after it."""
    inside, at = [first], at + 1
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            goes_on = at + 1 < len(lines) and _indent(lines[at + 1]) > indent
            if not goes_on:
                # An empty line between items does not end the list.
                at += at + 1 < len(lines) and _ITEM.match(lines[at + 1]) is not None
                break
        elif _indent(line) <= indent:
            break
        inside.append(line[min(_indent(line), indent + _INDENT) :])
        at += 1
    return inside, at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_rule(line: str) -> bool:
    marks = "".join(line.split())
    return len(marks) >= _LEAST_OF_RULE and marks[0] in _RULES and not marks.strip(marks[0])


def _is_delimiter(line: str) -> bool:
    return "-" in line and "|" in line and set(line) <= _DELIMITERS


def _table(lines: list[str], at: int) -> tuple[int, Markup]:
    """Return a table; one with too many cells as it was written."""
    stop = at + 2
    while stop < len(lines) and "|" in lines[stop]:
        stop += 1
    header = _cells(lines[at])
    width = len(header)
    if width * (stop - at) > _MOST_CELLS:
        return stop, _written(lines[at:stop])
    row = Markup("<tr>{}</tr>")
    head = row.format(_joined(Markup('<th scope="col">{}</th>'), header))
    body = [
        row.format(_joined(Markup("<td>{}</td>"), (_cells(line) + [""] * width)[:width]))
        for line in lines[at + 2 : stop]
    ]
    table = Markup('<div class="scroll" role="region" aria-label="Table in the text" tabindex="0"><table>')
    return stop, table + Markup("<thead>{}</thead><tbody>{}</tbody></table></div>").format(
        head, Markup("").join(body)
    )


def _joined(wrap: Markup, cells: list[str]) -> Markup:
    return Markup("").join(wrap.format(_inline(cell, 0)) for cell in cells)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _inline(text: str, depth: int) -> Markup:
    """Return words, with what is bold and so on within them."""
    out: list[Markup] = []
    end = 0
    for found in _INLINE.finditer(text):
        out += [_words(text[end : found.start()]), _INLINE_PARTS[str(found.lastgroup)](found, depth)]
        end = found.end()
    out.append(_words(text[end:]))
    return Markup("").join(out)


def _words(text: str) -> Markup:
    return Markup("<br>").join(map(text_html, text.split("\n")))


def _within(found: re.Match[str], depth: int) -> Markup:
    kind = str(found.lastgroup)
    inside = _words(found[kind]) if depth > _DEEPEST else _inline(found[kind], depth + 1)
    return _WRAPPED[kind].format(inside)


def _link(found: re.Match[str], depth: int) -> Markup:
    del depth
    words, address = found["words"], found["address"]
    image = Markup('<span class="type">image: </span>') if found[0].startswith("!") else Markup("")
    beside = Markup('<code class="address">{}</code>').format(text_html(address))
    return image + (beside if words in ("", address) else _words(words) + Markup(" ") + beside)


def _formula(found: re.Match[str], _: int) -> Markup:
    kind = str(found.lastgroup)
    return formula_html(found[kind], written=found[0], is_block=kind in ("block", "square"))


_INLINE_PARTS: dict[str, Callable[[re.Match[str], int], Markup]] = {
    "code": lambda found, _: Markup("<code>{}</code>").format(text_html(found["code"])),
    "escaped": lambda found, _: text_html(found["escaped"]),
    "address": _link,
    **dict.fromkeys(("block", "square", "round", "dollar"), _formula),
    **dict.fromkeys(_WRAPPED, _within),
}
