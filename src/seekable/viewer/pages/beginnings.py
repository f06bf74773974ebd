"""The beginnings of records, for tables of places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.facts.reading import read_sample
from seekable.viewer.facts.token_counts import text_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened

_CHARACTERS = 320
"""More than a cell of a table shows."""


def add_texts(opened: Opened, rows: list[dict[str, Any]]) -> None:
    """Read the records of some rows whose data is open, source by source, and add their beginnings."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row["text"] = None
        if row["dataset"] is not None:
            by_name.setdefault(row["dataset"], []).append(row)
    for name, some in by_name.items():
        numbers = np.array([row["number"] for row in some], dtype=np.int64)
        for row, record in zip(some, read_sample(opened.dataset(name).node, numbers), strict=True):
            row["text"] = _text_of(record, opened.text_key)


def _text_of(record: Any, key: str | None) -> Any:
    """Return what a row of a table shows of a record: its longest text, or the field that the user named."""
    text = text_of(record, key)
    return record if text is None else text[:_CHARACTERS]
