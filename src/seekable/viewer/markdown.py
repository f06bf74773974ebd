r"""The words of conversations as HTML: Markdown, as markdown-it-py reads it, and formulas.

Formulas are ``$..$``, ``$$..$$``, ``\(..\)`` and ``\[..\]``. All text is escaped, tags and entities of HTML
are text, and a link leads nowhere: its address stands beside its words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup

from seekable.viewer.formula import formula_html
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

__all__ = ["markdown_html"]

_DEEPEST = 40
"""Lists and quotes within each other, of which markdown-it leaves out what is deeper; a list counts twice."""

_MOST_BRACKETS = 400
_MOST_CELLS = 4000
_DELIMITERS = frozenset("|-: \t")

_FORMULA = re.compile(
    r"\$\$(?P<block>[^$]{1,2000})\$\$"
    r"|\\\[(?P<square>.{1,2000}?)\\\]"
    r"|\\\((?P<round>.{1,1000}?)\\\)"
    r"|(?<![\w$])\$(?=[^\s$])(?P<dollar>[^$\n]{1,500})(?<=\S)\$(?!\d)",
    re.DOTALL,
)


def markdown_html(text: str) -> Markup:
    """Return a text as HTML; as it was written where its lists are too deep, or reading it would take long.

    Example:
        >>> str(markdown_html("a **b** <i>"))
        '<p>a <strong>b</strong> &lt;i&gt;</p>'
        >>> str(markdown_html("[here](http://a.example/)"))
        '<p>here <code class="address">http://a.example/</code></p>'
    """
    tokens = [] if _takes_long(text) else _READER.parse(text)
    if not tokens or any(token.level >= _DEEPEST - 2 for token in tokens):
        return Markup('<p class="text">{}</p>').format(text_html(text))
    return _html(tokens)


def _takes_long(text: str) -> bool:
    r"""Return True for more brackets or cells than a text has: markdown-it looks for the end of each anew.

    Example:
        >>> _takes_long("[" * 1000), _takes_long("|a|b|\n|-|-|\n")
        (True, False)
    """
    if text.count("[") + text.count("\\(") > _MOST_BRACKETS:
        return True
    lines = text.split("\n")
    columns = max((line.count("|") for line in lines if "-" in line and set(line) <= _DELIMITERS), default=0)
    return columns * len(lines) > _MOST_CELLS


def _formula_at(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - a rule of markdown-it
    """Read a formula, if one begins here."""
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.info, token.markup = str(found.lastgroup), found[0]
        token.content = found[token.info]
    state.pos = found.end()
    return True


def _reader() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": _DEEPEST}).enable(
        ["table", "strikethrough"]
    )
    # What these rules read would not be seen.
    made.disable(["reference", "entity", "autolink"])
    made.inline.ruler.before("escape", "formula", _formula_at)
    return made


_READER = _reader()


def _html(tokens: Sequence[Token]) -> Markup:
    out: list[Markup] = []
    addresses: list[str] = []
    for token in tokens:
        if token.hidden:  # the paragraph of a list without empty lines
            continue
        if token.type == "link_open":
            addresses.append(str(token.attrs["href"]))
        elif token.type == "link_close":
            out += [Markup(" "), _address(addresses.pop())]
        else:
            out.append(_TAGS[token.type] if token.type in _TAGS else _LEAVES[token.type](token))
    return Markup("").join(out)


def _address(address: str) -> Markup:
    return Markup('<code class="address">{}</code>').format(text_html(address))


def _image(token: Token) -> Markup:
    words = Markup("{} ").format(text_html(token.content)) if token.content else Markup("")
    return Markup('<span class="type">image: </span>') + words + _address(str(token.attrs["src"]))


def _code(token: Token) -> Markup:
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    name = Markup('<span class="type">{}</span>').format(text_html(language)) if language else Markup("")
    return Markup('<pre class="code">{}<code>{}</code></pre>').format(name, text_html(token.content))


def _formula(token: Token) -> Markup:
    return formula_html(token.content, written=token.markup, is_block=token.info in ("block", "square"))


_LEAVES: dict[str, Callable[[Token], Markup]] = {
    "inline": lambda token: _html(token.children or ()),
    "text": lambda token: text_html(token.content),
    "code_inline": lambda token: Markup("<code>{}</code>").format(text_html(token.content)),
    "code_block": _code,
    "fence": _code,
    "image": _image,
    "formula": _formula,
    "ordered_list_open": lambda token: Markup('<ol start="{}">').format(token.attrs.get("start", 1)),
}
_ELEMENTS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "list_item": "li",
    "blockquote": "blockquote",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "td": "td",
    "strong": "strong",
    "em": "em",
    "s": "s",
}
_TAGS = {
    **{f"{name}_open": Markup("<{}>").format(tag) for name, tag in _ELEMENTS.items()},
    **{f"{name}_close": Markup("</{}>").format(tag) for name, tag in _ELEMENTS.items()},
    "heading_open": Markup('<p class="heading">'),
    "heading_close": Markup("</p>"),
    "ordered_list_close": Markup("</ol>"),
    "table_open": Markup(
        '<div class="scroll" role="region" aria-label="Table in the text" tabindex="0"><table>'
    ),
    "table_close": Markup("</table></div>"),
    "th_open": Markup('<th scope="col">'),
    "th_close": Markup("</th>"),
    "softbreak": Markup("<br>"),
    "hardbreak": Markup("<br>"),
    "hr": Markup("<hr>"),
}
