"""A source that was described, found again in the present one: its rows, if they are still there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import StateMismatch
from seekable.nodes.concat import Concat
from seekable.nodes.slice import Slice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.dataset.base import Dataset

__all__ = ["rows_in"]

_SAME = ("size", "records", "head_tail", "offsets")
"""What of a file must be as it was."""


def rows_in(described: Mapping[str, Any], present: Dataset) -> Dataset:
    """Return the rows that a described source had, as rows of the present source.

    Files count by name, size, records and digests; new ones may lie anywhere among them. A sequence is known
    by its type and version alone: one that is longer counts as the old one with items at its end.

    Raises:
        StateMismatch: they are not all there; the message says which file, and what of it is another.
    """
    now = present.describe(None)
    if described["kind"] != now["kind"]:
        raise StateMismatch(f"the source was {described['kind']}, and is {now['kind']}")
    if "files" in described:
        return _runs_of(present, _file_runs(described, now))
    if "length" not in described:
        raise StateMismatch(f"the source was {_shown(described)}, and is {_shown(now)}")
    known = {key: value for key, value in described.items() if key != "length"}
    if known != {key: value for key, value in now.items() if key != "length"}:
        raise StateMismatch(f"the source was {_shown(described)}, and is {_shown(now)}")
    if described["length"] > now["length"]:
        raise StateMismatch(f"the sequence had {described['length']:,} items, and has {now['length']:,}")
    return _runs_of(present, [(0, described["length"])])


def _runs_of(present: Dataset, runs: Sequence[tuple[int, int]]) -> Dataset:
    if list(runs) == [(0, present.size)]:
        return present
    parts = [Slice(present, start, 1, count) for start, count in runs]
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _file_runs(described: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return runs of rows of the present files: where each starts, and how many."""
    if described["format"] != now["format"]:
        raise StateMismatch(f"the source was of {described['format']!r}, and is of {now['format']!r}")
    files = now["files"]
    starts = np.cumsum([0, *(file["records"] for file in files)]).tolist()
    numbers: dict[tuple[Any, ...], list[int]] = {}
    for number, file in enumerate(files):
        numbers.setdefault(_key(file), []).append(number)
    runs: list[tuple[int, int]] = [(0, 0)]
    for file in described["files"]:
        same = numbers.get(_key(file))
        if same is None:
            raise StateMismatch(_difference(file, files))
        # A file that is there more than once is taken in turn, as long as there are more of it.
        number = same.pop(0) if len(same) > 1 else same[0]
        start, count = runs[-1]
        if start + count == starts[number]:
            runs[-1] = (start, count + file["records"])
        elif file["records"]:
            runs.append((starts[number], file["records"]))
    return [run for run in runs if run[1]] or [(0, 0)]


def _key(file: Mapping[str, Any]) -> tuple[Any, ...]:
    return file["name"], *(file[key] for key in _SAME)


def _difference(file: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> str:
    name = file["name"]
    other = next((now for now in files if now["name"] == name), None)
    if other is None:
        return f"file {name!r} is gone: its rows were part of the epoch that was begun"
    changed = [key for key in _SAME if file[key] != other[key]]
    what = ", ".join(f"{key} was {file[key]!r}, is {other[key]!r}" for key in changed)
    return f"file {name!r} was changed: {what}"


def _shown(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r:.60}" for key, value in described.items())
