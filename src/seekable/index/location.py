"""Where one record lies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where one record lies in the files on disk.

    Example:
        >>> where = Location("/data/a.jsonl", row=2, offset=40, length=12)
        >>> f"tail -c +{where.offset + 1} {where.path} | head -c {where.length}"
        'tail -c +41 /data/a.jsonl | head -c 12'
    """

    path: str
    """The absolute path of the file; of one on the Hugging Face Hub, its name there, ``hf://datasets/...``."""

    row: int
    """The record's number in that file, from 0."""

    offset: int
    """Where the record starts, in bytes from the start of the file; of its content, if it is compressed."""

    length: int
    """How many bytes it has, without the end of its line."""
