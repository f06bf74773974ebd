"""Draw the loss curves of an interrupted and an uninterrupted run, in the terminal and as an SVG file.

    python picture.py INTERRUPTED UNINTERRUPTED SVG

The folders are those of the two runs; both are drawn to one scale.
"""

from __future__ import annotations

import glob
import json
import sys

COLUMNS = 70
ROWS = 6
BLOCKS = " ▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 900, 300
COLOURS = ("#d1495b", "#00798c", "#edae49")

Curve = dict[int, float]
"""The loss of each batch, by step."""


def read_curves(run: str) -> list[Curve]:
    """Return the loss curve of each process of a run, the earliest first."""
    curves = []
    for number in range(1, 1 + len(glob.glob(glob.escape(run) + "/log-*.jsonl"))):
        with open(f"{run}/log-{number}.jsonl", encoding="utf-8") as file:
            entries = [json.loads(line) for line in file if line.endswith("\n")]
        curves.append({entry["step"]: entry["loss"] for entry in entries if "step" in entry})
    return [curve for curve in curves if curve]


def averaged(curve: Curve, steps: int, columns: int) -> list[tuple[float, float]]:
    """Return points of a curve: the mean step and the mean loss of each column that it reaches."""
    cells: list[list[tuple[int, float]]] = [[] for _ in range(columns)]
    for step, loss in curve.items():
        cells[step * columns // steps].append((step, loss))
    return [
        (sum(step for step, _ in cell) / len(cell), sum(loss for _, loss in cell) / len(cell))
        for cell in cells
        if cell
    ]


def drawn(curves: list[Curve], steps: int, *, low: float, high: float) -> list[str]:
    """Return the lines of a chart of one run; below it stands which process trained what."""
    joined = {step: loss for curve in curves for step, loss in curve.items()}
    losses = [loss for _, loss in averaged(joined, steps, min(COLUMNS, steps))]
    eighths = [round((loss - low) / (high - low) * (ROWS * 8 - 1)) + 1 for loss in losses]
    lines = []
    for row in reversed(range(ROWS)):
        label = f"{high:5.2f} " if row == ROWS - 1 else f"{low:5.2f} " if row == 0 else " " * 6
        lines.append(label + "".join(BLOCKS[min(8, max(0, height - row * 8))] for height in eighths))
    if len(curves) > 1:
        resumed = [min(curve) * len(losses) // steps for curve in curves[1:]]
        bounds = [0, *resumed, len(losses)]
        names = [f"╰ process {number} " for number in range(1, len(curves) + 1)]
        widths = [bounds[i + 1] - bounds[i] for i in range(len(curves))]
        lines.append(" " * 6 + "".join(n[:w].ljust(w, "─") for n, w in zip(names, widths, strict=True)))
    return lines


def svg(title: str, curves: dict[str, Curve], steps: int, *, low: float, high: float) -> str:
    """Return a picture of some curves by name: the first one broad and pale, the others upon it."""
    scale = (HEIGHT - 70) / (high - low)
    colours = ["#c9d6df", *(COLOURS[i % len(COLOURS)] for i in range(len(curves) - 1))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="20" y="24">{title}</text>',
    ]
    for i, (colour, (name, curve)) in enumerate(zip(colours, curves.items(), strict=True)):
        points = " ".join(
            f"{20 + step / steps * (WIDTH - 40):.1f},{HEIGHT - 20 - (loss - low) * scale:.1f}"
            for step, loss in averaged(curve, steps, min(steps, WIDTH // 3))
        )
        stroke = f'fill="none" stroke="{colour}" stroke-width="{2 if i else 8}"'
        parts.append(f'<polyline points="{points}" {stroke}/>')
        parts.append(f'<text x="{WIDTH - 150}" y="{50 + 22 * i}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Draw both runs to one scale."""
    interrupted, (whole,) = read_curves(sys.argv[1]), read_curves(sys.argv[2])
    steps = 1 + max(whole)
    losses = [loss for _, loss in averaged(whole, steps, min(COLUMNS, steps))]
    low, high = min(losses), max(*losses, min(losses) + 1e-9)
    for title, curves in (("interrupted and resumed", interrupted), ("uninterrupted", [whole])):
        print(f"loss, {title}")
        print("\n".join(drawn(curves, steps, low=low, high=high)))
    joins = " and ".join(f"batch {min(curve):,}" for curve in interrupted[1:])
    named = {f"process {number}": curve for number, curve in enumerate(interrupted, start=1)}
    title, named = f"loss by batch; resumed at {joins}", {"uninterrupted": whole, **named}
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        file.write(svg(title, named, steps, low=low, high=high))
    print(f"the same, larger: {sys.argv[3]}")


if __name__ == "__main__":
    main()
