"""Measures seekable against the floors and against other libraries, and prints a table.

    make bench
    make bench ARGS="--only records --quick"

Exits 1 where a target is missed. A peer that is not installed is named, and what needed it counts as neither
met nor missed.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
from typing import TYPE_CHECKING

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from benchmarks import (  # noqa: E402 - a script is given its own folder, not the root
    at_scale,
    chats,
    cold,
    data,
    epochs,
    flattening,
    formats,
    index,
    kaldi,
    keys,
    lanes,
    layers,
    loaders,
    opening,
    order,
    records,
    remote,
    restore,
    shar,
    startup,
    streams,
    table,
    tables,
    tars,
    tokenizing,
    tokens,
    viewer,
    workers,
    writing,
)
from benchmarks.setting import Setting  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.measure import Row

TOPICS = {
    "index": index.rows,
    "records": records.rows,
    "epochs": epochs.rows,
    "formats": formats.rows,
    "order": order.rows,
    "opening": opening.rows,
    "at_scale": at_scale.rows,
    "startup": startup.rows,
    "keys": keys.rows,
    "kaldi": kaldi.rows,
    "flattening": flattening.rows,
    "restore": restore.rows,
    "streams": streams.rows,
    "lanes": lanes.rows,
    "tables": tables.rows,
    "tars": tars.rows,
    "shar": shar.rows,
    "tokens": tokens.rows,
    "tokenizing": tokenizing.rows,
    "chats": chats.rows,
    "remote": remote.rows,
    "loaders": loaders.rows,
    "workers": workers.rows,
    "writing": writing.rows,
    "viewer": viewer.rows,
    "cold": cold.rows,
    "layers": layers.rows,
}
QUICK = [
    *("index", "records", "epochs", "order", "opening", "startup", "keys", "restore", "streams"),
    *("kaldi", "tables", "tars", "shar", "tokens"),
]
"""What ``--quick`` measures: the hot ways, without large data, stores, and the loaders of others."""

PAGE = os.path.join(ROOT, "docs", "benchmarks.md")
PAGE_OF = {"layers": os.path.join(ROOT, "docs", "design", "performance.md")}
"""The pages of topics whose table stands elsewhere."""

BEGIN, END = "<!-- table: make bench ARGS=--markdown -->\n", "<!-- end of table -->\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = _parser().parse_args(arguments)
    # Peers switch on everybody's debug messages and draw progress bars; both would be timed.
    os.environ["TQDM_DISABLE"] = "1"
    logging.disable(logging.CRITICAL)
    files = data.make(data.QUICK if options.quick else data.FULL)
    pages: dict[str, list[Row]] = {}
    for topic in options.only or (QUICK if options.quick else TOPICS):
        print(f"measuring {topic}", file=sys.stderr)
        pages.setdefault(PAGE_OF.get(topic, PAGE), []).extend(TOPICS[topic](files))
    measured, setting = list(itertools.chain(*pages.values())), Setting.here()
    print(table.as_json(measured, setting) if options.json else table.as_text(measured, setting))
    if options.markdown:
        for page, rows in pages.items():
            write_page(page, rows, setting)
    return status(measured)


def status(rows: Sequence[Row]) -> int:
    """Return 1 where a target is missed, and say on stderr what was missed and what could not be told."""
    for row in rows:
        if row.ok is None and row.ratio is None:
            print(f"not told: {row.name}: {row.against}", file=sys.stderr)
    missed = [row for row in rows if row.ok is False]
    for row in missed:
        print(f"missed: {row.name}: {row.target}", file=sys.stderr)
    return 1 if missed else 0


def write_page(path: str, rows: Sequence[Row], setting: Setting) -> None:
    """Put the table in the place of the one that a page has."""
    with open(path, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    _, _, after = rest.partition(END)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{table.as_markdown(rows, setting)}\n\n{END}{after}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=list(TOPICS), help="measure these topics only")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="for a change: hot ways alone, less data, fewer rounds; three minutes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="also write the table into docs/benchmarks.md, and that of the layers",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
