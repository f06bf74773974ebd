"""What the head of each page leads to: data, pipelines and states, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened

_LETTERS = 50
"""The letters of all names that fit beside the box, in a line of 1,280 pixels."""

_LONGEST = 16
"""The letters of a name after which it is cut."""


@dataclass(frozen=True, slots=True)
class NavigationGroup:
    """The names of one kind."""

    kind: str
    """The first part of their addresses."""

    word: str
    """The kind, for people."""

    names: tuple[str, ...]
    """Those that are shown."""

    more: str
    """Leads to all of them on the first page; empty if all are shown."""

    anchor: str


def navigation(opened: Opened, kind: str, named: str) -> list[NavigationGroup]:
    """Return the groups that are not empty: all names if they fit in a line, else the one that is shown.

    Args:
        opened: what is open.
        kind: the kind of what the page shows: "d", "p" or "s".
        named: its name.
    """
    groups = (
        ("d", "data", list(opened.datasets), "datasets"),
        ("p", "pipelines", list(opened.pipelines), "pipelines"),
        ("s", "states", list(opened.states), "states"),
    )
    letters = sum(min(len(name), _LONGEST) + 2 for _, _, names, _ in groups for name in names)
    found = []
    for letter, word, names, anchor in groups:
        fits = letters <= _LETTERS or len(names) == 1
        shown = [name for name in names if fits or (letter == kind and name == named)]
        more = f"all {len(names)}" if len(shown) < len(names) else ""
        if names:
            found.append(NavigationGroup(letter, word, tuple(shown), more, anchor))
    return found
