"""Draws the pictures of ``docs/pictures.md`` from what the library does.

    python docs/pictures/draw.py [FOLDER]

Nothing in them is made up: each asks datasets and loaders for what they deliver, and draws that.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(HERE))  # so that docs.pictures is found

import seekable as sk  # noqa: E402
from seekable.viewer.charts import Sheet  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

WIDTH = 720
LEFT = 150
"""Where drawings begin, right of their captions."""


def positions() -> Sheet:
    """Draw three epochs of five records, as they are and shuffled."""
    ds = sk.from_sequence(range(5))
    shuffled, count = ds.shuffle(seed=2), 15
    sheet = Sheet(
        "Positions, rows and epochs",
        "Fifteen positions of a dataset of five records: three epochs. The dataset gives rows 0 to 4 in each "
        f"epoch; shuffled, it gives {shuffled._node.fetch(np.arange(count))}.",
        width=WIDTH,
        height=150,
    )
    size = 36
    for y, name, rows in (
        (30, "position", None),
        (66, "row of ds", ds._node.fetch(np.arange(count))),
        (102, "ds.shuffle(seed=2)", shuffled._node.fetch(np.arange(count))),
    ):
        sheet.text(12, y + 20, name)
        for position in range(count):
            x = LEFT + position * size
            if rows is None:
                sheet.text(x + size / 2, y + 20, position, anchor="middle", kind="small")
            else:
                sheet.cell(x + 1, y + 1, size - 2, size - 8, tint=rows[position], label=rows[position])
    for epoch in range(3):
        x = LEFT + epoch * len(ds) * size
        sheet.text(x + len(ds) * size / 2, 22, f"epoch {epoch}", anchor="middle", kind="bold")
        if epoch:
            sheet.line((x, 12), (x, 136))
    return sheet


def shuffles() -> Sheet:
    """Draw which rows come at which positions, in a whole and in a windowed shuffle."""
    blocks, side = 16, 190
    ds = sk.from_sequence(range(blocks * 1024))
    sheet = Sheet(
        "Where rows come from",
        "Three squares of dots: positions from left to right, rows from top to bottom. In shuffles of "
        "everything, epoch 0 and epoch 1, dots are everywhere, each time in other places. In a windowed "
        "shuffle with one lane, each stretch of positions has rows of four blocks only.",
        width=WIDTH,
        height=270,
    )
    whole, windowed = ds.shuffle(seed=1), ds.shuffle(seed=1, window=4, lanes=1)
    at = np.arange(0, len(ds), 37)
    for column, (name, view) in enumerate(
        (
            ("shuffle(seed=1), epoch 0", whole),
            ("shuffle(seed=1), epoch 1", whole.epoch(1)),
            ("window=4, lanes=1", windowed),
        )
    ):
        x, y = 40 + column * (side + 35), 36
        sheet.text(x + side / 2, 24, name, anchor="middle", kind="bold")
        sheet.line((x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y))
        scale = side / len(ds)
        rows = zip(at.tolist(), view._node.fetch(at), strict=True)
        sheet.dots((x + round(p * scale, 1), y + round(row * scale, 1)) for p, row in rows)
        sheet.text(x + side / 2, y + side + 20, "position", anchor="middle", kind="small")
    sheet.text(12, 40, "row", kind="small")
    return sheet


def windows() -> Sheet:
    """Draw the blocks that each lane of a windowed shuffle has open."""
    blocks, lanes, window, bins = 12, 2, 3, 32
    ds = sk.from_sequence(range(blocks * 1024)).shuffle(seed=3, window=window, lanes=lanes)
    drawn = np.array(list(ds)) // 1024
    sheet = Sheet(
        "Windows and lanes",
        f"A strip of {blocks} blocks, and below it one for each of {lanes} lanes. A lane's strip shows, "
        "from left to right, the share of each block among the rows that it reads. "
        + " ".join(_windows_in_words(drawn[lane::lanes], lane, window) for lane in range(lanes)),
        width=WIDTH,
        height=290,
    )
    width = (WIDTH - LEFT - 20) / blocks
    sheet.text(12, 36, "blocks in the file")
    for block in range(blocks):
        sheet.cell(LEFT + block * width, 18, width - 1, 28, tint=block, label=block)
    for lane in range(lanes):
        y = 84 + lane * 104
        sheet.text(12, y + 30, f"lane {lane}")
        sheet.text(12, y + 46, f"positions {lane}, {lane + lanes}, ...", kind="small")
        _stack(sheet, drawn[lane::lanes].reshape(bins, -1), LEFT, y, WIDTH - LEFT - 20)
        turns = drawn[lane::lanes].reshape(-1, window * 1024)
        each = (WIDTH - LEFT - 20) / len(turns)
        for number, inside in enumerate(turns):
            names = ", ".join(map(str, np.unique(inside)))
            middle = LEFT + (number + 0.5) * each
            sheet.text(middle, y + 78, f"window: blocks {names}", anchor="middle", kind="small")
    return sheet


def _windows_in_words(lane_blocks: NDArray[np.int64], lane: int, window: int) -> str:
    sets = [np.unique(inside).tolist() for inside in lane_blocks.reshape(-1, window * 1024)]
    assert all(len(found) == window for found in sets), "a window is not what the picture says it is"
    return f"Lane {lane} reads blocks {' then '.join(map(str, sets))}."


def _stack(sheet: Sheet, bins: NDArray[np.int64], x: float, y: float, width: float) -> None:
    """Draw, for each bin of rows, how many of them are of each block."""
    height, each = 60, width / len(bins)
    for number, inside in enumerate(bins):
        top = y
        for block, count in zip(*np.unique(inside, return_counts=True), strict=True):
            tall = round(height * count / inside.size, 2)
            sheet.cell(round(x + number * each, 2), top, round(each - 0.5, 2), tall, tint=int(block))
            top = round(top + tall, 2)


def interleaved() -> Sheet:
    """Draw runs of rows that are dealt out in turn."""
    lanes, count = 4, 20
    ds = sk.from_sequence(range(count))
    dealt = list(ds.interleave(lanes=lanes))
    sheet = Sheet(
        "Interleave",
        f"Rows 0 to {count - 1}, cut into {lanes} equal runs; dealt out in turn, their order is {dealt}.",
        width=WIDTH,
        height=120,
    )
    size = (WIDTH - LEFT - 20) / count
    for y, name, rows in ((20, "rows of ds", list(ds)), (68, f"interleave(lanes={lanes})", dealt)):
        sheet.text(12, y + 19, name)
        for position, row in enumerate(rows):
            lane = row * lanes // count
            sheet.cell(LEFT + position * size + 0.5, y, size - 1, 30, tint=lane, label=row)
    return sheet


def mixture() -> Sheet:
    """Draw whose record comes at each of the first draws of a mixture, and how near counts are to weights."""
    share, block, blocks, many = 0.3, 64, 3, 1280
    sources = {"web": sk.from_sequence([0] * 10_000), "code": sk.from_sequence([1] * 10_000)}
    ds = sk.mix(sources, weights={"web": 0.7, "code": share}, seed=0)
    drawn = np.array(ds._node.fetch(np.arange(many)))
    counts = [int(drawn[i * block : (i + 1) * block].sum()) for i in range(blocks)]
    sheet = Sheet(
        "The draws of a mixture",
        f"Web and code at 70 and 30 per cent. Of the first {blocks} blocks of {block} draws, {counts} are of "
        f"code, at places that look random. A curve below: over {many} draws, the number of records of code "
        "never strays far from 30 per cent, and at the ends of blocks by less than 2.",
        width=WIDTH,
        height=270,
    )
    size = (WIDTH - LEFT - 20) / block
    for number in range(blocks):
        y = 20 + number * 26
        sheet.text(12, y + 14, f"draws {number * block} to {(number + 1) * block - 1}", kind="small")
        for i in range(block):
            sheet.cell(LEFT + i * size, y, size - 0.5, 20, tint=int(drawn[number * block + i]))
    sheet.cell(LEFT, 102, 14, 14, tint=0)
    sheet.text(LEFT + 20, 113, f"web, {blocks * block - sum(counts)} of {blocks * block}", kind="small")
    sheet.cell(LEFT + 150, 102, 14, 14, tint=1)
    sheet.text(LEFT + 170, 113, f"code, {sum(counts)} of {blocks * block}", kind="small")
    off = np.cumsum(drawn) - share * np.arange(1, many + 1)
    assert np.abs(off[block - 1 :: block]).max() < 2, "the ends of blocks are not what the picture says"
    _curve(sheet, off, block)
    return sheet


def _curve(sheet: Sheet, off: NDArray[np.float64], block: int) -> None:
    """Draw how many records too many, or too few, have been drawn."""
    middle, scale, across = 195, 9, (WIDTH - LEFT - 20) / off.size
    sheet.text(12, middle - 12, "code drawn, less")
    sheet.text(12, middle + 4, "30 % of all draws")
    for level in (-5, 0, 5):
        y = middle - level * scale
        sheet.text(LEFT - 8, y + 4, level, anchor="end", kind="small")
        sheet.line((LEFT, y), (WIDTH - 20, y), width=0.3)
    points = [
        (round(LEFT + (i + 1) * across, 1), round(middle - many * scale, 1))
        for i, many in enumerate(off.tolist())
    ]
    sheet.line(*points[3::4])
    sheet.dots(points[block - 1 :: block], width=5)
    sheet.text(LEFT, 262, f"{off.size:,} draws; dots are the ends of blocks of {block}", kind="small")


def ranks() -> Sheet:
    """Draw which rank reads which positions, on two and on four ranks."""
    count, batch = 24, 8
    ds = sk.from_sequence(range(count))
    sheet = Sheet(
        "Ranks",
        f"Positions 0 to {count - 1} in global batches of {batch}. On any number of ranks, position p goes "
        "to rank p modulo their number, and the batches are the same.",
        width=WIDTH,
        height=150,
    )
    size = (WIDTH - LEFT - 20) / count
    sheet.text(12, 34, "position", kind="small")
    for position in range(count):
        sheet.text(LEFT + (position + 0.5) * size, 34, position, anchor="middle", kind="small")
    for y, world in ((44, 2), (84, 4)):
        sheet.text(12, y + 19, f"{world} ranks")
        for rank in range(world):
            loader = sk.Loader(
                ds, global_batch_size=batch, rank=rank, world_size=world, collate=list, prefetch=0
            )
            for position in (position for local in loader for position in local):
                x = LEFT + position * size
                sheet.cell(x + 0.5, y, size - 1, 30, tint=rank, label=rank)
    for number in range(count // batch + 1):
        x = LEFT + number * batch * size
        sheet.line((x, 20), (x, 122), width=1.5)
        if number < count // batch:
            middle = x + batch * size / 2
            sheet.text(middle, 140, f"global batch {number}", anchor="middle", kind="small")
    return sheet


def splits() -> Sheet:
    """Draw which rows are dealt to a test part, before and after rows were appended."""
    block = 1000
    sheet = Sheet(
        "Splits",
        "Rows of a test part of a tenth, as lines: 100 in each block of 1,000 rows. After 600 rows were "
        "appended to 2,400, all old lines are where they were.",
        width=WIDTH,
        height=130,
    )
    across = (WIDTH - LEFT - 20) / (3 * block)
    kept: set[int] = set()
    for y, count in ((20, 2400), (68, 3000)):
        ds = sk.from_sequence(range(count))
        test = list(ds.split({"train": 0.9, "test": 0.1}, seed=0, stable=True)["test"])
        assert kept <= set(test), "rows that were in the test part are not in it any more"
        kept = set(test)
        sheet.text(12, y + 14, f"{count:,} rows,")
        sheet.text(12, y + 30, f"{len(test)} of them test", kind="small")
        sheet.cell(LEFT, y, count * across, 36, tint=6)
        sheet.ticks((round(LEFT + row * across, 2) for row in test), y, 36)
    for number in range(4):
        x = LEFT + number * block * across
        sheet.line((x, 14), (x, 110))
        sheet.text(x, 124, f"{number * block:,}", anchor="middle", kind="small")
    return sheet


PICTURES: dict[str, Callable[[], Sheet]] = {
    "positions": positions,
    "shuffles": shuffles,
    "windows": windows,
    "interleave": interleaved,
    "mixture": mixture,
    "ranks": ranks,
    "splits": splits,
}


def main(folder: str) -> None:
    """Write all pictures into a folder."""
    for name, draw in PICTURES.items():
        with open(os.path.join(folder, f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write(str(draw()))


if __name__ == "__main__":
    main(*sys.argv[1:2] or [HERE])
