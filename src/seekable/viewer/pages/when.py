"""All steps at which a row of a file comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.made_of import COMPUTED
from seekable.viewer.facts.sources import has_row, paths_named
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page, PageRows

if TYPE_CHECKING:
    from seekable.loader.loader import Loader
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_MOST_EPOCHS = 100


def when(opened: Opened, asked: Asked) -> Page:
    """Return the steps at which a row of a file comes, in some epochs.

    The file is named by its path or the end of it; the row of each file of that name is looked for.

    Raises:
        KeyNotFound: the pipeline reads no such file, or none of them has the row.
    """
    pipeline = opened.pipeline(asked.name)
    loader = pipeline.loader
    path, row = asked.text("file"), asked.count("row", default=0)
    start = asked.count("from", default=loader.epoch)
    epochs = asked.count("epochs", default=5, least=1, most=_MOST_EPOCHS)
    paths = _paths(loader, path, row) if path else []
    found = [
        (at, file) for file in paths for at in loader.when(file, row, epochs=range(start, start + epochs))
    ]
    found.sort(key=lambda pair: pair[0].position)
    comes = [
        {
            "step": at.step,
            "position": at.position,
            "epoch": at.epoch,
            "rank": at.rank,
            "path": json_safe(file),
            "after_end": after_end(pipeline, at.step),
        }
        for at, file in found
    ]
    document = {
        "name": asked.name,
        "file": path,
        "row": row,
        "paths": list(map(json_safe, paths)),
        "from": start,
        "epochs": epochs,
        "made_of": COMPUTED,
        "comes": comes,
    }
    header = ["epoch", "step", "rank", "position", "path", "after_end"]
    table = PageRows(header, [[each[key] for key in header] for each in comes])
    return Page("when", f"{asked.name}, when a row comes", document, table=table)


def _paths(loader: Loader, name: str, row: int) -> list[str]:
    """Return the paths of the files of a name that have a row; the name itself of data that is in no file.

    Raises:
        KeyNotFound: there are none.
    """
    node = loader.dataset.node
    if has_row(node, name, row):
        return [name]
    files = paths_named(node, name)
    found = [path for path, records in files.items() if row < records]
    if not found:
        message = f"the pipeline reads no file {name!r}"
        if files:
            message = f"{name!r} has {max(files.values()):,} rows, and no row {row:,}"
        raise KeyNotFound(message)
    return found
