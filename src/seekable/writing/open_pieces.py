"""The files of the pieces of many lanes, open at once."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["open_pieces"]

_MOST_OPEN = 256
"""The most pieces that are open files at once: a process may have 1,024 of them in most systems."""


@contextlib.contextmanager
def open_pieces(paths: Sequence[str]) -> Iterator[list[BinaryIO]]:
    """Yield files, open for reading at their first bytes, and close them at the end.

    More than 256 are read into memory instead. All of them hold the records of one part, so the pieces of so
    many lanes are short.
    """
    with contextlib.ExitStack() as files:
        if len(paths) <= _MOST_OPEN:
            yield [files.enter_context(open(path, "rb")) for path in paths]
            return
        contents: list[BinaryIO] = []
        for path in paths:
            with open(path, "rb") as file:
                contents.append(io.BytesIO(file.read()))
        yield contents
