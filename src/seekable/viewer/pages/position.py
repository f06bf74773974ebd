"""One position of a pipeline: its record, and those before and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.viewer.facts.documents import place_as_json
from seekable.viewer.facts.made_of import COMPUTED
from seekable.viewer.facts.sequence import packed_node_at
from seekable.viewer.facts.sources import SEVERAL, source_names, sources_of
from seekable.viewer.opened import position_after_end
from seekable.viewer.page import Page
from seekable.viewer.pages.beginnings import add_texts

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_NEIGHBOURS = 5


def position(opened: Opened, asked: Asked) -> Page:
    """Return one position of a pipeline, with its neighbours."""
    pipeline, number = opened.pipeline(asked.name), int(asked.path["position"])
    node = pipeline.loader.dataset.node
    start = max(0, number - _NEIGHBOURS)
    positions = np.arange(start, number + _NEIGHBOURS + 1)
    names = source_names(node)
    owners = sources_of(node, positions).tolist()
    places = node.plan(positions).locate()
    rows = [
        {
            "position": at,
            "epoch": at // node.size if node.size else 0,
            "source": names[owner] if owner != SEVERAL else "several",
            "location": place_as_json(place),
            **opened.linked(place),
        }
        for at, owner, place in zip(positions.tolist(), owners, places, strict=True)
    ]
    add_texts(opened, rows)
    document = {"name": asked.name, "position": number, "made_of": COMPUTED, "rows": rows}
    document["after_end"] = position_after_end(pipeline, number)
    packed = packed_node_at(node, number) is not None
    return Page("position", f"{asked.name}, position {number:,}", document, {"packed": packed})
