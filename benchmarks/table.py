"""The rows of the report as text, JSON and Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.measure import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Row
    from benchmarks.setting import Setting

HEADER = ("what", "figure", "against", "ratio", "target", "")
_VERDICTS = {True: "ok", False: "MISSED", None: "not told"}


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} x"
    return row.name, f"{shown(row.value)} {row.unit}", row.against, ratio, row.target, _verdict(row)


def _verdict(row: Row) -> str:
    return _VERDICTS[row.ok] if row.target else ""


def as_text(rows: Sequence[Row], setting: Setting) -> str:
    """Return the table for a terminal, below what it was measured on."""
    lines = [HEADER, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join([setting.in_words(), "", *(line.rstrip() for line in padded)])


def as_json(rows: Sequence[Row], setting: Setting) -> str:
    """Return the rows, and what they were measured on, as a JSON object."""
    return json.dumps({"setting": asdict(setting), "rows": [asdict(row) for row in rows]}, indent=1)


def as_markdown(rows: Sequence[Row], setting: Setting) -> str:
    """Return the table for a page, below what it was measured on."""
    lines = [HEADER, ("---",) * len(HEADER), *map(cells, rows)]
    return "\n".join([setting.in_words() + ".", "", *(f"| {' | '.join(line)} |" for line in lines)])
