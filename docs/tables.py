"""Writes the table of all nodes and stages into stages.md, from the types themselves.

python docs/tables.py
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import seekable
from seekable.nodes.node import Node
from seekable.stream.stage import Inner, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOMS = ("seekable.nodes.", "seekable.stream.", "seekable.formats.", "seekable.packing.")
PAGE = Path(__file__).with_name("stages.md")
BEGIN, END = "<!-- table: python docs/tables.py -->\n", "<!-- end of table -->\n"
HEAD = (
    "kind",
    "items",
    "items wait",
    "resumes exactly",
    "makes items from tokens",
    "resumes in constant time",
)
IF_INPUTS = "If its inputs do."
PROPERTIES = ("checkpointable", "indexed", "constant_time")


def table() -> str:
    """Return the table in Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for stage in classes(Stage):
        cells = [f"`{stage.kind}`", _first(stage), *_answers(stage)]
        lines.append(f"| {' | '.join(cells)} |")
    kinds = sorted({f"`{node.kind}`" for node in classes(Node)})
    lines.append(f"| {', '.join(kinds)} | The nodes of datasets. | no | Yes. | Yes. | Yes. |")
    return "\n".join(lines)


def classes(root: type) -> list[Any]:
    """Return what can be made of a class, by kind."""
    for module in pkgutil.walk_packages(seekable.__path__, "seekable."):
        if module.name.startswith(ROOMS):
            importlib.import_module(module.name)
    found = {each for each in _below(root) if not inspect.isabstract(each) and hasattr(each, "kind")}
    ours: list[Any] = [each for each in found if each.__module__.startswith(ROOMS)]
    return sorted(ours, key=lambda each: (each.kind, each.__name__))


def written(page: str) -> str:
    """Return a page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n\n{END}{after}"


def _answers(stage: Any) -> list[str]:
    if not issubclass(stage, Inner):
        return ["no", *(_answer(getattr(stage, name)) for name in PROPERTIES)]
    exactly = "If its inputs do and make items again from tokens." if stage.holds else IF_INPUTS
    return ["yes" if stage.holds else "no", exactly, IF_INPUTS, IF_INPUTS]


def _answer(thing: object) -> str:
    """Return the docstring of a property that is true or false as an answer: yes, and when."""
    return _first(thing).replace("True", "Yes", 1)


def _below(root: type) -> Iterator[type]:
    each: type
    for each in root.__subclasses__():
        yield each
        yield from _below(each)


def _first(thing: object) -> str:
    """Return the first paragraph of what something says of itself."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|").replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
