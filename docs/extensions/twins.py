"""Writes a Markdown twin beside each page, and ``llms.txt``, which lists them, for programs that read them.

A page whose source is complete is its own twin. One that takes text from the code (docstrings, the help of
commands) is written out as text.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from docs.extensions.sample_files import with_note
from docutils.io import StringOutput
from sphinx import addnodes
from sphinx.builders.text import TextBuilder
from sphinx.writers.text import TextWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

ABOUT = (
    "A Python data loader that reads any record of your files in constant time, and resumes training "
    "exactly. `import seekable as sk`; [AGENTS.md](AGENTS.md) is one page for assistants that write code "
    "with it."
)
OF_THE_CODE = re.compile(r"^```\{(eval-rst|command|include)\}", re.MULTILINE)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
GRID = re.compile(r"^::::.*\n(?:^:\w+: .*\n)*", re.MULTILINE)
CARD = re.compile(r"^:::\{grid-item-card\} (.*)\n:link: (.*)\n:link-type: doc\n(.*)\n:::\n\n?", re.MULTILINE)


def write_twins(app: Sphinx, error: Exception | None) -> None:
    """Write the twin of each page, and ``llms.txt``, into the folder of the HTML pages."""
    if error is not None or app.builder.format != "html":
        return
    for page in sorted(app.env.found_docs):
        source = app.env.doc2path(page).read_text(encoding="utf-8")
        is_whole = OF_THE_CODE.search(source) is None
        _write(app, f"{page}.md", without_directives(app, page, source) if is_whole else as_text(app, page))
    _write(app, "llms.txt", "\n".join(lines_of_list(app)))
    with open(os.path.join(app.srcdir, os.pardir, "AGENTS.md"), encoding="utf-8") as file:
        _write(app, "AGENTS.md", file.read())


def without_directives(app: Sphinx, page: str, source: str) -> str:
    """Return the source of a page with links in place of toctrees and cards."""
    folder = os.path.dirname(page)
    text = GRID.sub("", CARD.sub(r"- [\1](\2.md): \3\n", TOCTREE.sub("", with_note(page, source))))
    below = [(os.path.relpath(f"{name}.md", folder), title) for name, title in _below(app, page)]
    links = "".join(f"- [{title}]({name})\n" for name, title in below if f"]({name})" not in text)
    return re.sub(r"\n{3,}- ", "\n\n- ", text).rstrip() + (f"\n\n{links}" if links else "\n")


def as_text(app: Sphinx, page: str) -> str:
    """Return a page as text, with what Sphinx took from the code."""
    builder = TextBuilder(app, app.env)
    builder.init()
    writer = TextWriter(builder)
    output = StringOutput(encoding="unicode")
    writer.write(app.env.get_and_resolve_doctree(page, builder, tags=app.tags), output)
    return writer.output


def lines_of_list(app: Sphinx) -> Iterator[str]:
    """Yield the lines of ``llms.txt``: all pages in the order of the sidebar, by its parts."""
    yield from (f"# {app.config.project}", "", f"> {ABOUT}")
    tree = app.env.tocs[app.config.root_doc]
    for part in tree.findall(addnodes.toctree):
        yield from ("", f"## {part['caption']}", "")
        for _, name in part["entries"]:
            yield from _lines_below(app, name, "")


def _lines_below(app: Sphinx, page: str, indent: str) -> Iterator[str]:
    yield f"{indent}- [{app.env.titles[page].astext()}]({page}.md)"
    for name, _ in _below(app, page):
        yield from _lines_below(app, name, f"{indent}  ")


def _below(app: Sphinx, page: str) -> list[tuple[str, str]]:
    """Return the pages of the toctrees of a page, each with its title."""
    return [(name, app.env.titles[name].astext()) for name in app.env.toctree_includes.get(page, [])]


def _write(app: Sphinx, path: str, text: str) -> None:
    whole = os.path.join(app.outdir, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    with open(whole, "w", encoding="utf-8") as file:
        file.write(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the twins at the end of each build."""
    app.connect("build-finished", write_twins)
    return {"parallel_read_safe": True}
