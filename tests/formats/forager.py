"""The files of Forager, written as data-forager 0.2.0 writes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Sample = tuple[int, int, int]


def samples_of(files: Iterable[Path]) -> list[Sample]:
    """Return a sample for each line, line ends included; blank lines are samples too."""
    found: list[Sample] = []
    numbers = 0
    for file in files:
        with file.open("rb") as content:
            lines = content.readlines()
        start = 0
        for line in lines:
            found.append((numbers, start, len(line)))
            start += len(line)
        numbers += bool(lines)
    return found


def write_index(folder: Path, names: Iterable[str], samples: Iterable[Sample] | None = None) -> None:
    """Write the index of some files of a folder; of other samples than their lines, if they are given."""
    names = [name for name in names if (folder / name).stat().st_size]
    found = samples_of(folder / name for name in names) if samples is None else list(samples)
    (folder / "index").mkdir(exist_ok=True)
    (folder / "index" / "file_location.txt").write_text("".join(f"{name}\n" for name in names))
    data = np.array(found, dtype=np.uint64).tobytes()
    (folder / "index" / "sample_locations.bin").write_bytes(data)


def write_data(folder: Path, files: dict[str, bytes], *, mtime: int = 1_700_000_000) -> None:
    """Write files, modified at a time long ago, so that their index is not doubted."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        os.utime(folder / name, (mtime, mtime))
