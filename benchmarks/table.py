"""The rows, as people and as machines read them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Row

HEADER = ("what", "figure", "against", "ratio", "target", "")
_VERDICTS = {True: "ok", False: "MISSED", None: "not told"}


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} x"
    figure = f"{row.value:.3g} {row.unit}"
    return row.name, figure, row.against, ratio, row.target, _VERDICTS[row.ok]


def as_text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    lines = [HEADER, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def as_json(rows: Sequence[Row]) -> str:
    """Return the rows as a JSON list."""
    return json.dumps([asdict(row) for row in rows], indent=1)


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the table for a page."""
    lines = [HEADER, ("---",) * len(HEADER), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
