"""Two datasets as one, in which each row of a file comes once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument
from seekable.nodes.concat import Concat
from seekable.nodes.filter.kept import keep_unnamed
from seekable.nodes.filter.node import Filter
from seekable.nodes.graph import known_size, must_be_steady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node


__all__ = ["merged"]

_AT_ONCE = 1 << 16
_ROW_BITS = 40
"""A row is a number of 23 bits for its file and one of 40 bits in the file."""


def merged(one: Node, other: Node) -> Node:
    """Return the rows of two datasets, each row of a file once; see ``Dataset.merge``."""
    files: dict[str, int] = {}
    codes = []
    for side in (one, other):
        must_be_steady(side, "merge()")
        some = list(_codes(side, known_size(side, "merge()"), files))
        codes.append(np.concatenate([np.empty(0, dtype=np.int64), *some]))
    together = np.concatenate(codes)
    _, first = np.unique(together, return_index=True)
    kept = np.sort(first).astype(np.int64)
    size = codes[0].size
    parts = [
        _of(side, rows)
        for side, rows in ((one, kept[kept < size]), (other, kept[kept >= size] - size))
        if rows.size or side is one
    ]
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _of(side: Node, rows: Int64s) -> Node:
    return side if rows.size == side.size else Filter(side, keep_unnamed([rows]), "not merged before")


def _codes(side: Node, size: int, files: dict[str, int]) -> Iterator[Int64s]:
    """Yield a number for each row that says which row of which file it is."""
    for start in range(0, size, _AT_ONCE):
        origins = side.plan(np.arange(start, min(start + _AT_ONCE, size), dtype=np.int64)).origins()
        numbers = np.array([files.setdefault(path, len(files)) for path in origins.paths], dtype=np.int64)
        if len(files) >= 1 << (63 - _ROW_BITS) or (origins.rows >> _ROW_BITS).any():
            message = f"merge() takes fewer than 2**23 files of fewer than 2**{_ROW_BITS} rows"
            raise InvalidArgument(message)
        yield (numbers[origins.files] << _ROW_BITS) | origins.rows
