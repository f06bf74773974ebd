"""A dataset as a notebook shows it: expression, numbers, tree and, where that is harmless, first records."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from seekable._html import details, facts, notebook_html, preformatted, previewed, table
from seekable.errors import SeekableError
from seekable.nodes.bases import leaves_of
from seekable.nodes.display import explained
from seekable.nodes.traits import calls_functions, reads_network
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.contract import Node

__all__ = ["dataset_html"]

_ROWS = 3
_MOST_BYTES = 1 << 20
"""The most bytes of the files that are read for the first records."""

_MOST_FILES = 10_000
"""The most files, and the most sources, of a dataset whose tree is shown: it has every file once."""


def dataset_html(node: Node, shown: object) -> str:
    """Return the HTML of a dataset for a notebook.

    Nothing is indexed or fetched, and no function of the user is called. The first three records are
    shown where they take few bytes of files of this machine, and no function of the user makes them.

    Args:
        node: the root of the dataset's graph.
        shown: the dataset, whose ``repr`` is returned where this cannot be made.
    """
    return notebook_html(lambda: _parts(node), shown)


def _parts(node: Node) -> Iterator[str]:
    yield preformatted(node.expression())
    leaves = leaves_of(node)
    counted = {
        id(files): files
        for leaf in leaves
        for part in leaf.parts
        if (files := getattr(part, "files", None)) is not None
    }
    files = sum(len(of) for of in counted.values())
    rows: list[tuple[str, object]] = [("records", "without end" if node.size is None else f"{node.size:,}")]
    is_remote = reads_network(node)
    if files:
        # The sizes of files of the Hub are in as many small files, so they are left out.
        size = 0 if is_remote else sum(int(of.sizes.sum()) for of in counted.values())
        rows.append(("files", f"{files:,}" + (f", {bytes_in_words(size)}" if size else "")))
    rows.append(("order", "the same in every epoch" if node.steady else "another one in each epoch"))
    if node.lanes > 1:
        rows.append(("lanes", f"{node.lanes:,}"))
    yield facts(rows)
    if not is_remote and files + len(leaves) <= _MOST_FILES:
        yield details("tree", preformatted("\n".join(explained(node))))
    if not is_remote and not calls_functions(node):
        yield from _first_records(node)


def _first_records(node: Node) -> Iterator[str]:
    positions = np.arange(_ROWS if node.size is None else min(_ROWS, node.size), dtype=np.int64)
    with suppress(SeekableError, OSError):
        plan = node.plan(positions)
        if positions.size and plan.bytes <= _MOST_BYTES:
            rows = [(f"{row:,}", previewed(record)) for row, record in enumerate(plan.read())]
            yield table(f"the first {len(rows):,} records", ["row", "record"], rows)
