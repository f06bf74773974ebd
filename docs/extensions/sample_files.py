"""Says at the top of a page where the files come from that its examples read: the tutorial makes them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BLOCK = re.compile(r"^ *```(?:python|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
FILES = re.compile(r"\bcorpus\b|\bnotes\.txt\b")
MAKE_THEIR_OWN = frozenset({"index", "quickstart", "tutorial"})


def with_note(page: str, source: str) -> str:
    """Return the source of a page, with a line about the files below its title if its examples read them."""
    if page in MAKE_THEIR_OWN or not any(map(FILES.search, BLOCK.findall(source))):
        return source
    tutorial = os.path.relpath("tutorial.md", os.path.dirname(page))
    note = f"*The examples read [the files of the tutorial]({tutorial}#the-files).*"
    return re.sub(r"\A(# .*\n)", rf"\1\n{note}\n", source)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the line to each page that Sphinx reads."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}


def _read(_: Sphinx, page: str, content: list[str]) -> None:
    content[0] = with_note(page, content[0])
