"""All steps at which a row of a file comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.facts.made_of import COMPUTED
from seekable.viewer.page import Page, Table

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["when"]

_MOST_EPOCHS = 100


def when(opened: Opened, asked: Asked) -> Page:
    """Return the steps at which a row of a file comes, in some epochs."""
    loader = opened.pipeline(asked.name).loader
    path, row = asked.text("file"), asked.count("row", default=0)
    start = asked.count("from", default=loader.epoch)
    epochs = asked.count("epochs", default=5, least=1, most=_MOST_EPOCHS)
    found = loader.when(path, row, epochs=range(start, start + epochs)) if path else []
    comes = [{"step": at.step, "position": at.position, "epoch": at.epoch, "rank": at.rank} for at in found]
    document = {
        "name": asked.name,
        "file": path,
        "row": row,
        "from": start,
        "epochs": epochs,
        "made_of": COMPUTED,
        "comes": comes,
    }
    header = ["epoch", "step", "rank", "position"]
    table = Table(header, [[each[key] for key in header] for each in comes])
    return Page("when", f"{asked.name}, when a row comes", document, table=table)
