"""What was written."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Written"]


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a folder that holds all records of a dataset, in their order.

    Example:
        >>> Written(("out/part-00000-of-00001.jsonl",), rows=3, holes=0, bytes=27, kept=0).rows
        3
    """

    paths: tuple[str, ...]
    """The absolute paths of the files, in the order of their rows."""

    rows: int
    """How many rows all of them have."""

    holes: int
    """How many records were ``sk.HOLE``, and were left out."""

    bytes: int
    """How many bytes all files have."""

    kept: int
    """How many of the files an earlier call had written."""
