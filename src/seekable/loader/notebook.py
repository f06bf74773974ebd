"""A loader as a notebook shows it: its batches, how far the run is, and what each source gives next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._html import bar, facts, notebook_html, preformatted, table
from seekable.dataset.dataset import Dataset
from seekable.nodes.bases import leaves_of
from seekable.nodes.traits import reads_network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.loader.positioned import Positioned
    from seekable.loader.run_progress import Progress

__all__ = ["loader_html"]

_MOST_SOURCES = 100
"""The most sources of a loader whose next files are shown: each is looked up."""


def loader_html(loader: Positioned, progress: Progress) -> str:
    """Return the HTML of a loader for a notebook; no record is read, and no function of the user is called.

    Args:
        loader: the loader.
        progress: how far it is.
    """
    return notebook_html(lambda: _parts(loader, progress), loader)


def _parts(loader: Positioned, progress: Progress) -> Iterator[str]:
    steps, cursor = progress.steps, progress.cursor
    yield preformatted(repr(loader.dataset))
    yield facts(
        [
            ("records in a batch", f"{steps.batch:,}" + " over all ranks" * (steps.world_size > 1)),
            ("rank", f"{steps.rank:,} of {steps.world_size:,}"),
            ("next step", f"{cursor.step:,}"),
            ("epoch", f"{cursor.epoch:,}"),
            ("next position", f"{cursor.position:,}"),
        ]
    )
    left, done = steps.left(cursor), cursor.step - cursor.began
    of = None if left is None else done + left
    label = f"batches of this run: {done:,}" + (f" of {of:,}" if of else "")
    yield bar(label, done=done, of=of)
    dataset = loader.dataset
    if isinstance(dataset, Dataset) and (
        len(leaves_of(dataset.node)) > _MOST_SOURCES or reads_network(dataset.node)
    ):
        return
    yield table("sources", ["source", "epoch", "rows", "of", "next file", "row"], _sources(loader))


def _sources(loader: Positioned) -> list[tuple[object, ...]]:
    rows = []
    for source in loader.sources():
        numbers = [_number(source[key]) for key in ("epoch", "rows", "of", "row_offset")]
        rows.append((source["name"] or source["spec"], *numbers[:-1], source["shard"] or "", numbers[-1]))
    return rows


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,}"
