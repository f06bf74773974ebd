"""The streams of the corpus: for each stage those of tests/stream/matrix.py, and those over its own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.corpus.formats import FOLDER as DATA
from tests.stream.matrix import BUILDERS

import seekable as sk
from seekable.formats.lines.line_stream import FromLines
from seekable.stream.from_dataset import FromDataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Builder = Callable[[Path], sk.Stream]

_ITEMS, _LANES = 17, 2


def _tar(root: Path) -> sk.Stream:
    ds = sk.open(f"{root}/{DATA}/tar", columns=["txt"])
    return ds.shuffle(3, window=1).stream(lanes=_LANES, epochs=2, start=5)


def _lines(root: Path) -> sk.Stream:
    return sk.open_stream(f"{root}/{DATA}/jsonl/*.jsonl", lanes=_LANES)


def _compressed_lines(root: Path) -> sk.Stream:
    return sk.open_stream(f"{root}/{DATA}/jsonl-blocks/*.gz", lanes=1, replay=True).shuffle(buffer=5, seed=1)


def _over_files(kind: type) -> list[Builder]:
    """Return the streams over files of the corpus, in place of those of the matrix."""
    if kind is FromLines:
        return [_lines, _compressed_lines]
    return [_tar] if kind is FromDataset else []


def _of_matrix(kind: type, number: int) -> Builder:
    return lambda _: BUILDERS[kind][number](_ITEMS, _LANES)


_STAGES: dict[Any, Any] = {**BUILDERS}

STREAMS: dict[str, list[Builder]] = {
    kind.kind: [
        *([] if kind is FromLines else [_of_matrix(kind, number) for number in range(len(builders))]),
        *_over_files(kind),
    ]
    for kind, builders in _STAGES.items()
}
"""Streams by the kind of their last stage."""

CASES = {
    f"{kind}-{number}": build for kind, builders in STREAMS.items() for number, build in enumerate(builders)
}
"""The same by name."""
