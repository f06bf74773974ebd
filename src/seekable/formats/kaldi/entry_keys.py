"""The keys of many entries, found without their objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seekable.formats.kaldi.entries import ENTRY
from seekable.formats.kaldi.script_lines import line_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.storage.mapped import View

__all__ = ["entry_keys"]

_HEAD_BYTES = 512
"""The bytes of an entry of an archive that are read first; longer keys are rare."""

_LINES_AT_ONCE = 1 << 16


def entry_keys(
    kind: Literal["ark", "scp"], view: View, starts: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> list[bytes]:
    """Return the keys of some entries of one file; an empty key stands for an entry that has none.

    Args:
        kind: ``"ark"`` for an archive, ``"scp"`` for the consecutive lines of a script.
        view: the bytes of the file.
        starts: the first byte of each entry.
        ends: the byte behind each entry.
    """
    if kind == "ark":
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [_archive_key(view, start, end) for start, end in pairs]
    keys: list[bytes] = []
    for first in range(0, len(starts), _LINES_AT_ONCE):
        last = min(first + _LINES_AT_ONCE, len(starts))
        lines = bytes(view[int(starts[first]) : int(ends[last - 1])]).split(b"\n")
        keys += map(line_key, lines[: last - first])
    return keys


def _archive_key(view: View, start: int, end: int) -> bytes:
    found = ENTRY.match(view[start : min(end, start + _HEAD_BYTES)]) or ENTRY.match(view[start:end])
    return found[1] if found else b""
