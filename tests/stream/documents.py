"""Documents token by token, and the sequences that are made of them, for the models of packing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from seekable.stream.pack import PackOptions

Pairs = list[tuple[Any, Any]]

Unit = tuple[int, int, tuple[Any, ...]]
"""One token of a text: the number of its document, its place in it, and its values."""


def units(options: PackOptions, pairs: Pairs) -> list[list[Unit]]:
    """Return the tokens of each document, as one by one as can be."""
    out = []
    for number, (_, item) in enumerate(pairs):
        columns = [list(item if name is None else item[name]) for name in (options.key, *options.align)]
        rows = list(zip(*columns, strict=True))
        if options.separator is not None:
            rows.append((options.separator, *options.ends))
        if options.long == "drop" and len(rows) > options.length:
            rows = []
        if options.long == "truncate":
            rows = rows[: options.length]
        out.append([(number, place, values) for place, values in enumerate(rows)])
    return out


def sequence(options: PackOptions, pairs: Pairs, filled: list[Unit]) -> tuple[Any, dict[str, Any]]:
    """Return the token and the arrays of one sequence."""
    groups = [list(group) for _, group in itertools.groupby(filled, key=lambda unit: unit[0])]
    token = tuple((pairs[g[0][0]][0], g[0][1], g[-1][1] + 1) for g in groups)
    rest = options.length - len(filled)
    segments = [number for number, group in enumerate(groups, start=1) for _ in group]
    places = [place for group in groups for place in range(len(group))]
    out = {
        "tokens": np.array([values[0] for _, _, values in filled] + [options.pad] * rest),
        "segment_ids": np.array(segments + [0] * rest, dtype=np.int32),
        "positions": np.array(places + [0] * rest, dtype=np.int32),
    }
    for number, name in enumerate(options.align, start=1):
        out[name] = np.array([values[number] for _, _, values in filled] + [0] * rest)
    return token, out
