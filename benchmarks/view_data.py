"""Writes the data that the viewer is measured on: small JSON records in many files.

::

    python -m benchmarks.view_data FOLDER --files 1000 --rows 10000

A record has an id, a text of 20 to 20,000 characters (log-normal, median some 180), and two values one level
down: a language, and a score that one record in 500 lacks. The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

WORDS = (
    "the committee met on Tuesday to read every record of the archive and to count what was there before "
    "anyone could say how large a language of numbers and names is when nobody looks at it"
)

LANGUAGES = np.array(["en"] * 12 + ["de"] * 4 + ["fr"] * 3 + ["sw"])


def write_file(folder: str, rows: int, number: int) -> None:
    """Write the records of one file."""
    rng = np.random.default_rng([7, number])
    book = " ".join(rng.choice(WORDS.split(), 8000).tolist())
    lengths = np.clip(np.exp(rng.normal(5.2, 0.85, rows)), 20, 20_000).astype(int)
    starts = rng.integers(0, len(book) - 20_000, rows)
    languages = rng.choice(LANGUAGES, rows)
    scores = rng.random(rows).round(4)
    without = rng.random(rows) < 1 / 500
    first = number * rows
    columns = (column.tolist() for column in (starts, lengths, languages, scores, without))
    lines = [
        f'{{"id": {first + at}, "text": "{book[start : start + length]}", "meta": {{"lang": "{language}"'
        + ("" if lacks else f', "score": {score}')
        + "}}\n"
        for at, (start, length, language, score, lacks) in enumerate(zip(*columns, strict=True))
    ]
    with open(os.path.join(folder, f"part-{number:05}.jsonl"), "w", encoding="utf-8") as file:
        file.write("".join(lines))


def write(folder: str, *, files: int, rows: int) -> None:
    """Write files of so many records each into a folder, by two processes."""
    os.makedirs(folder, exist_ok=True)
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(partial(write_file, folder, rows), range(files)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the data that the viewer is measured on.")
    parser.add_argument("folder")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000, help="records of a file")
    arguments = parser.parse_args()
    write(arguments.folder, files=arguments.files, rows=arguments.rows)


if __name__ == "__main__":
    main()
